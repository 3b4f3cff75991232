"""`t3 bench`: how often the compiled hardware is evaluated, for what, and how its speed compares, all in one run.

Absolute speeds belong to a computer and a moment, so what is held against a target is a ratio wherever one makes sense.
The two that are seconds are for two cores, and for :data:`REFERENCE` alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

from t3hdl.export.identity import hardware_identity

from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import custom_workload
from t3sim.run.policies import Watch, run_policies
from t3sim.run.provenance import Provenance
from t3sim.run.request import RunRequest, RunResult
from t3sim.run.result import Contention, Result

from .computer import computer
from .speed import HbmLoad, PartSpeed, hbm_requests_per_second, part_speed, simulator_cycles_per_second

NETWORK = ("leaf", "root", "tracker")
"""Parts that work for updates only."""

REFERENCE = custom_workload(m=8192, n=4256, k=17024, tp=8)
"""The GEMM of T-NLG's FC-2."""
MIRRORED_SECONDS, RING_SECONDS = 4.0, 30.0
"""Targets for one mirrored GPU of it on one thread, and for all eight on two."""
RING_THREADS = 2

PAIRS = 3
"""Runs with contention observed and as many without, in turns: one pair differs by what else the computer does."""

HBM_LOADS = {
    HbmLoad(trace="stream_read"): 3e6,
    HbmLoad(trace="rw_random_75"): 2e6,
    HbmLoad(trace="rw_random_75", refresh=True): 2e6,
    HbmLoad(trace="rw_random_75", updates=True): 2e6,
    HbmLoad(trace="aligned_copies", updates=True, refresh=True): 2e6,
}
"""What the HBM model's speed is measured on, and its target in requests/s: row hits; conflicts with turnarounds; and
half reads, half updates, of which a third are conflicts."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One measured figure and what it is to be: at most ``limit`` if ``ceiling``, else at least ``limit``."""

    name: str
    measured: float
    limit: float
    ceiling: bool

    @property
    def ok(self) -> bool:
        """Whether the figure is where it is to be."""
        return self.measured <= self.limit if self.ceiling else self.measured >= self.limit


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Events of one kind in the t3-mca run, and evaluations of RTL parts for each of them."""

    event: str
    count: int
    per_event: float

    @property
    def evaluations(self) -> float:
        """For all events of this kind."""
        return self.count * self.per_event


@dataclass(frozen=True, kw_only=True)
class PartBench:
    """One kind of part: evaluations in the t3-mca run, and evaluations per second in loops of its own."""

    name: str
    evaluations: int
    speed: PartSpeed

    @property
    def seconds(self) -> float:
        """Time that the evaluations take."""
        return self.evaluations / self.speed.in_numba


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The result. ``evaluated_share``: evaluated part-cycles over all. Seconds are those of the t3-mca run.
    ``hardware``: version and netlist that were measured; ``computer``: whose seconds these are, None in records from
    before it was kept. ``contention_ratios``: wall time with contention observed over without, of each pair of runs
    (empty in records from before they were kept, of one pair)."""

    targets: list[Target]
    costs: list[Cost]
    parts: list[PartBench]
    evaluations: int
    evaluated_share: float
    lines: int
    simulate_seconds: float
    golden_seconds: float
    provenance: Provenance
    hardware: dict[str, str] | None = None
    computer: str | None = None
    contention_ratios: tuple[float, ...] = ()

    @property
    def rtl_seconds(self) -> float:
        """Time in compiled RTL."""
        return sum(part.seconds for part in self.parts)

    @property
    def rtl_share(self) -> float:
        """Fraction of the simulation's time in compiled RTL."""
        return self.rtl_seconds / self.simulate_seconds

    def to_record(self) -> dict:
        """What ``bench.json`` holds."""
        ok = {target.name: target.ok for target in self.targets}
        seconds = {"rtl_seconds": self.rtl_seconds, "rtl_share": self.rtl_share}
        return {"schema": 1, **asdict(self), "provenance": self.provenance.model_dump(mode="json"), "ok": ok, **seconds}


@dataclass(frozen=True, kw_only=True)
class Runs:
    """What is measured: sequentially, and with t3-mca in ``pairs`` with contention observed and without, on compiled
    RTL; t3-mca on the golden model; and with all GPUs of the ring, by the number of threads, if that was asked for."""

    sequential: RunResult
    pairs: Sequence[tuple[RunResult, RunResult]]
    golden: RunResult
    ring: Mapping[int, RunResult]

    @property
    def tracked(self) -> RunResult:
        """The first run with t3-mca, contention observed."""
        return self.pairs[0][0]


def bench(request: RunRequest, watch: Watch, ring: bool = False) -> Bench:
    """Runs ``request`` as :class:`Runs` says, on one thread but for ``ring``; and the loops.

    Raises ValueError if the request is not for the rtl hardware, BuildError if the RTL cannot be compiled.
    """
    if request.hardware != "rtl":
        raise ValueError(f"bench measures the rtl hardware, not {request.hardware!r}")
    request = replace(request, policy="t3-mca", threads=1)
    compile_kernels(request, watch)

    def tracked(**changes: Any) -> RunResult:
        return run_policies(replace(request, **changes), ("t3-mca",), watch)["t3-mca"]

    def pair(number: int) -> tuple[RunResult, RunResult]:
        """Of every other pair the run without comes first, so that a computer that gets slower favours neither."""
        runs = {observed: tracked(contention=observed) for observed in ((False, True) if number % 2 else (True, False))}
        return runs[True], runs[False]

    measured = Runs(
        sequential=run_policies(request, ("sequential",), watch)["sequential"],
        pairs=[pair(number) for number in range(PAIRS)],
        golden=tracked(hardware="golden"),
        ring={threads: tracked(mirror=False, threads=threads) for threads in (1, RING_THREADS)} if ring else {},
    )
    return summarise(request, measured)


