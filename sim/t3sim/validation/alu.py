"""`t3 validate alu`: the compiled NMC ALU against cases whose results are known, on all cores."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
from t3hdl.config import T3Config
from t3hdl.export.identity import hardware_identity
from t3hdl.interface.layouts import Dtype, Op

from t3sim.hardware.abi import PartType
from t3sim.hardware.golden.arithmetic import FORMATS, LANE_BITS
from t3sim.hardware.rtl.backend import compiled_part

from .alu_cases import Cases, Source, every_pair, random_pairs, read_text, special_values
from .alu_part import AluBench

OPS = {op.name.lower(): op for op in (Op.ADD, Op.MIN, Op.MAX)}
"""Operations that can be checked, by name."""
DTYPES = {dtype.name.lower(): dtype for dtype in Dtype}
MAX_RANDOM = 1 << 32
"""Random pairs of a check: as many as there are pairs of a 16-bit dtype."""
SHOWN = 10
"""Differences that are kept of each check: the first ones."""
_FLAGS = {16: "invalid", 8: "divide by zero", 4: "overflow", 2: "underflow", 1: "inexact"}

_Value = TypeVar("_Value")

Watch = Callable[[int, float], None]
"""Called now and then, in the caller's thread, with the number of cases that are done and the seconds so far."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A case that came out wrong: operands, what the ALU gave, what it should have given; as bit patterns."""

    a: int
    b: int
    bits: int
    flags: int
    expected_bits: int
    expected_flags: int


@dataclass(frozen=True, kw_only=True)
class Row:
    """One check: an operation on one dtype. ``alone`` cases were repeated with all other lanes masked off."""

    dtype: str
    op: str
    cases: int
    alone: int
    differences: int
    seconds: float
    first: tuple[Difference, ...]

    def texts(self) -> list[str]:
        """The first differences, for people."""
        return [_text(DTYPES[self.dtype], self.op, difference) for difference in self.first]


@contextmanager
def open_alu(config: T3Config) -> Iterator[PartType]:
    """The ALU of ``config`` as machine code, compiled now or before; its instances are freed when the block ends.

    Raises BuildError if it cannot be compiled.
    """
    part = compiled_part(config, "alu")
    try:
        yield part.part_type
    finally:
        part.free()


def lanes_of(dtype: Dtype) -> int:
    """Lanes of a line."""
    return 256 // LANE_BITS[dtype]


@dataclass(frozen=True, kw_only=True)
class Check:
    """What :func:`run` is to do; ``cases`` is None if nobody knows how many there are.

    ``beats`` : cycles from one line to the next.
    """

    op: Op
    dtype: Dtype
    source: Source
    cases: int | None
    every: int
    beats: int

    @property
    def title(self) -> str:
        """For progress."""
        return f"{self.dtype.name.lower()} {self.op.name.lower()}"


def text_check(
    config: T3Config, op: str | None, dtype: str | None, lines: Iterable[str], every: int | None
) -> list[Check]:
    """The check of cases in TestFloat's format; every case is repeated alone if ``every`` is None."""
    if op is None or dtype is None:
        raise ValueError("cases on standard input need --dtype and --op: the text does not say what was computed")
    chosen = _built(config, dtype)[0]
    source = read_text(lines, chosen)
    known = _choice("--op", op, OPS)[0]
    return [Check(op=known, dtype=chosen, source=source, cases=None, every=every or 1, beats=config.nmc_beats)]


def exhaustive_checks(config: T3Config, op: str | None, dtype: str | None, every: int | None) -> list[Check]:
    """Checks of every pair of FP16 or another 16-bit ``dtype``, of one operation or (None) of all."""
    chosen = _built(config, dtype or "fp16")[0]
    return [
        Check(
            op=each,
            dtype=chosen,
            source=every_pair(each, chosen),
            cases=1 << 32,
            every=every or lanes_of(chosen),
            beats=config.nmc_beats,
        )
        for each in _choice("--op", op, OPS)
    ]


def random_checks(
    config: T3Config, op: str | None, dtype: str | None, *, count: int, seed: int, every: int | None
) -> list[Check]:
    """Checks of special values and ``count`` random pairs, of one operation and dtype or (None) of all built."""
    if not 0 <= count <= MAX_RANDOM or not 0 <= seed < 1 << 64:
        raise ValueError(f"--random must be in 0 to 2**32 and --seed in 0 to 2**64 - 1, not {count} and {seed}")
    return [
        Check(
            op=each,
            dtype=chosen,
            source=random_pairs(each, chosen, count, seed),
            cases=len(special_values(chosen)) ** 2 + count,
            every=every or lanes_of(chosen),
            beats=config.nmc_beats,
        )
        for chosen in _built(config, dtype)
        for each in _choice("--op", op, OPS)
    ]


def _built(config: T3Config, name: str | None) -> list[Dtype]:
    """The dtype ``name``, or (None) all that are built."""
    return _choice("--dtype", name, {built: DTYPES[built] for built in config.dtypes})


