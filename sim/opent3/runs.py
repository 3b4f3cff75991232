"""One sublayer under one policy or several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from t3sim.common.output import output_folder
from t3sim.inputs import arguments
from t3sim.inputs.machine.standing import caution
from t3sim.inputs.workload import Workload
from t3sim.run.policies import Watch, failures, run_policies, speedups, write_comparison, write_run
from t3sim.run.request import COMPARED, Policy, RunRequest, RunResult, Timeline

from .advice import overflow_advice
from .frames import record_frame
from .options import Options, preview_options, requests_of, silent
from .traces import check_traceable, trace_output, write_trace

if TYPE_CHECKING:  # they take a second to import
    import pandas as pd
    from rich.console import RenderableType


@dataclass(frozen=True, kw_only=True)
class Run(RunResult):
    """A finished simulation: what was asked for, the record (all of ``result.json``), what happened when, real time.

    The ideal policies are computed from others and have no timeline.
    """

    request: RunRequest

    @property
    def failures(self) -> list[str]:
        """Accounting identities that do not hold and output elements that differ; empty if the run is sound."""
        return failures(self.record)

    @property
    def warnings(self) -> list[str]:
        """What a reader of the result should know, each with a remedy; the command prints it."""
        return Comparison(runs={self.request.policy: self}).warnings

    def frame(self) -> pd.DataFrame:
        """The record as one row; nested fields are columns such as ``time_ns.total`` (ns, bytes, cycles)."""
        return record_frame([self.record])

    def timeline_frame(self) -> pd.DataFrame:
        """A row for each GPU and bin: ``start_ns``, ``cu_busy`` (0 to 1), ``link_bytes``, ``updates`` and
        ``local_updates`` (lines of 32 bytes), DRAM bytes by cause, and what waits when the bin begins
        (``queues.dram_mean`` and so on, as in ``timeline.json``). Raises ValueError for a computed policy."""
        import numpy as np
        import pandas as pd

        timeline = self._timeline()
        gpus, bins = timeline.cu_busy.shape
        table = pd.DataFrame({"gpu": np.repeat(np.arange(gpus), bins)})
        table["start_ns"] = np.tile(np.arange(bins) * timeline.bin_ns, gpus)
        for name in ("cu_busy", "link_bytes", "updates", "local_updates"):
            table[name] = getattr(timeline, name).ravel()
        for cause, values in timeline.bytes.items():
            table[cause] = values.ravel()
        for queue, values in timeline.queues.items():
            table[f"queues.{queue}"] = values.ravel()
        return table

    def interval_frame(self) -> pd.DataFrame:
        """A row for each phase of a GPU: ``gpu``, ``kind``, ``start_ns``, ``end_ns``. ValueError as above."""
        import pandas as pd

        return pd.DataFrame([asdict(interval) for interval in self._timeline().intervals])

    def trigger_frame(self) -> pd.DataFrame:
        """A row for each DMA block that fired: ``gpu``, ``chunk``, ``time_ns``. ValueError as above."""
        import pandas as pd

        events = [asdict(event) for event in self._timeline().triggers]
        return pd.DataFrame(events, columns=["gpu", "chunk", "time_ns"])

    def save(self, folder: str | Path) -> None:
        """Writes what ``t3 run -o`` writes. Raises ValueError if ``folder`` holds what is not t3's."""
        with output_folder(arguments.path("folder", folder)) as inside:
            write_run(self.request, self, inside)

    def trace(self, path: str | Path) -> None:
        """Writes what every GPU does when, for https://ui.perfetto.dev, as ``t3 run --trace`` does.

        Raises ValueError if the run did not keep it (``events``), and if ``path`` may not or cannot be written.
        """
        write_trace({self.request.policy: self}, arguments.path("path", path))

    def table(self) -> RenderableType:
        """What ``t3 run`` prints, for Rich."""
        return Comparison(runs={self.request.policy: self}).table()

    def _timeline(self) -> Timeline:
        if self.timeline is None:
            raise ValueError(f"policy {self.record.policy} is computed from others: it has no timeline")
        return self.timeline


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Runs of one sublayer by policy, in the order in which they were asked for."""

    runs: Mapping[Policy, Run]

    @property
    def speedups(self) -> dict[Policy, float | None]:
        """Time of the sequential policy over that of each; None if ``sequential`` is not among them."""
        gains = speedups([run.record for run in self.runs.values()])
        return dict(zip(self.runs, gains, strict=True))

    @property
    def failures(self) -> list[str]:
        """As :attr:`Run.failures`, of all runs."""
        return [text for run in self.runs.values() for text in run.failures]

    @property
    def warnings(self) -> list[str]:
        """As :attr:`Run.warnings`, of all runs together."""
        request = next(iter(self.runs.values())).request
        records = [run.record for run in self.runs.values()]
        return [*caution(request.machine), *overflow_advice(records, request.machine.hardware.config())]

    def frame(self) -> pd.DataFrame:
        """A row for each policy: :meth:`Run.frame`, and the column ``speedup``."""
        table = record_frame([run.record for run in self.runs.values()])
        table.insert(1, "speedup", list(self.speedups.values()))
        return table

    def save(self, folder: str | Path) -> None:
        """Writes what ``t3 compare -o`` writes. Raises ValueError if ``folder`` holds what is not t3's."""
        with output_folder(arguments.path("folder", folder)) as inside:
            self._write(inside)

    def trace(self, path: str | Path) -> None:
        """Writes one trace of all runs that were simulated, as :meth:`Run.trace`."""
        write_trace(self.runs, arguments.path("path", path))

    def table(self) -> RenderableType:
        """What ``t3 compare`` prints, for Rich: the tiling, and quantities down, policies across."""
        from rich.console import Group  # here, because it takes a while to import

        from .tables import result_table, tiling_text

        records = [run.record for run in self.runs.values()]
        return Group(tiling_text(records[0].gemm), result_table(records, list(self.speedups.values())))

    def _write(self, folder: Path) -> None:
        write_comparison(next(iter(self.runs.values())).request, dict(self.runs), folder)


