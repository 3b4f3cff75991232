"""Runs a case of the fuzzer in a folder of its own, and says what came of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from unittest.mock import patch

from click.testing import CliRunner
from t3sim.cli import main as cli
from t3sim.cli.entry import INTERRUPTED

from tests.fuzz.case import Case, Generator
from tests.fuzz.checks import Fault, Outcome, faults
from tests.fuzz.machines import MACHINES
from tests.fuzz.options import OPTIONS
from tests.fuzz.outputs import OUTPUTS
from tests.fuzz.people import PEOPLE
from tests.fuzz.processes import PAIRS, PROCESSES
from tests.fuzz.references import REFERENCES
from tests.fuzz.settings import SETTINGS
from tests.fuzz.sizes import SIZES
from tests.fuzz.sweeps import SWEEPS, small_workload
from tests.fuzz.tree import tree

LIMIT_S = 60
"""A case that takes longer hangs."""
KINDS: dict[str, tuple[int, dict[Generator, int]]] = {
    "sizes and counts": (12, SIZES), "machine values": (24, SETTINGS), "machine files": (11, MACHINES),
    "output folders": (10, OUTPUTS), "options of all commands": (14, OPTIONS), "sweeps, model": (6, SWEEPS),
    "reports, traces, waves": (14, PEOPLE),
    "validate hbm, alu": (6, REFERENCES), "surroundings": (2, PROCESSES), "pairs of links": (1, PAIRS),
}  # fmt: skip
"""Kinds of cases, how many of a hundred each gets, and what makes them."""


class Hang(BaseException):
    """The time of a case is over. No ``except Exception`` takes it."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """One case: its ``kind``, what came of it, what is wrong with that, and the seconds of it all."""

    number: int
    kind: str
    case: Case
    outcome: Outcome
    faults: list[Fault]
    seconds: float

    @property
    def accepted(self) -> bool:
        """Whether the program did what it was asked, in time."""
        return self.outcome.error is None and not self.outcome.hung and self.outcome.code in self.case.codes


def make(seed: int, number: int) -> tuple[str, Case]:
    """Case ``number`` of ``seed``, which depends on nothing else, and its kind."""
    random = Random(f"{seed}:{number}")
    kind = random.choices(list(KINDS), [share for share, _ in KINDS.values()])[0]
    generators = KINDS[kind][1]
    return kind, random.choices(list(generators), list(generators.values()))[0](random)


def examine(seed: int, number: int) -> Report:
    """The report on case ``number`` of ``seed``."""
    kind, case = make(seed, number)
    begin = time.monotonic()
    outcome, found = judge(case)
    seconds = time.monotonic() - begin
    return Report(number=number, kind=kind, case=case, outcome=outcome, faults=found, seconds=seconds)


def judge(case: Case) -> tuple[Outcome, list[Fault]]:
    """Runs a case and holds what came of it against what must."""
    with _folder() as place, _temporaries() as scratch:
        case.prepare(place)
        before = tree(place)
        with chdir(place):
            outcome = invoke(case)
        found = list(faults(case, outcome, place, before, tree(place)))
        if case.faster and not found:
            found = list(_compare(case, place))
        if left := sorted(os.listdir(scratch)):
            found.append(("half-written", f"left among temporary files: {left[:5]}"))
    return outcome, found


def _compare(case: Case, place: Path) -> Iterator[Fault]:
    """A run with the faster link may not take longer."""
    with chdir(place):
        outcome = invoke(Case(arguments=case.faster, expected="accepted"))
    if outcome.code != 0:
        yield "wrong refusals", outcome.stderr[-300:]
        return
    slow, fast = (_total_ns(place / name / "result.json") for name in ("slow", "fast"))
    if fast > slow:
        yield "wrong acceptances", f"{slow} ns with the slower link, {fast} ns with the faster"


def _total_ns(path: Path) -> float:
    return json.loads(path.read_text("utf-8"))["time_ns"]["total"]


def invoke(case: Case) -> Outcome:
    """What comes of a command line in the current folder."""
    return _in_a_process(case) if case.apart else _here(case)


def _here(case: Case) -> Outcome:
    terminate = signal.getsignal(signal.SIGTERM)
    try:
        with _alarm(), patch("t3sim.study.suite.model_workload", small_workload):
            result = CliRunner().invoke(
                cli.main, case.arguments, input=case.stdin, env=dict(case.environment), color=True
            )
    except Hang:
        return Outcome(code=-1, stdout="", stderr="", hung=True)
    finally:
        signal.signal(signal.SIGTERM, terminate)
    if result.exit_code == INTERRUPTED:  # who stops a case wants to stop the fuzzer
        raise KeyboardInterrupt
    error = None if isinstance(result.exception, SystemExit) else result.exception
    return Outcome(code=result.exit_code, stdout=result.stdout, stderr=result.stderr, error=error)


def _in_a_process(case: Case) -> Outcome:
    command = [sys.executable, "-m", "t3sim", *case.arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **case.environment}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=LIMIT_S, check=False, input=case.stdin.encode()
        )
    except subprocess.TimeoutExpired:
        return Outcome(code=-1, stdout="", stderr="", hung=True)
    out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return Outcome(code=done.returncode, stdout=out, stderr=err)


@contextmanager
def _alarm() -> Iterator[None]:
    """Raises Hang in the block after the time of a case."""

    def ring(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _folder() -> Iterator[Path]:
    """An empty folder, gone afterwards."""
    place = Path(os.path.realpath(tempfile.mkdtemp(prefix="t3-fuzz-")))
    try:
        yield place
    finally:
        shutil.rmtree(place)


@contextmanager
def _temporaries() -> Iterator[Path]:
    """Where temporary files go in the block."""
    before = tempfile.tempdir
    with _folder() as place:
        tempfile.tempdir = str(place)
        try:
            yield place
        finally:
            tempfile.tempdir = before