def _choice(option: str, name: str | None, known: Mapping[str, _Value]) -> list[_Value]:
    if name is not None and name not in known:
        raise ValueError(f"{option} must be one of {', '.join(known)}, not {name!r}")
    return list(known.values()) if name is None else [known[name]]


def run(part: PartType, check: Check, *, threads: int, watch: Watch) -> Row:
    """Puts the cases of ``check`` through the ALU ``part`` in full lines; one in ``every`` again, alone in its line.

    The row does not depend on ``threads``, except for its seconds; no more are started than there are blocks. An
    exception (also KeyboardInterrupt) ends all threads after the blocks that they are at, and is raised then. Raises
    ValueError if the system does not start so many threads.
    """
    workers = _Workers(part, check)
    start = time.monotonic()

    def left_of(running: set[Future[None]]) -> set[Future[None]]:
        finished, left = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
        watch(workers.cases, time.monotonic() - start)
        for future in finished:
            future.result()
        return left

    with ThreadPoolExecutor(threads) as pool:
        running: set[Future[None]] = set()
        try:
            for number, make in enumerate(check.source):
                running.add(_submit(pool, threads, workers, number, make))
                while len(running) > threads:  # one waits, so that no thread does
                    running = left_of(running)
            while running:
                running = left_of(running)
        finally:
            workers.stop.set()
    found = [difference for block in sorted(workers.found) for difference in workers.found[block]]
    return Row(
        dtype=check.dtype.name.lower(),
        op=check.op.name.lower(),
        cases=workers.cases,
        alone=workers.alone,
        differences=workers.differences,
        seconds=time.monotonic() - start,
        first=tuple(found[:SHOWN]),
    )


def _submit(
    pool: ThreadPoolExecutor, threads: int, workers: "_Workers", number: int, make: Callable[[], Cases]
) -> Future[None]:
    """Has a thread of ``pool`` check a block. Raises ValueError if that is a new one, and it does not start."""
    try:
        return pool.submit(workers.work, number, make)
    except RuntimeError as error:
        raise ValueError(
            f"--threads must be no more than the system lets a program start, not {threads} ({error}): lower it"
        ) from error


class _Workers:
    """What the threads of a check share. ``stop``: they are to check no more blocks."""

    def __init__(self, part: PartType, check: Check) -> None:
        self._part, self._plan = part, check
        self._lock, self._own = threading.Lock(), threading.local()
        self.stop = threading.Event()
        self.cases = self.alone = self.differences = 0
        self.found: dict[int, list[Difference]] = {}

    def work(self, number: int, make: Callable[[], Cases]) -> None:
        """Checks a block, unless ``stop`` is set."""
        if self.stop.is_set():
            return
        cases = make()
        compared = self._bench().compare(cases, self._plan.every, number)
        first = [
            Difference(
                a=int(cases.a[case]),
                b=int(cases.b[case]),
                bits=int(bits),
                flags=int(flags),
                expected_bits=int(cases.bits[case]),
                expected_flags=int(cases.flags[case]),
            )
            for case, bits, flags, _ in zip(compared.wrong, compared.bits, compared.flags, range(SHOWN), strict=False)
        ]
        with self._lock:
            self.cases += len(cases)
            self.alone += compared.alone
            self.differences += len(compared.wrong)
            if first:
                self.found[number] = first
                for block in sorted(self.found)[SHOWN:]:
                    del self.found[block]

    def _bench(self) -> AluBench:
        """The instance of the thread that asks."""
        bench: AluBench | None = getattr(self._own, "bench", None)
        if bench is None:
            with self._lock:
                bench = self._own.bench = AluBench(self._part, self._plan.op, self._plan.dtype, self._plan.beats)
        return bench


def record(config: T3Config, preset: str, made: str, rows: list[Row]) -> dict[str, Any]:
    """The checks for programs; ``made``: how the cases were made. Flags as in IEEE 754's order: invalid 16, overflow 4,
    underflow 2, inexact 1."""
    return {
        "schema": 1,
        "part": "alu",
        "hardware": hardware_identity(),
        "preset": preset,
        "parameters": asdict(config),
        "made": made,
        "checks": [asdict(row) for row in rows],
    }


def _text(dtype: Dtype, op: str, case: Difference) -> str:
    def number(bits: int) -> str:
        return f"{bits:0{LANE_BITS[dtype] // 4}X} ({_decimal(bits, dtype)})"

    def result(bits: int, flags: int) -> str:
        names = [name for bit, name in _FLAGS.items() if flags & bit]
        return f"{number(bits)}, flags {flags:02X} ({', '.join(names) or 'none'})"

    return (
        f"{dtype.name.lower()} {op} of {number(case.a)} and {number(case.b)}: "
        f"{result(case.bits, case.flags)}; expected {result(case.expected_bits, case.expected_flags)}"
    )


def _decimal(bits: int, dtype: Dtype) -> str:
    if dtype not in FORMATS:
        return str(bits - (bits >> 31 << 32))
    if dtype == Dtype.BF16:  # the upper half of an FP32 number
        bits <<= 16
    word, kind = (np.uint16, np.float16) if dtype == Dtype.FP16 else (np.uint32, np.float32)
    return f"{float(word(bits).view(kind)):.9g}"
