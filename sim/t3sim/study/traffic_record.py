"""``traffic.json``: DRAM bytes over time, by cause, of every simulated run of a sweep or of the paper's evaluation.

They are those of GPU 0, in fewer bins than the store has: what a picture shows. Runs of several machines that are one
simulation, because a policy does not use what differs, have one curve.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from t3sim import __version__
from t3sim.common.strict_record import StrictRecord
from t3sim.inputs.geometry import ceil_div
from t3sim.run.request import CAUSES, Cause, Policy
from t3sim.run.result import Result, WorkloadRecord

from .evaluation import Evaluation
from .sources import digest_for
from .store import Outcome, Store, TrafficOverTime
from .suite import NEEDS
from .sweep import Sweep

FILE = "traffic.json"
MOST_BINS = 96


class Curve(StrictRecord):
    """Bytes in bins of ``bin_ns`` from the launch of the GEMM on."""

    bin_ns: float = Field(gt=0)
    bytes: dict[Cause, list[int]]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if set(self.bytes) != set(CAUSES) or len({len(values) for values in self.bytes.values()}) != 1:
            raise ValueError(f"bytes must have the causes {', '.join(CAUSES)}, each with one value per bin")
        return self

    @classmethod
    def of(cls, traffic: TrafficOverTime) -> Self:
        """The same in at most MOST_BINS bins."""
        bins = len(next(iter(traffic.bytes.values())))
        factor = ceil_div(bins, MOST_BINS) or 1

        def coarse(values: Sequence[float]) -> list[int]:
            padded = np.pad(np.asarray(values), (0, -bins % factor)).reshape(-1, factor)
            found: list[int] = np.rint(padded.sum(axis=1)).astype(np.int64).tolist()
            return found

        return cls(bin_ns=traffic.bin_ns * factor, bytes={cause: coarse(traffic.bytes[cause]) for cause in CAUSES})


class CurveUse(StrictRecord):
    """A run, by what a record says of it, and the number of its curve; ``machine``: the name of the variant."""

    machine: str
    workload: WorkloadRecord
    policy: Policy
    mirror: bool
    curve: int = Field(ge=0)


class TrafficRecord(StrictRecord):
    """All of ``traffic.json``."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    opent3: str = __version__
    sources: str
    curves: list[Curve]
    runs: list[CurveUse]

    @model_validator(mode="after")
    def _has_its_curves(self) -> Self:
        if any(run.curve >= len(self.curves) for run in self.runs):
            raise ValueError("runs must name curves that are there")
        return self

    @cached_property
    def _places(self) -> dict[tuple[str, str, str, bool], int]:
        return {_place(run.machine, run.workload, run.policy, run.mirror): run.curve for run in self.runs}

    def of(self, machine: str, result: Result) -> Curve | None:
        """The curve of a run on the machine of that name; None for a computed policy."""
        found = self._places.get(_place(machine, result.workload, result.policy, result.mirror))
        return None if found is None else self.curves[found]

    def text(self) -> str:
        """The JSON of the file, each curve and each run in a line."""
        content = self.model_dump(by_alias=True)
        lists = {
            name: ",\n".join(json.dumps(item, allow_nan=False) for item in content.pop(name))
            for name in ("curves", "runs")
        }
        head = json.dumps(content, allow_nan=False).removesuffix("}")
        return head + "".join(f', "{name}": [\n{lines}\n]' for name, lines in lists.items()) + "}\n"


def _place(machine: str, workload: WorkloadRecord, policy: str, mirror: bool) -> tuple[str, str, str, bool]:
    return machine, workload.model_dump_json(), policy, mirror


def sweep_traffic(sweep: Sweep, store: Store) -> TrafficRecord:
    """Of a sweep whose runs are finished. KeyError if one is not."""

    def runs() -> Iterator[tuple[str, str, Outcome]]:
        for name, suite in sweep.suites():
            evaluation = Evaluation(suite, store)
            for point in sweep.points:
                for policy in sweep.simulated:
                    yield name, suite.experiment(point, policy).key, evaluation.outcome(point, policy)

    return _record(digest_for(sweep.suite.hardware), runs())


def reproduction_traffic(evaluation: Evaluation, tables: Sequence[str]) -> TrafficRecord:
    """Of the paper's evaluation, whose runs for ``tables`` are finished. KeyError if one is not."""
    suite = evaluation.suite

    def runs() -> Iterator[tuple[str, str, Outcome]]:
        for need in (need for table in tables for need in NEEDS[table]):
            for point in suite.points(need):
                for policy in need.policies:
                    where = point, policy, need.machine, need.mirror
                    yield need.machine, suite.experiment(*where).key, evaluation.outcome(*where)

    return _record(digest_for(suite.hardware), runs())


def _record(sources: str, runs: Iterable[tuple[str, str, Outcome]]) -> TrafficRecord:
    """The record of (machine, key, outcome), each run and each curve once."""
    curves: dict[str, Curve] = {}
    numbers: dict[str, int] = {}
    uses: dict[tuple[str, str, str, bool], CurveUse] = {}
    for machine, key, outcome in runs:
        if outcome.traffic is None:
            continue
        if key not in curves:
            numbers[key], curves[key] = len(curves), Curve.of(outcome.traffic)
        record = outcome.record
        use = CurveUse(
            machine=machine, workload=record.workload, policy=record.policy, mirror=record.mirror, curve=numbers[key]
        )
        uses.setdefault(_place(machine, use.workload, use.policy, use.mirror), use)
    return TrafficRecord(sources=sources, curves=list(curves.values()), runs=list(uses.values()))
