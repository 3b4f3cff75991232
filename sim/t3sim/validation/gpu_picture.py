"""The picture of ``t3 validate gpu``: rates of the GEMMs, and by how much copies of each rate slow them."""

from collections.abc import Sequence
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .gpu_model import GpuRow
from .gpu_record import GpuRecord, Shape

MEASURED, MODEL = "tab:blue", "tab:orange"


def gpu_figure(record: GpuRecord, rows: Sequence[GpuRow]) -> Figure:
    """What was measured, and beside it the model of ``rows``, if there are some."""
    figure = Figure(figsize=(10, 2 + 0.22 * len(record.shapes)), layout="constrained")
    title = f"FP16 GEMMs on {record.device.name}, alone and beside copies to and from the host"
    figure.suptitle(title, fontsize="medium")
    rates, slowdowns = figure.subplots(1, 2)
    _draw_rates(rates, record, rows)
    _draw_slowdowns(slowdowns, record, rows)
    figure.legend(*rates.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize="small")
    return figure


def _draw_rates(axes: Axes, record: GpuRecord, rows: Sequence[GpuRow]) -> None:
    places = range(len(record.shapes))
    measured = [_tflop_s(shape, shape.timings[0].us) for shape in record.shapes]
    axes.barh(places, measured, color=MEASURED, label="measured")
    if rows:
        for label, marker, times in (
            ("model, machine's clock", "o", [row.model_us for row in rows]),
            ("model, the GPU's clock", "D", [row.model_at_clock_us for row in rows]),
        ):
            model = [_tflop_s(shape, us) for shape, us in zip(record.shapes, times, strict=True)]
            axes.plot(model, places, marker, color=MODEL, label=label, fillstyle="none" if marker == "o" else "full")
    axes.set_yticks(places, [f"{shape.names[0]}, TP {shape.tp}" for shape in record.shapes], fontsize="small")
    axes.invert_yaxis()
    axes.set_xlabel("rate of the GEMM alone, TFLOP/s")
    axes.grid(axis="x", alpha=0.3)


def _draw_slowdowns(axes: Axes, record: GpuRecord, rows: Sequence[GpuRow]) -> None:
    for shape in record.shapes:
        beside = shape.timings[1:]
        measured = [median(shape.slowdowns(timing)) for timing in beside]
        axes.plot([timing.copies_gb_s for timing in beside], measured, ".", color=MEASURED, alpha=0.6)
    for row in rows:
        rates = [item.copies_gb_s for item in row.slowdowns]
        axes.plot(rates, [item.modelled for item in row.slowdowns], "D", color=MODEL, alpha=0.6, markersize=3)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xlabel("copies, GB/s each way")
    axes.set_ylabel("time over that without copies")
    axes.grid(alpha=0.3)


def _tflop_s(shape: Shape, us: float) -> float:
    return 2 * shape.m * shape.n * shape.workload().k_range[1] / us / 1e6
