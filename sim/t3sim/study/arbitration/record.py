"""The record of a map: for every machine and GEMM what arbitration is worth, and who waited for what."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from t3sim import __version__
from t3sim.common.strict_record import StrictRecord
from t3sim.common.user_input import shortened
from t3sim.explain.causes import FIELDS
from t3sim.inputs.geometry import ceil_div
from t3sim.inputs.machine.files import load_machine
from t3sim.run.ideal import overlapped_ns
from t3sim.run.policies import failures
from t3sim.run.request import Backend, Policy
from t3sim.run.result import Result, StreamContention, TimeNs, Waits, WorkloadRecord
from t3sim.study.evaluation import Evaluation, geomean
from t3sim.study.records.titles import sublayer_title
from t3sim.study.sources import digest_for
from t3sim.study.store import Store
from t3sim.study.suite import BASELINE, OVERLAP, OVERLAPPED, Point
from t3sim.study.sweep import Sweep, Variant

from .axes import Axes, Plan

BOUND: Policy = "ideal-overlap"
MAPPED: tuple[Policy, ...] = (BOUND, *OVERLAPPED)
IMPLIED_PAIR = (1.19, 1.02)
"""GEMM under t3 and t3-mca over the sequential GEMM. The paper prints neither; its speedups of large FC layers imply
them (t3 more than 15 % off ideal, t3-mca near it; T-NLG FC-2 at TP 8)."""
MOST_GROUPS = 12
"""Groups of stages whose waits a map tells apart, but for what comes after the GEMM."""
DIGITS = 4
"""Decimals of a wait by stage [memory clocks for each line]: more would say nothing."""


class StreamWaits(StrictRecord):
    """Waits of a stream at the memory slices: mean of a line, and by cause memory clocks for each line of it.

    ``by_stage``: the parts of ``blocked`` by stages of the GEMM, as :attr:`PolicyCell.stages` says.
    """

    mean_wait_ns: float
    blocked: dict[str, float]
    by_stage: list[dict[str, float]] = Field(default_factory=list)

    @classmethod
    def of(cls, stream: StreamContention, stages: Sequence[Sequence[Waits]]) -> Self:
        """The waits of ``stream``, in groups of ``stages``."""

        def per_line(cycles: int) -> float:
            return cycles / max(1, stream.lines)

        return cls(
            mean_wait_ns=stream.mean_wait_ns,
            blocked={cause: per_line(getattr(stream, field)) for cause, field in FIELDS.items()},
            by_stage=[
                {cause: round(per_line(sum(getattr(item, cause) for item in group)), DIGITS) for cause in FIELDS}
                for group in stages
            ],
        )


def pipelined_ns(alone: TimeNs, stages: int) -> float:
    """Overlap stage by stage, without contention: of the sequential run ``alone`` max(GEMM, reduce-scatter)
    + min(GEMM, reduce-scatter) / stages + all-gather.

    So long takes a pipeline of two units, here the CUs and the link, that work on equal pieces, here the stages of the
    GEMM: each waits for one piece of the other.
    """
    return overlapped_ns(alone, alone) + min(alone.gemm, alone.reduce_scatter) / stages


class PolicyCell(StrictRecord):
    """One run. ``gemm``, ``all_gather``: their time over that in the sequential run; ``reduce_scatter``: its time over
    that of the sequential GEMM (None in records from before it was kept); ``stalls``: mean time that a CU
    waits for loads and stores, over the sequential GEMM's time; ``stages``: the first stage of each group of waits, of
    which the last is what comes after the GEMM."""

    gemm: float
    all_gather: float
    reduce_scatter: float | None = None
    speedup: float
    stalls: dict[str, float]
    stages: list[int] = Field(default_factory=list)
    compute: StreamWaits
    communication: StreamWaits

    @model_validator(mode="after")
    def _has_all_waits(self) -> Self:
        if missing := [kind for kind in ("loads", "stores") if kind not in self.stalls]:
            raise ValueError(f"stalls has no entry for {missing[0]}")
        for stream in (self.compute, self.communication):
            if len(stream.by_stage) != len(self.stages):
                raise ValueError(f"by_stage must have as many entries as stages, {len(self.stages)}")
            for waits in (stream.blocked, *stream.by_stage):
                if missing := [cause for cause in FIELDS if cause not in waits]:
                    raise ValueError(f"blocked or by_stage has no entry for {missing[0]}")
        return self

    @property
    def gemm_stages(self) -> int:
        """Stages of the GEMM; 0 in records from before they were kept."""
        return self.stages[-1] if self.stages else 0

    @classmethod
    def of(cls, result: Result, alone: Result) -> Self:
        """``result`` beside the sequential run ``alone``."""
        assert result.contention is not None and result.contention.stages is not None
        *during, after = result.contention.stages
        each = ceil_div(len(during), MOST_GROUPS)
        groups = [*(during[first : first + each] for first in range(0, len(during), each)), [after]]
        return cls(
            gemm=result.time_ns.gemm / alone.time_ns.gemm,
            all_gather=result.time_ns.all_gather / alone.time_ns.all_gather,
            reduce_scatter=result.time_ns.reduce_scatter / alone.time_ns.gemm,
            speedup=alone.time_ns.total / result.time_ns.total,
            stalls={name: ns / alone.time_ns.gemm for name, ns in result.contention.cu_stall_ns.items()},
            stages=[group[0].first_stage for group in groups],
            compute=StreamWaits.of(result.contention.compute, [[row.compute for row in group] for group in groups]),
            communication=StreamWaits.of(
                result.contention.communication, [[row.communication for row in group] for group in groups]
            ),
        )


class Cell(StrictRecord):
    """One GEMM on one machine. ``worth``: the GEMM's time under t3 over that under t3-mca; ``gain``: the same of the
    whole sublayer, for communication that was held back comes later; ``ideal``: speedup of ideal-overlap;
    ``pipeline``: of overlap stage by stage, :func:`pipelined_ns` (None in records from before it was kept);
    ``policies``: the sequential run, t3 and t3-mca."""

    worth: float
    gain: float
    ideal: float
    pipeline: float | None = None
    policies: dict[Policy, PolicyCell]
    launches: int = 1
    spread: float = 0

    @model_validator(mode="after")
    def _has_its_policies(self) -> Self:
        if missing := [policy for policy in OVERLAP if policy not in self.policies]:
            raise ValueError(f"policies has no entry for {missing[0]}")
        if len({len(self.policies[policy].stages) for policy in OVERLAPPED}) > 1:
            raise ValueError(f"{' and '.join(OVERLAPPED)} must have the same stages")
        return self

    @classmethod
    def of(cls, evaluations: Sequence[Evaluation], point: Point) -> Self:
        """From the finished runs of a machine, in each of which the GEMM is launched at another time: their means."""
        cells = [cls._of_one(evaluation, point) for evaluation in evaluations]
        content = _mean([cell.model_dump() for cell in cells])
        gains = [cell.gain for cell in cells]
        spread = statistics.stdev(gains) if len(gains) > 1 else 0.0
        return cls.model_validate({**content, "launches": len(cells), "spread": spread})

    @classmethod
    def _of_one(cls, evaluation: Evaluation, point: Point) -> Self:
        alone = evaluation.record(point, BASELINE)
        cells = {name: PolicyCell.of(evaluation.record(point, name), alone) for name in OVERLAP}
        return cls(
            worth=cells["t3"].gemm / cells["t3-mca"].gemm,
            gain=cells["t3-mca"].speedup / cells["t3"].speedup,
            ideal=evaluation.speedup(point, BOUND),
            pipeline=alone.time_ns.total / pipelined_ns(alone.time_ns, cells[BASELINE].gemm_stages),
            policies=cells,
        )

    @property
    def differs(self) -> bool:
        """Whether arbitration changes anything: else t3 and t3-mca are one run."""
        return self.gain != 1 or self.worth != 1

    @property
    def above_bound(self) -> float:
        """Time of the sublayer under t3-mca over its bound, less 1: ideal-overlap, max(GEMM, RS) + AG."""
        return self.ideal / self.policies["t3-mca"].speedup - 1

    @property
    def above_pipeline(self) -> float | None:
        """The same over :func:`pipelined_ns`; None if that was not kept."""
        return None if self.pipeline is None else self.pipeline / self.policies["t3-mca"].speedup - 1

    @property
    def gemm_is_longer(self) -> bool | None:
        """Whether the sequential GEMM takes longer than its reduce-scatter; None if that was not kept."""
        scatter = self.policies[BASELINE].reduce_scatter
        return None if scatter is None else scatter < 1

    @property
    def late_loads(self) -> float:
        """By what part of the sequential GEMM's time CUs wait longer for loads under t3 than in the sequential run."""
        return self.policies["t3"].stalls["loads"] - self.policies[BASELINE].stalls["loads"]

    def later(self, kind: str) -> float:
        """By what part of the sequential GEMM's time CUs wait longer for ``kind``, loads or stores, under t3-mca."""
        return self.policies["t3-mca"].stalls[kind] - self.policies[BASELINE].stalls[kind]

    @property
    def pair(self) -> tuple[float, float]:
        """The GEMM under t3 and under t3-mca, over the sequential GEMM."""
        return self.policies["t3"].gemm, self.policies["t3-mca"].gemm


