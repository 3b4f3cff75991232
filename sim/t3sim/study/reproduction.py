"""``reproduce.json``: every published figure beside the measured one, and all that was measured for it."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from t3sim import __version__
from t3sim.common.strict_record import StrictRecord
from t3sim.inputs.transformer.transformer import Phase
from t3sim.run.ideal import COMPUTED
from t3sim.run.policies import failures
from t3sim.run.request import Backend, Policy
from t3sim.run.result import Result

from .evaluation import Evaluation, measure, measure_by_own_rule
from .layer.operators import PHASES
from .layer.work import ATTENTIONS, AttentionKernels
from .published import Verdict, published
from .records.titles import sublayer_title
from .sources import digest_for
from .suite import BASELINE, NEEDS, OVERLAP, PUBLISHED_RULE, Point, Variant

_Where = tuple[Point, Policy, Variant, bool]
"""What names a run: point, policy, machine, and whether one GPU is mirrored."""


class FigureRecord(StrictRecord):
    """A published figure and ours, both in ``unit``; ``low`` and ``high`` are the limits of its band.

    ``measured``, and the verdict on it, are of the paper's rule of arbitration, ``own_rule`` of this project's; None in
    records from before it was measured.
    """

    name: str
    table: str
    title: str
    unit: str
    published: float
    low: float | None
    high: float | None
    band: str | None
    measured: float | None
    own_rule: float | None = None
    verdict: Verdict
    note: str
    source: str

    def limits(self, text: Callable[[float], str]) -> str:
        """The band, each limit as ``text`` writes it: ``1.2x to 1.4x``, ``at least 1.2x``; empty without a limit."""
        low, high = (None if limit is None else text(limit) for limit in (self.low, self.high))
        if low is not None and high is not None:
            return f"{low} to {high}"
        if low is not None:
            return f"at least {low}"
        return "" if high is None else f"at most {high}"


class RunRecord(StrictRecord):
    """A run on a machine of the report; ``speedup`` is over the sequential run that is like it in all else."""

    variant: Variant
    speedup: float | None
    result: Result


class ModelRecord(StrictRecord):
    """A whole model: its time in ns, of which ``sublayers_ns`` in all-reduced sublayers, and its speedup."""

    model: str
    tp: int
    phase: Phase
    attention: AttentionKernels
    policy: Policy
    total_ns: float
    sublayers_ns: float
    speedup: float


class Reproduction(StrictRecord):
    """All of ``reproduce.json``. ``sources``: digest of the simulator; ``failures``: what does not add up.

    Every model and phase of ``models`` has both kinds of attention under every policy, or it is a ValueError.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    opent3: str = __version__
    sources: str
    machine: str
    settings: dict[str, Any]
    hardware: Backend
    quick: bool
    seed: int
    tables: list[str]
    figures: list[FigureRecord]
    runs: list[RunRecord]
    models: list[ModelRecord]
    failures: list[str]

    @model_validator(mode="after")
    def _has_whole_models(self) -> Self:
        found = {(item.model, item.tp, item.phase, item.attention, item.policy) for item in self.models}
        for model, tp, phase in sorted({where[:3] for where in found}):
            for attention, policy in itertools.product(ATTENTIONS, OVERLAP):
                if (model, tp, phase, attention, policy) not in found:
                    raise ValueError(f"models has no entry for {model} TP {tp}, {phase}, {attention}, {policy}")
        return self

    def remark(self, figure: FigureRecord) -> str:
        """What is known today of one of the figures: a cause may be found after the runs. Of a figure that is no longer
        published, what is recorded."""
        known = published().get(figure.name)
        return figure.note if known is None else known.remark(_unchanged(self.machine, self.settings))


def reproduction(evaluation: Evaluation, tables: Sequence[str]) -> Reproduction:
    """The record of ``tables``, whose runs are finished. KeyError if one is not."""
    suite = evaluation.suite
    runs = list(_runs(evaluation, tables))
    return Reproduction(
        sources=digest_for(suite.hardware),
        machine=suite.machine,
        settings=dict(suite.settings),
        hardware=suite.hardware,
        quick=suite.quick,
        seed=suite.seed,
        tables=list(tables),
        figures=figures(
            _unchanged(suite.machine, suite.settings),
            measure(evaluation, tables),
            measure_by_own_rule(evaluation, tables),
        ),
        runs=runs,
        models=list(_models(evaluation)) if "end-to-end" in tables else [],
        failures=[f"{sublayer_title(run.result.workload)} {text}" for run in runs for text in failures(run.result)],
    )


def _unchanged(machine: str, settings: Mapping[str, Any]) -> str:
    """The machine, if no more of it is set than the rule of arbitration; else none, of which no causes are known."""
    return "" if settings.keys() - PUBLISHED_RULE.keys() else machine


def figures(machine: str, measured: dict[str, float], own_rule: dict[str, float]) -> list[FigureRecord]:
    """Every published figure with the ones measured on ``machine``, if there are any."""
    found = []
    for name, figure in published().items():
        value = measured.get(name)
        low, high = figure.interval
        found.append(
            FigureRecord(
                name=name, published=figure.value, low=low, high=high, measured=value,
                own_rule=own_rule.get(name), verdict=figure.verdict(value), note=figure.remark(machine),
                **figure.model_dump(include={"table", "title", "unit", "band", "source"}),
            )
        )  # fmt: skip
    return found


def _runs(evaluation: Evaluation, tables: Sequence[str]) -> Iterator[RunRecord]:
    """All runs of ``tables`` and the policies that are computed from them, each once."""
    suite = evaluation.suite
    wanted: dict[tuple[Point, str], _Where] = {}
    for need in (need for table in tables for need in NEEDS[table]):
        for point in suite.points(need):
            for policy in need.policies:
                where = point, policy, need.machine, need.mirror
                wanted.setdefault((point, suite.experiment(*where).key), where)
    simulated = set(wanted.values())
    for point, policy, variant, mirror in wanted.values():
        base = point, suite.experiment(point, BASELINE, variant, mirror).key
        yield _run(evaluation, (point, policy, variant, mirror), comparable=base in wanted)
        for name, sources in COMPUTED.items():
            if policy == sources[-1] and all((point, source, variant, mirror) in simulated for source in sources):
                yield _run(evaluation, (point, name, variant, mirror), comparable=True)


def _run(evaluation: Evaluation, where: _Where, *, comparable: bool) -> RunRecord:
    return RunRecord(
        variant=where[2], speedup=evaluation.speedup(*where) if comparable else None, result=evaluation.record(*where)
    )


def _models(evaluation: Evaluation) -> Iterator[ModelRecord]:
    for model, tp in model_pairs(evaluation):
        for phase in PHASES:
            for attention in ATTENTIONS:
                time = evaluation.model_time(model, tp, phase, attention)
                for policy in OVERLAP:
                    yield ModelRecord(
                        model=model, tp=tp, phase=phase, attention=attention, policy=policy,
                        total_ns=time.total_ns(policy), sublayers_ns=time.sublayer_ns(policy),
                        speedup=time.speedup(policy),
                    )  # fmt: skip


def model_pairs(evaluation: Evaluation) -> list[tuple[str, int]]:
    """The models and degrees of the end-to-end table, in its order."""
    found = [(point.model, point.tp) for need in NEEDS["end-to-end"] for point in evaluation.suite.points(need)]
    return list(dict.fromkeys(found))
