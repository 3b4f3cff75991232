"""A campaign on mutants keeps what an earlier one has found, until it has found it again with the same options."""

import json
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from opent3.options import usable_cores
from t3hdl.export.identity import hardware_identity

from tb.mutation import campaign
from tb.mutation.outcomes import MutantOutcome, record


def outcome(part: str, command: str) -> MutantOutcome:
    return MutantOutcome(component=part, number=1, command=command, wire="", bench="an assertion fails")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A finished campaign on this hardware: a mutant of each part."""
    path = tmp_path / "mutation.json"
    found = [outcome(part, "earlier") for part in campaign.SHARES]
    parameters = {"hardware": hardware_identity(), "changes": campaign.CHANGES}
    path.write_text(json.dumps(record(found, **parameters, seed=1, limit_s=12, proofs="rest")))
    return path


def finishes(*parts: str, then: type[BaseException] | None = None):
    """What takes the place of ``examine_all``: these parts finish, then something is raised."""

    def examine_all(*_) -> Iterator[tuple[str, list[MutantOutcome]]]:
        for part in parts:
            yield part, [outcome(part, "later")]
        if then:
            raise then

    return examine_all


def run(*options: str) -> Result:
    return CliRunner().invoke(campaign.main, list(options))


def commands(path: Path) -> dict[str, str]:
    return {row["component"]: row["command"] for row in json.loads(path.read_text())["mutants"]}


@pytest.mark.parametrize("end", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_run_replaces_only_the_parts_that_were_finished(monkeypatch, kept, end):
    monkeypatch.setattr(campaign, "examine_all", finishes("axi", then=end))
    assert run("--out", str(kept)).exit_code == 1
    assert commands(kept) == dict.fromkeys(campaign.SHARES, "earlier") | {"axi": "later"}


def test_a_part_whose_process_is_killed_is_one_message_and_loses_no_finished_part(monkeypatch, kept):
    """As by a kernel that runs out of memory."""
    monkeypatch.setattr(campaign, "examine_all", finishes("axi", then=BrokenProcessPool))
    done = run("--out", str(kept))
    assert (done.exit_code, "Traceback" in done.output) == (1, False)
    assert "Error: a part's process was killed, as happens when memory runs out: use fewer --jobs" in done.stderr
    assert commands(kept) == dict.fromkeys(campaign.SHARES, "earlier") | {"axi": "later"}


def test_parts_that_are_not_asked_for_stay(monkeypatch, kept):
    monkeypatch.setattr(campaign, "examine_all", finishes("leaf", "root"))
    done = run("leaf", "root", "--out", str(kept))
    assert done.exit_code == 0, done.output
    assert commands(kept) == dict.fromkeys(campaign.SHARES, "earlier") | {"leaf": "later", "root": "later"}


@pytest.mark.parametrize(
    ("option", "value", "made"), [("--seed", "2", "1"), ("--limit", "9", "12"), ("--proofs", "all", "rest")]
)
def test_a_file_of_other_options_is_refused_and_stays(monkeypatch, kept, option, value, made):
    monkeypatch.setattr(campaign, "examine_all", finishes("axi"))
    before = kept.read_bytes()
    done = run("--out", str(kept), option, value)
    assert (done.exit_code, done.stderr.count("\n"), kept.read_bytes() == before) == (1, 1, True)
    assert f"was made with {option} {made}, and a run that adds to it must have the same, not {value}" in done.stderr
    assert f"give {option} {made}, or another --out" in done.stderr


@pytest.mark.parametrize("change", [{"hardware": {"netlist": "another"}}, {"changes": {"descriptors": 8}}])
def test_nothing_is_kept_of_other_netlists_whatever_the_options(monkeypatch, kept, change):
    kept.write_text(json.dumps(json.loads(kept.read_text()) | change | {"seed": 7}))
    asked = []
    monkeypatch.setattr(campaign, "examine_all", lambda _counts, _plan, before, _workers: asked.append(before) or [])
    assert run("axi", "--out", str(kept)).exit_code == 1, "it would lose the other parts"
    assert run("--out", str(kept)).exit_code == 0 and asked == [{}]


def test_by_default_all_usable_cores_work():
    assert [option.default for option in campaign.main.params if option.name == "jobs"] == [usable_cores]
