"""Whole models: where their time goes, and how much of it an overlap can hide."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from t3sim.common.json_text import json_text
from t3sim.common.output import output_folder, write_atomically
from t3sim.inputs import arguments
from t3sim.inputs.machine.files import CONFIG, Machine
from t3sim.inputs.transformer.sublayers import sublayer_runs
from t3sim.inputs.transformer.transformer import Phase, SizedModel
from t3sim.inputs.workload import named_model
from t3sim.run.request import Policy
from t3sim.run.result import Result
from t3sim.study.end_to_end import ModelTime
from t3sim.study.evaluation import Evaluation
from t3sim.study.layer.operators import layer_operators, sized_model
from t3sim.study.layer.work import AttentionKernels
from t3sim.study.model_record import WholeModelRecord, model_record
from t3sim.study.suite import BASELINE, OVERLAPPED, Point

from .frames import record_frame
from .many import ManyOptions, run_all, suite_of

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

OWN_DEGREE = 8
"""GPUs of a user's model, if nothing else is said."""


@dataclass(frozen=True, kw_only=True)
class ModelResult:
    """A whole model: ``time`` says where it goes; ``records`` are those of the sublayers that were simulated for it,
    on ``machine``. ``record`` is all of ``model.json``."""

    time: ModelTime
    records: tuple[Result, ...]
    record: WholeModelRecord
    machine: Machine

    @property
    def speedups(self) -> dict[str, float]:
        """Of every policy over the sequential one."""
        return {policy: self.time.speedup(policy) for policy in self.time.sublayers}

    @property
    def failures(self) -> list[str]:
        """Accounting identities that do not hold, by sublayer; empty if all runs are sound."""
        return self.record.failures

    def frame(self) -> pd.DataFrame:
        """A row for each policy: times in ns (``sublayers_ns``, ``other_ns``, ``total_ns``) and ``speedup``."""
        import pandas as pd  # here and below, because it takes half a second to import

        time = self.time
        rows = [
            {"policy": policy, "sublayers_ns": time.sublayer_ns(policy), "other_ns": time.other_ns,
             "total_ns": time.total_ns(policy), "speedup": gain}
            for policy, gain in self.speedups.items()
        ]  # fmt: skip
        return pd.DataFrame(rows)

    def operator_frame(self) -> pd.DataFrame:
        """A row for each operator that is a roofline: work and bytes of one run, its bounds in ns, and all runs."""
        import pandas as pd

        rows = [
            {"operator": item.operator.name, "kind": item.operator.kind, "flop": item.operator.flop,
             "bytes": item.operator.bytes, "runs": item.count, "compute_ns": item.compute_ns,
             "memory_ns": item.memory_ns, "total_ns": item.total_ns}
            for item in self.time.operators
        ]  # fmt: skip
        return pd.DataFrame(rows)

    def record_frame(self) -> pd.DataFrame:
        """A row for each simulated sublayer, as :meth:`Run.frame`."""
        return record_frame(self.records)

    def save(self, folder: str | Path) -> None:
        """Writes what ``t3 model -o`` writes. Raises ValueError if ``folder`` holds what is not t3's."""
        with output_folder(arguments.path("folder", folder)) as inside:
            self._write(inside)

    def table(self) -> RenderableType:
        """What ``t3 model`` prints, for Rich: operators, policies, and Amdahl's bounds."""
        from rich.console import Group  # here, because it takes a while to import
        from t3sim.study.model_output import operator_table, policy_table

        return Group(operator_table(self.time), "", policy_table(self.time), "", self.record.amdahl.text)

    def _write(self, folder: Path) -> None:
        from t3sim.study.model_output import draw_model

        write_atomically(folder / "model.json", json_text(self.record.model_dump(by_alias=True)))
        write_atomically(folder / CONFIG, self.machine.to_toml())
        draw_model(self.record, folder / "model")


def model(
    name: str | SizedModel = "t-nlg",
    tp: int | None = None,
    phase: Phase | None = None,
    *,
    attention: AttentionKernels = "unfused",
    optimizer: bool = False,
    out: str | Path | None = None,
    **options: Unpack[ManyOptions],
) -> ModelResult:
    """The time of a whole model: its all-reduced sublayers are simulated, everything else is a roofline.

    ``name``: one of the paper's, or a model of the user's own (:func:`own_model`). ``tp``: GPUs (the paper's lowest; 8
    for a user's own). ``phase``: "training" (the default) or "prompt"; a user's own has its own. ``attention``:
    "unfused" or "fused" kernels. ``optimizer``: with one Adam step. One GPU of the ring is simulated, on the hardware
    "golden" by default; finished runs are kept. Whether ``out`` can be written is checked before the first run. Raises
    ValueError and RunsFailedError as :func:`sweep`.
    """
    own = name if isinstance(name, SizedModel) else None
    if own is None:
        arguments.instance("name", name, str, "the name of a model, or a model, as of own_model")
    elif phase not in (None, own.phase):
        raise ValueError(f"phase must be that of the model, {own.phase!r}, or None, not {phase!r}")
    phase = own.phase if own is not None else phase or "training"
    title = own.name if own is not None else str(name)
    degree = arguments.integer("tp", tp) if tp is not None else OWN_DEGREE if own else named_model(title).tp[0]
    layer_operators(own or title, degree, phase, attention)  # refuses what cannot be before anything runs
    if optimizer and phase != "training":
        raise ValueError(f"--optimizer belongs to --phase training, not to {phase!r}")
    suite = suite_of(options, hardware="golden", quick=True, own=own)
    sublayers = sublayer_runs(sized_model(own or title, phase), degree)
    policies: tuple[Policy, ...] = (BASELINE, *OVERLAPPED)
    wanted = [(Point(model=title, sublayer=name, tp=degree), policy) for name in sublayers for policy in policies]
    with output_folder(arguments.path_of("out", out)) as folder:
        store = run_all([suite.experiment(point, policy) for point, policy in wanted], options)
        evaluation = Evaluation(suite, store)
        time = evaluation.model_time(title, degree, phase, attention, optimizer=optimizer)
        records = tuple(evaluation.record(point, policy) for point, policy in wanted)
        result = ModelResult(
            time=time, records=records, record=model_record(suite, time, records), machine=suite.machine_of("base")
        )
        if folder is not None:
            result._write(folder)
    return result
