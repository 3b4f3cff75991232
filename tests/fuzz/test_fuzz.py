"""The fuzzer: two thousand command lines of one seed, and that it finds each fault that it is for."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from opent3 import runs
from rich.console import Console
from t3sim.cli import main as cli
from t3sim.cli.simulation import options, results, run

from tests.fuzz import run as fuzz_run
from tests.fuzz.campaign import described, fuzz, warm_up
from tests.fuzz.case import TOY, Case
from tests.fuzz.run import judge, make

SEED = 0
QUICK = 60
"""Cases that take some seconds."""
LONG = 2000


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    warm_up()


def hold(numbers: range) -> None:
    print(f"seed {SEED}, cases {numbers.start} to {numbers.stop - 1}")
    wrong = [described(report, SEED) for report in fuzz(SEED, numbers, Console(stderr=True)) if report.faults]
    assert not wrong, "\n".join(wrong)


def test_any_command_line_is_done_or_refused():
    hold(range(QUICK))


@pytest.mark.long
def test_two_thousand_command_lines_are_done_or_refused():
    hold(range(QUICK, LONG))


def test_a_case_depends_on_seed_and_number_alone():
    def shown(number: int) -> tuple[str, tuple[str, ...]]:
        kind, case = make(SEED, number)
        return kind, case.arguments

    forwards = [shown(number) for number in range(50)]
    assert forwards == [shown(number) for number in reversed(range(50))][::-1]
    assert forwards != [make(SEED + 1, number)[1].arguments for number in range(50)]


GOOD = Case(arguments=("run", *TOY), expected="accepted")
WRITTEN = Case(arguments=("run", *TOY, "--out", "out"), expected="accepted", out="out")
BAD = Case(arguments=("run", *TOY, "--set", "link.gb_s=nan"), expected="refused", says="gb_s")
LATE = Case(arguments=("run", *TOY, "--out", "out", "--policy", "t4"), expected="refused", out="out")


def columns(case: Case) -> set[str]:
    return {column for column, _ in judge(case)[1]}


@pytest.mark.parametrize("case", [GOOD, WRITTEN, BAD, LATE])
def test_nothing_is_wrong_with_the_cases_below(case):
    assert columns(case) == set()


def test_an_exception_is_found(monkeypatch):
    def broken(texts: Iterable[str]) -> None:
        raise KeyError(*texts)

    monkeypatch.setattr(options, "parse_settings", broken)
    assert columns(BAD) == {"tracebacks"}


def test_a_hang_is_found(monkeypatch):
    monkeypatch.setattr(options, "parse_settings", lambda texts: time.sleep(30))
    monkeypatch.setattr(fuzz_run, "LIMIT_S", 0.1)
    assert columns(BAD) == {"hangs"}


def test_a_value_that_is_taken_is_found(monkeypatch):
    monkeypatch.setattr(options, "parse_settings", lambda texts: {"link.gb_s": 20.0})
    assert columns(BAD) == {"wrong acceptances"}


@pytest.mark.parametrize("message", ["a\nError: b gb_s", "no key", "gb_s \x1b[31m", "gb_s " * 1000])
def test_a_bad_message_is_found(monkeypatch, message):
    monkeypatch.setattr(cli, "one_line", lambda text: message)
    assert columns(BAD) == {"bad messages"}


@contextmanager
def careless_folder(target: Path | None) -> Iterator[Path | None]:
    """An output folder that is filled in place."""
    if target is not None:
        target.mkdir()
        (target / "result.json").write_text("{")
    yield target


def test_a_folder_without_a_manifest_is_found(monkeypatch):
    monkeypatch.setattr(runs, "output_folder", careless_folder)
    assert columns(WRITTEN) == {"half-written"}


def test_what_a_refusal_leaves_is_found(monkeypatch):
    def chosen(options):
        options["out"].mkdir()
        raise ValueError("refused too late")

    monkeypatch.setattr(run, "chosen", chosen)
    assert columns(LATE) == {"half-written"}


def test_a_users_file_that_is_lost_is_found(monkeypatch):
    def prepare(place: Path) -> None:
        (place / "mine").write_text("precious")

    monkeypatch.setattr(results, "say_where", lambda out: Path("mine").write_text("lost"))
    assert columns(Case(arguments=GOOD.arguments, expected="accepted", prepare=prepare)) == {"half-written"}


def test_a_faster_run_on_a_slower_link_is_found():
    slow, fast = (
        ("run", *TOY, "--set", f"link.gb_s={gb_s}", "--out", name) for gb_s, name in ((99, "slow"), (1, "fast"))
    )
    assert columns(Case(arguments=slow, expected="accepted", out="slow", faster=fast)) == {"wrong acceptances"}
