"""The finished runs of a suite, and what is measured from them in the units of the published figures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from t3sim.inputs.transformer.sublayers import sublayer_runs
from t3sim.inputs.transformer.transformer import Phase
from t3sim.run.ideal import COMPUTED, ideal_overlap
from t3sim.run.request import Policy, RunResult
from t3sim.run.result import Result, TimeNs

from .end_to_end import ModelTime, model_time
from .layer.operators import sized_model
from .layer.work import AttentionKernels
from .store import Outcome, Store
from .suite import BASELINE, OVERLAPPED, TP_8_16, TP_32, Point, Suite, Variant


def geomean(values: Iterable[float]) -> float:
    """Geometric mean."""
    return float(np.exp(np.mean(np.log(list(values)))))


@dataclass(frozen=True)
class Evaluation:
    """Results of ``suite``, of which ``store`` has the runs. KeyError for a run that it does not have.

    ``own_rule``: t3-mca on the base machine is that of this project's rule of arbitration.
    """

    suite: Suite
    store: Store
    own_rule: bool = False

    @cached_property
    def _known(self) -> dict[tuple[Point, Policy, Variant, bool], Outcome]:
        return {}

    def outcome(self, point: Point, policy: Policy, variant: Variant = "base", mirror: bool = False) -> Outcome:
        """A simulated run."""
        ours = self.own_rule and policy == "t3-mca" and variant == "base"
        where = point, policy, "backlog" if ours else variant, mirror
        if where not in self._known:
            experiment = self.suite.experiment(*where)
            found = self.store.get(experiment)
            if found is None:
                raise KeyError(experiment.label)
            self._known[where] = found
        return self._known[where]

    def record(self, point: Point, policy: Policy, variant: Variant = "base", mirror: bool = False) -> Result:
        """The record of a simulated or computed policy."""
        if policy not in COMPUTED:
            return self.outcome(point, policy, variant, mirror).record
        base, reduction = (self._run(point, source, variant, mirror) for source in COMPUTED[policy])
        return ideal_overlap(policy, base, reduction).record

    def _run(self, point: Point, policy: Policy, variant: Variant, mirror: bool) -> RunResult:
        outcome = self.outcome(point, policy, variant, mirror)
        return RunResult(record=outcome.record, timeline=None, wall=outcome.wall_seconds)

    def speedup(self, point: Point, policy: Policy, variant: Variant = "base", mirror: bool = False) -> float:
        """Over the sequential policy on the same machine."""
        base = self.record(point, BASELINE, variant, mirror).time_ns.total
        return base / self.record(point, policy, variant, mirror).time_ns.total

    def speedups(self, points: Sequence[Point], policy: Policy, variant: Variant = "base") -> list[float]:
        """One for each point."""
        return [self.speedup(point, policy, variant) for point in points]

    def traffic_ratio(self, point: Point, causes: Sequence[str], policy: Policy = "t3-mca") -> float:
        """Bytes of ``causes`` under ``policy`` for each byte under the sequential policy."""
        new, old = (
            sum(getattr(self.record(point, name).traffic_bytes_per_gpu, cause) for cause in causes)
            for name in (policy, BASELINE)
        )
        return float(new / old)

    def model_time(
        self, model: str, tp: int, phase: Phase, attention: AttentionKernels = "unfused", *, optimizer: bool = False
    ) -> ModelTime:
        """A whole model, with the simulated times of its sublayers (:func:`~t3sim.study.end_to_end.model_time`)."""
        named = self.suite.own or model
        times: dict[str, dict[str, TimeNs]] = {
            policy: {
                sublayer: self.record(Point(model=model, sublayer=sublayer, tp=tp), policy).time_ns
                for sublayer in sublayer_runs(sized_model(named, phase), tp)
            }
            for policy in (BASELINE, *OVERLAPPED)
        }
        machine = self.suite.machine_of("base")
        return model_time(named, tp, phase, times, machine, attention, optimizer=optimizer)


Measure = Callable[[Evaluation], Mapping[str, float]]


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def _sublayers(e: Evaluation) -> dict[str, float]:
    gains = {name: np.array(e.speedups(TP_8_16, name)) for name in (*OVERLAPPED, *COMPUTED)}
    ideal, t3, mca = gains["ideal-overlap"], gains["t3"], gains["t3-mca"]
    off = 100 * (1 - t3 / ideal)
    fc = np.array([point.sublayer in ("fc1", "fc2") for point in TP_8_16])
    op = np.array([point.sublayer == "op" for point in TP_8_16])
    return {
        "ideal-geomean": geomean(ideal), "ideal-max": ideal.max(),
        "t3-geomean": geomean(t3), "t3-max": t3.max(),
        "t3-mca-geomean": geomean(mca), "t3-mca-max": mca.max(),
        "t3-mca-off-ideal": 100 * (1 - geomean(mca / ideal)),
        "t3-mca-over-t3-geomean": geomean(mca / t3), "t3-mca-over-t3-max": (mca / t3).max(),
        "t3-fc-off-ideal": off[fc].max(), "t3-op-off-ideal": off[op].max(),
        "nmc-on-ideal": _percent((gains["ideal-overlap-nmc"] / ideal).max()),
    }  # fmt: skip


def _nmc(e: Evaluation) -> dict[str, float]:
    return {f"nmc-rs-tp{tp}": _percent(geomean(nmc_gain(e, p) for p in TP_8_16 if p.tp == tp)) for tp in (8, 16)}


def nmc_gain(e: Evaluation, point: Point) -> float:
    """Time of the sequential reduce-scatter over that of the one with near-memory reduction, one GPU mirrored."""
    plain = e.record(point, BASELINE, mirror=True).time_ns.reduce_scatter
    return plain / e.record(point, "sequential-nmc", mirror=True).time_ns.reduce_scatter


def _traffic(e: Evaluation) -> dict[str, float]:
    def ratios(*causes: str, tp: int | None = None) -> list[float]:
        return [e.traffic_ratio(point, causes) for point in TP_8_16 if tp in (None, point.tp)]

    return {
        "traffic-geomean": _percent(geomean(ratios("total"))),
        "traffic-max": _percent(min(ratios("total"))),
        "rs-reads": 1 / geomean(ratios("rs_read")),
        "rs-reads-tp8": 1 / geomean(ratios("rs_read", tp=8)),
        "rs-reads-tp16": 1 / geomean(ratios("rs_read", tp=16)),
        "output-writes": _percent(geomean(ratios("gemm_write", "rs_write"))),
        "gemm-reads": 1 / geomean(ratios("gemm_read")),
        "ag-traffic": _percent(geomean(ratios("ag_read", "ag_write"))),
    }


def _tp32(e: Evaluation) -> dict[str, float]:
    gains = e.speedups(TP_32, "t3-mca")
    ideal = [e.speedup(point, "ideal-overlap") for point in TP_32 if point.sublayer == "op"]
    return {"tp32-geomean": geomean(gains), "tp32-max": max(gains), "tp32-op-ideal": geomean(ideal)}


def _end_to_end(e: Evaluation) -> dict[str, float]:
    pairs = sorted({(point.model, point.tp) for point in TP_8_16})
    found = {}
    phases: tuple[Phase, ...] = ("training", "prompt")
    for phase in phases:
        for policy in OVERLAPPED:
            gains = [e.model_time(model, tp, phase).speedup(policy) for model, tp in pairs]
            found[f"{phase}-{policy}-geomean"] = _percent(geomean(gains))
            found[f"{phase}-{policy}-max"] = _percent(max(gains))
    return found


MEASURES: Mapping[str, Measure] = MappingProxyType({
    "sublayers": _sublayers, "nmc": _nmc, "traffic": _traffic, "tp32": _tp32, "end-to-end": _end_to_end,
})  # fmt: skip
"""Table -> its measured values, by the names of the published figures."""


def measure_by_own_rule(evaluation: Evaluation, tables: Iterable[str]) -> dict[str, float]:
    """The same as :func:`measure`, with t3-mca by this project's rule of arbitration."""
    return measure(replace(evaluation, own_rule=True), tables)


def measure(evaluation: Evaluation, tables: Iterable[str]) -> dict[str, float]:
    """What ``tables`` measure, by the names of the published figures."""
    return {
        name: float(value)
        for table in tables
        if table in MEASURES
        for name, value in MEASURES[table](evaluation).items()
    }