def run(
    workload: Workload,
    policy: Policy = "t3-mca",
    *,
    watch: Watch | None = None,
    out: str | Path | None = None,
    trace: str | Path | None = None,
    **options: Unpack[Options],
) -> Run:
    """Simulates ``policy``. With ``out`` the results are written there as by :meth:`Run.save`, with ``trace`` what
    happens when as by :meth:`Run.trace`; whether they can be is checked first.

    Raises ValueError for what cannot be simulated or written, BuildError if the hardware cannot be compiled,
    SimulationError if the simulated system does what it never may.
    """
    requests, where = _requests(workload, (policy,), trace, options), arguments.path_of("out", out)
    with output_folder(where) as folder, trace_output(arguments.path_of("trace", trace), where, folder) as write:
        found = _simulated(requests, watch)
        if folder is not None:
            write_run(requests[0], found.runs[policy], folder)
        write(found.runs)
    return found.runs[policy]


def compare(
    workload: Workload,
    policies: Sequence[Policy] = COMPARED,
    *,
    watch: Watch | None = None,
    out: str | Path | None = None,
    trace: str | Path | None = None,
    preview: str | Path | None = None,
    on_preview: Callable[[Comparison], None] | None = None,
    **options: Unpack[Options],
) -> Comparison:
    """Simulates each of ``policies`` on the same sublayer; ``out``, ``trace`` and errors as with :func:`run`.

    With ``preview`` one GPU is simulated first and its traffic reflected, which is quicker: that comparison is written
    into the folder ``preview``, where it stays whatever happens to the other, and given to ``on_preview``.
    """
    requests, where = _requests(workload, policies, trace, options), arguments.path_of("out", out)
    early = preview_options(arguments.path_of("preview", preview), where, options)
    early_requests = requests_of(workload, policies, **early) if early is not None else []
    with output_folder(where) as folder, trace_output(arguments.path_of("trace", trace), where, folder) as write:
        if early_requests:
            with output_folder(arguments.path_of("preview", preview)) as inside:
                seen = _simulated(early_requests, watch, "preview of ")
                if inside is not None:
                    seen._write(inside)
            if on_preview is not None:
                on_preview(seen)
        found = _simulated(requests, watch)
        if folder is not None:
            found._write(folder)
        write(found.runs)
    return found


def _requests(
    workload: Workload, policies: Sequence[Policy], trace: str | Path | None, options: Options
) -> list[RunRequest]:
    """The requests; they keep events if there is a trace to be written."""
    if trace is None:
        return requests_of(workload, policies, **options)
    kept: Options = {**options, "events": True}
    requests = requests_of(workload, policies, **kept)
    check_traceable([request.policy for request in requests])
    return requests


def _simulated(requests: Sequence[RunRequest], watch: Watch | None, label: str = "") -> Comparison:
    """The runs of requests that differ in their policy alone; ``label``: what their names begin with for ``watch``."""
    shown = watch or silent
    results = run_policies(requests[0], [request.policy for request in requests], lambda name: shown(label + name))
    return Comparison(
        runs={request.policy: Run(request=request, **vars(results[request.policy])) for request in requests}
    )
