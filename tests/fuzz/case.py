"""A case of the fuzzer: a command line, the folder in which it is given, and what must become of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Literal

Expected = Literal["refused", "accepted", "either"]

SMALLEST = ("--m", "64", "--n", "64", "--k", "16", "--tp", "2")
"""A GEMM of four workgroup tiles on two GPUs: a tenth of a second."""
GOLDEN = ("--machine", "toy", "--hardware", "golden", "--threads", "1")
TOY = (*GOLDEN, *SMALLEST)

NO_INTEGERS = (
    "", " ", "many", "2.5", "1e3", "1e400", "nan", "inf", "-inf", "0x10", "true", "[2]", "2,3", "²", "\udcff",
    "9" * 5000,
    "\x1b[31m2", "2\n3", "½", "🦀", "--", "null",
)  # fmt: skip
"""What no integer option may take."""
NO_NAMES = (
    "", " ", "x", "Toy", "[/bold]", "🦀", ":warning:", "a\nb", "\x1b[31m", "..", "/", "/nowhere", "n" * 300, "\udcff",
    "nan", "{}", "%s", "-1",
)  # fmt: skip
"""What is the name of nothing."""


def nothing(place: Path) -> None:
    """Leaves the folder empty."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """``arguments`` follow ``t3`` in a folder that ``prepare`` has filled.

    ``says``: what a refusal must name. ``out``: the output folder, if the case has one, and ``file`` a file besides.
    ``kept``: where a refusal leaves results that could not be moved to it. ``codes``: exit codes of a case
    that is not refused. ``faster``: another command line, whose run must not take longer. ``apart``: in a process of
    its own.
    """

    arguments: tuple[str, ...]
    expected: Expected
    prepare: Callable[[Path], None] = nothing
    says: str = ""
    out: str | None = None
    file: str = ""
    kept: str = ""
    codes: tuple[int, ...] = (0,)
    stdin: str = ""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    faster: tuple[str, ...] = ()
    apart: bool = False


Generator = Callable[[Random], Case]
"""Makes a case of one kind."""


def run_of(random: Random, *more: str) -> tuple[str, ...]:
    """``t3 run`` of the smallest toy under any policy, with ``more`` options."""
    policies = ("t3-mca", "t3", "sequential", "sequential-pipelined", "sequential-nmc", "ideal-overlap")
    mirror = random.choice(((), (), ("--mirror",)))
    return ("run", *TOY, "--policy", random.choice(policies), *mirror, *more)