class MappedMachine(StrictRecord):
    """A machine with a cell for each GEMM; ``changes``: by which it differs from the first, as AXIS-VALUE; ``rule``: of
    its arbitration, as ``arbiter.mca`` (empty in records from before it was kept)."""

    name: str
    changes: list[str]
    settings: dict[str, Any]
    why: str
    rule: str = ""
    cells: list[Cell]

    @property
    def worth(self) -> float:
        """Geometric mean over the GEMMs."""
        return geomean(cell.worth for cell in self.cells)


class Place(NamedTuple):
    """A GEMM, by its name, on a machine."""

    machine: MappedMachine
    gemm: str
    cell: Cell


class ArbitrationMap(StrictRecord):
    """All of ``map.json``. ``gemms``: in the order of the cells; ``changes``: what the machines are made of;
    ``singles``: those that are changes to this machine, by axis; ``failures``: what does not add up.

    Every machine has a cell for each GEMM, and every cell its policies with all of their waits, or it is a ValueError.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    opent3: str = __version__
    sources: str
    machine: str
    settings: dict[str, Any]
    hardware: Backend
    seed: int
    quick: bool
    gemms: list[WorkloadRecord]
    changes: dict[str, Variant]
    singles: dict[str, list[str]]
    machines: list[MappedMachine]
    failures: list[str]

    @model_validator(mode="after")
    def _has_all_cells(self) -> Self:
        for item in self.machines:
            if len(item.cells) != len(self.gemms):
                raise ValueError(
                    f"machine {shortened(item.name)} must have a cell for each of {len(self.gemms)} GEMMs, and has "
                    f"{len(item.cells)}"
                )
        return self

    @property
    def titles(self) -> list[str]:
        """Names of the GEMMs for people."""
        return [sublayer_title(gemm) for gemm in self.gemms]

    def places(self) -> Iterator[Place]:
        """Every GEMM on every machine."""
        for machine in self.machines:
            yield from (Place(machine, *both) for both in zip(self.titles, machine.cells, strict=True))

    def at(self, changes: set[str]) -> MappedMachine | None:
        """The machine that differs by these changes; None if it was not simulated."""
        return next((item for item in self.machines if set(item.changes) == changes), None)


def _mean(items: Sequence[Any]) -> Any:
    """Numbers of nested records alike, averaged one by one; what is not a real number is that of the first."""
    first = items[0]
    if isinstance(first, dict):
        return {key: _mean([item[key] for item in items]) for key in first}
    if isinstance(first, list):
        return [_mean(found) for found in zip(*items, strict=True)]
    return statistics.fmean(items) if isinstance(first, float) else first


def map_record(sweep: Sweep, plan: Plan, axes: Axes, store: Store, *, quick: bool) -> ArbitrationMap:
    """The record of a map whose runs are finished. KeyError if one is not."""
    machines, broken = [], []
    suites = dict(sweep.suites())
    for name in plan.variants:
        evaluations = [Evaluation(suites[plan.run(name, launch)], store) for launch in plan.launches]
        settings = plan.variants[name].settings
        changed = load_machine(sweep.suite.machine, {**sweep.suite.settings, **settings})
        machines.append(
            MappedMachine(
                name=name, changes=list(plan.changes[name]), settings=settings, why=plan.variants[name].why,
                rule=changed.arbiter.mca, cells=[Cell.of(evaluations, point) for point in sweep.points],
            )
        )  # fmt: skip
        runs = (
            evaluation.record(point, policy)
            for evaluation in evaluations
            for point in sweep.points
            for policy in OVERLAP
        )
        broken += [f"{name}: {text}" for run in runs for text in failures(run)]
    suite = sweep.suite
    return ArbitrationMap(
        sources=digest_for(suite.hardware),
        machine=suite.machine,
        settings=dict(suite.settings),
        hardware=suite.hardware,
        seed=suite.seed,
        quick=quick,
        gemms=[WorkloadRecord.of(suite.workload(point)) for point in sweep.points],
        changes=axes.changes,
        singles={axis: list(names) for axis, names in plan.singles.items()},
        machines=machines,
        failures=broken,
    )