def compile_kernels(request: RunRequest, watch: Watch) -> None:
    """A small run before the clock starts, so that no measured run compiles the simulator's kernels."""
    small = custom_workload(m=256, n=200, k=512, tp=4)
    run_policies(replace(request, workload=small, machine=load_machine("toy"), hardware="golden"), ("t3-mca",), watch)


def summarise(request: RunRequest, runs: Runs) -> Bench:
    """The figures of finished runs, and the loops that they are held against."""
    config, tracked = request.machine.hardware.config(), runs.tracked
    rtl, costs = tracked.record.rtl, attribute(runs.sequential.record, tracked.record)
    assert rtl is not None and tracked.record.contention is not None  # attribute() has refused a record without them
    parts = [
        PartBench(name=name, evaluations=count, speed=part_speed(config, name, seed=request.seed))
        for name, count in rtl.evaluated_by_part.items()
    ]
    clocks = tracked.record.time_ns.total * request.machine.hbm.clock_mhz / 1000 * tracked.record.gpus_simulated
    simulator = simulator_cycles_per_second(config, seed=request.seed)
    slowest = max(part.speed.in_c / part.speed.in_numba for part in parts)
    contention_ratios = tuple(_over(observed, unobserved) for observed, unobserved in runs.pairs)
    targets = (
        (
            "unit cycles/s co-simulated, over those of Amaranth's simulator",
            clocks / tracked.wall.simulate / simulator,
            1e3,
            False,
        ),
        ("bare C loop over Numba loop, worst part", slowest, 3.0, True),
        ("wall time of RTL run over golden run", _over(tracked, runs.golden), 2.0, True),
        ("wall time with contention observed over without", median(contention_ratios), 1.1, True),
        *_seconds(request, runs),
        *(
            (f"HBM model, requests/s on {load.title}", hbm_requests_per_second(load), limit, False)
            for load, limit in HBM_LOADS.items()
        ),
    )
    return Bench(
        targets=[Target(name=name, measured=value, limit=limit, ceiling=top) for name, value, limit, top in targets],
        costs=costs,
        parts=parts,
        evaluations=rtl.cycles_evaluated,
        evaluated_share=rtl.cycles_evaluated / rtl.cycles,
        lines=_count(tracked.record.contention, "lines"),
        simulate_seconds=tracked.wall.simulate,
        golden_seconds=runs.golden.wall.simulate,
        provenance=Provenance.of(request.machine),
        hardware=hardware_identity(),
        computer=computer(),
        contention_ratios=contention_ratios,
    )


def _over(one: RunResult, other: RunResult) -> float:
    return one.wall.simulate / other.wall.simulate


def _seconds(request: RunRequest, runs: Runs) -> Iterator[tuple[str, float, float, bool]]:
    """Targets in seconds, if they are for this request; and what a second thread is worth."""
    work, machine = request.workload, request.machine
    same = custom_workload(work.m, work.n, work.k, work.tp) == REFERENCE
    reference = same and machine.name == "paper" and not machine.settings
    if reference and request.mirror:
        yield "one mirrored GPU, s", runs.tracked.wall.simulate, MIRRORED_SECONDS, True
    if not runs.ring:
        return
    one, many = runs.ring[1], runs.ring[RING_THREADS]
    if reference:
        yield (
            f"the ring's {request.workload.tp} GPUs on {RING_THREADS} threads, s",
            many.wall.simulate,
            RING_SECONDS,
            True,
        )
    yield f"wall time of the ring on one thread over {RING_THREADS}", _over(one, many), 1.8, False


def attribute(sequential: Result, tracked: Result) -> list[Cost]:
    """Evaluations per event: slices by burst, token network and tracker by update, trigger by tile.

    A sequential run has untracked bursts only and gives their cost; what the slices of the tracked run take beyond
    that is for its updates. Raises ValueError if a record lacks RTL cycles, contention or tracker.
    """
    if sequential.rtl is None or sequential.contention is None:
        raise ValueError("the sequential run has no record of RTL cycles and requests")
    if tracked.rtl is None or tracked.contention is None or tracked.tracker is None:
        raise ValueError("the tracked run has no record of RTL cycles, requests and updates")
    each_untracked = sequential.rtl.evaluated_by_part["slice"] / _count(sequential.contention, "bursts")
    tiles, by_part = tracked.tracker.tiles, tracked.rtl.evaluated_by_part
    updates = _count(tracked.contention, "update_bursts")
    untracked = _count(tracked.contention, "bursts") - updates
    for_updates = by_part["slice"] - each_untracked * untracked + sum(by_part[name] for name in NETWORK)
    return [
        Cost(event="burst that is no update", count=untracked, per_event=each_untracked),
        Cost(event="burst that is an update", count=updates, per_event=for_updates / updates),
        Cost(event="wavefront tile", count=tiles, per_event=by_part["trigger"] / tiles),
    ]


def _count(contention: Contention, what: str) -> int:
    """Of both streams: ``lines``, ``bursts`` or ``update_bursts`` that memory accepted."""
    return int(getattr(contention.compute, what) + getattr(contention.communication, what))
