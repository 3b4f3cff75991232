"""`t3 bench`: how often the compiled hardware is evaluated, for what, and how its speed compares, all in one run.

Absolute speeds belong to a computer and a moment, so what is held against a target is a ratio wherever one makes sense.
"""

from dataclasses import asdict, dataclass, replace

from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import custom_workload
from t3sim.run.policies import Watch, run_policies
from t3sim.run.provenance import Provenance
from t3sim.run.request import RunRequest, RunResult
from t3sim.run.result import Contention, Result

from .speed import PartSpeed, hbm_requests_per_second, part_speed, simulator_cycles_per_second

NETWORK = ("leaf", "root", "tracker")
"""Parts that work for updates only."""

HBM_TRACES = {"stream_read": 3e6, "rw_random_75": 2e6}
"""Traces on which the HBM model's speed is measured, and its target: row hits, and conflicts with turnarounds."""


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
    """The result. ``evaluated_share``: evaluated part-cycles over all. Seconds are those of the t3-mca run."""

    targets: list[Target]
    costs: list[Cost]
    parts: list[PartBench]
    evaluations: int
    evaluated_share: float
    simulate_seconds: float
    golden_seconds: float
    provenance: Provenance

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


def bench(request: RunRequest, watch: Watch) -> Bench:
    """Runs ``request`` on one thread: sequentially, with t3-mca on compiled RTL and on the golden model; and the loops.

    Raises ValueError if the request is not for the rtl hardware, BuildError if the RTL cannot be compiled.
    """
    if request.hardware != "rtl":
        raise ValueError(f"bench measures the rtl hardware, not {request.hardware!r}")
    request = replace(request, policy="t3-mca", threads=1)
    _compile_functions(request, watch)
    runs = run_policies(request, ("sequential", "t3-mca"), watch)
    golden = run_policies(replace(request, hardware="golden"), ("t3-mca",), watch)["t3-mca"]
    return summarise(request, runs["sequential"], runs["t3-mca"], golden)


def _compile_functions(request: RunRequest, watch: Watch) -> None:
    """A small run before the clock starts, so that no measured run compiles the simulator's kernels."""
    small = custom_workload(m=256, n=200, k=512, tp=4)
    run_policies(replace(request, workload=small, machine=load_machine("toy"), hardware="golden"), ("t3-mca",), watch)


def summarise(request: RunRequest, sequential: RunResult, tracked: RunResult, golden: RunResult) -> Bench:
    """The figures of three finished runs, and the loops that they are held against."""
    config = request.machine.hardware.config()
    rtl, costs = tracked.record.rtl, attribute(sequential.record, tracked.record)
    assert rtl is not None  # attribute() has refused a record without it
    parts = [
        PartBench(name=name, evaluations=count, speed=part_speed(config, name, seed=request.seed))
        for name, count in rtl.evaluated_by_part.items()
    ]
    clocks = tracked.record.time_ns.total * request.machine.hbm.clock_mhz / 1000 * tracked.record.gpus_simulated
    simulator = simulator_cycles_per_second(config, seed=request.seed)
    slowest = max(part.speed.in_c / part.speed.in_numba for part in parts)
    targets = (
        (
            "co-simulated unit cycles/s over Amaranth's simulator",
            clocks / tracked.wall.simulate / simulator,
            1e3,
            False,
        ),
        ("bare C loop over Numba loop, worst part", slowest, 3.0, True),
        ("wall time of RTL run over golden run", tracked.wall.simulate / golden.wall.simulate, 2.0, True),
        *(
            (f"HBM model, requests/s on {name}", hbm_requests_per_second(name), limit, False)
            for name, limit in HBM_TRACES.items()
        ),
    )
    return Bench(
        targets=[Target(name=name, measured=value, limit=limit, ceiling=top) for name, value, limit, top in targets],
        costs=costs,
        parts=parts,
        evaluations=rtl.cycles_evaluated,
        evaluated_share=rtl.cycles_evaluated / rtl.cycles,
        simulate_seconds=tracked.wall.simulate,
        golden_seconds=golden.wall.simulate,
        provenance=Provenance.of(request.machine),
    )


def attribute(sequential: Result, tracked: Result) -> list[Cost]:
    """Evaluations per event: slices by request, token network and tracker by update, trigger by tile.

    A sequential run has untracked requests only and gives their cost; what the slices of the tracked run take beyond
    that is for its updates. Raises ValueError if a record lacks RTL cycles, contention or tracker.
    """
    if sequential.rtl is None or sequential.contention is None:
        raise ValueError("the sequential run has no record of RTL cycles and requests")
    if tracked.rtl is None or tracked.contention is None or tracked.tracker is None:
        raise ValueError("the tracked run has no record of RTL cycles, requests and updates")
    each_untracked = sequential.rtl.evaluated_by_part["slice"] / _requests(sequential.contention)
    updates, tiles, by_part = tracked.tracker.updates, tracked.tracker.tiles, tracked.rtl.evaluated_by_part
    untracked = _requests(tracked.contention) - updates
    for_updates = by_part["slice"] - each_untracked * untracked + sum(by_part[name] for name in NETWORK)
    return [
        Cost(event="untracked request", count=untracked, per_event=each_untracked),
        Cost(event="update", count=updates, per_event=for_updates / updates),
        Cost(event="tile", count=tiles, per_event=by_part["trigger"] / tiles),
    ]


def _requests(contention: Contention) -> int:
    """Lines that memory accepted, tracked or not."""
    return contention.compute.lines + contention.communication.lines
