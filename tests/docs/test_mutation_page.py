"""The page on mutation is made of results that are complete, good and explained."""

import json

import pytest
from t3hdl.export.verilog import PARTS

from docs.pages import DOCS
from docs.pages import mutation as mutation_page
from docs.pages.shared.seeded import mistakes, named_mistakes
from tb.mutation.campaign import SHARES
from tb.mutation.outcomes import EXPLANATIONS, MutantOutcome, known, record

RESULTS = json.loads(mutation_page.KEPT.read_text(encoding="utf-8"))
PARAMETERS = {name: RESULTS[name] for name in ("hardware", "changes", "seed", "limit_s", "proofs") if name in RESULTS}


@pytest.fixture(scope="module")
def outcomes() -> list[MutantOutcome]:
    return [outcome for part in known(mutation_page.KEPT).values() for outcome in part]


def test_every_part_has_mutants_and_there_are_enough(outcomes):
    assert {outcome.component for outcome in outcomes} == set(SHARES) <= set(PARTS)
    assert len({(outcome.component, outcome.command) for outcome in outcomes}) == len(outcomes) >= 300
    assert all(RESULTS["components"][part]["mutants"] >= 15 for part in SHARES)


def test_the_counts_are_those_of_the_mutants(outcomes):
    assert record(outcomes, **PARAMETERS) == RESULTS


def test_of_a_thousand_mistakes_995_are_noticed_and_the_rest_is_explained():
    assert RESULTS["components"]["all"]["rate"] >= 0.995
    rows = mutation_page.unnoticed(RESULTS)
    assert not [row["command"] for row in rows if not row["explanation"]], "tb/mutation/explanations.json"


def test_every_explanation_is_of_a_mutant_that_nothing_notices():
    texts = json.loads(EXPLANATIONS.read_text(encoding="utf-8"))
    rows = {f"{row['component']}: {row['command']}": row for row in mutation_page.unnoticed(RESULTS)}
    assert texts["equivalent"] | texts["survives"] == {key: row["explanation"] for key, row in rows.items()}
    assert texts["equivalent"].keys() == {key for key, row in rows.items() if row["harmless"]}


def test_mistakes_made_by_hand_are_those_that_tests_say_they_seed(tmp_path):
    folder = tmp_path / "tests" / "formal"
    folder.mkdir(parents=True)
    (folder / "test_some.py").write_text(
        '"""Seeded: of a module."""\n\n\n'
        'def test_one():\n    """Seeded: the first\n    of two.\n\n    And why.\n    """\n\n\n'
        'def test_two():\n    """What is right."""\n\n\n'
        'def change(netlist):\n    """Seeded: a third."""\n\n\n'
        'class _Part(Part):\n    """Seeded: a fourth."""\n'
    )
    assert list(mistakes(tmp_path / "tests")) == [
        ("tests/formal/test_some.py", "The first of two."),
        ("tests/formal/test_some.py", "A third."),
        ("tests/formal/test_some.py", "A fourth."),
    ]
    assert len(list(mistakes())) >= 80


def test_named_mistakes_come_with_the_check_and_the_proof_that_find_them():
    rows = {mistake.name: mistake for mistake in named_mistakes()}
    assert len(rows) >= 30
    behind = rows["behind without a limit"]
    assert (behind.file, behind.test) == (
        "tests/contract/monitor/test_monitor.py", "test_never_behind_without_a_limit",
    )  # fmt: skip
    assert behind.proof == "monitor.chooses"
    assert rows["a backlog of one context's blocks"].proof == ""
    for mistake in rows.values():
        source = (DOCS.parent / mistake.file).read_text(encoding="utf-8")
        assert f"def {mistake.test}(" in source, mistake
    page = mutation_page.seeded_section()
    assert all(name in page for name in rows)
