"""All of ``model.json``: where the time of a whole model goes, by operator and policy, and the runs that are in it."""

from typing import Any, Literal

from pydantic import Field

from t3sim import __version__
from t3sim.common.strict_record import StrictRecord
from t3sim.inputs.transformer.notes import notes, size_text
from t3sim.run.policies import failures
from t3sim.run.result import Result

from .end_to_end import ModelTime
from .suite import Suite
from .sweep import OwnModel, own_amounts


class OperatorRecord(StrictRecord):
    """An operator that is a roofline: FLOP and bytes of one run, its bounds in ns, how often it runs, and all runs.
    ``limited_by``: the memory, the matrix units, or the CUs for which there are tiles."""

    name: str
    kind: str
    flop: int
    bytes: int
    runs: int
    compute_ns: float
    memory_ns: float
    limited_by: str
    total_ns: float


class PolicyTimes(StrictRecord):
    """Times of the whole model under a policy [ns]; ``exposed_reduce_scatter``: what is left of the sublayers beside
    GEMM and all-gather, the reduce-scatter that the GEMM does not hide and the time between the parts."""

    gemm: float
    exposed_reduce_scatter: float
    all_gather: float
    other: float
    total: float
    speedup: float


class Amdahl(StrictRecord):
    """Parts of the sequential time, and the speedups that bound what overlap gives."""

    sublayer_share: float
    communication_share: float
    overlap_limit: float
    communication_limit: float

    @property
    def text(self) -> str:
        """What bounds the speedup, as sentences."""
        return (
            f"All-reduced sublayers take {self.sublayer_share:.1%} of the sequential time, communication "
            f"{self.communication_share:.1%}. A perfect overlap of GEMM and reduce-scatter gives at most "
            f"{self.overlap_limit:.3f}x, no communication at all {self.communication_limit:.3f}x."
        )


class SublayerRun(StrictRecord):
    """A simulated sublayer, and how often the model runs it."""

    runs: int
    result: Result


class WholeModelRecord(StrictRecord):
    """All of ``model.json``; ``own``: None for a model of the paper's. ``notes``: sizes and assumptions of one of the
    user's own, as sentences. ``failures``: what does not add up."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    opent3: str = __version__
    machine: str
    settings: dict[str, Any]
    hardware: str
    seed: int
    model: str
    own: OwnModel | None
    notes: list[str]
    tp: int
    phase: str
    attention: str
    policies: dict[str, PolicyTimes]
    amdahl: Amdahl
    operators: list[OperatorRecord]
    sublayers: list[SublayerRun]
    failures: list[str]


def policy_times(time: ModelTime, policy: str) -> PolicyTimes:
    """The times of the model under ``policy``. KeyError for a policy that was not given."""
    counted = [(time.runs[name], one) for name, one in time.sublayers[policy].items()]
    return PolicyTimes(
        gemm=sum(runs * one.gemm for runs, one in counted),
        exposed_reduce_scatter=sum(runs * (one.total - one.gemm - one.all_gather) for runs, one in counted),
        all_gather=sum(runs * one.all_gather for runs, one in counted),
        other=time.other_ns,
        total=time.total_ns(policy),
        speedup=time.speedup(policy),
    )


def model_record(suite: Suite, time: ModelTime, records: tuple[Result, ...]) -> WholeModelRecord:
    """The record of a model whose sublayers' runs are ``records``."""
    operators = [
        OperatorRecord(
            name=item.operator.name, kind=item.operator.kind, flop=item.operator.flop, bytes=item.operator.bytes,
            runs=item.count, compute_ns=item.compute_ns, memory_ns=item.memory_ns, limited_by=item.limit,
            total_ns=item.total_ns,
        )
        for item in time.operators
    ]  # fmt: skip
    return WholeModelRecord(
        machine=suite.machine,
        settings=dict(suite.settings),
        hardware=suite.hardware,
        seed=suite.seed,
        model=time.model,
        own=own_amounts(suite.own),
        notes=[size_text(suite.own), *notes(suite.own, time.tp)] if suite.own else [],
        tp=time.tp,
        phase=time.phase,
        attention=time.attention,
        policies={policy: policy_times(time, policy) for policy in time.sublayers},
        amdahl=Amdahl(
            sublayer_share=time.sublayer_share, communication_share=time.communication_share,
            overlap_limit=time.overlap_limit, communication_limit=time.communication_limit,
        ),
        operators=operators,
        sublayers=[SublayerRun(runs=time.runs[item.workload.sublayer], result=item) for item in records],
        failures=[f"{item.workload.sublayer} {text}" for item in records for text in failures(item)],
    )  # fmt: skip
