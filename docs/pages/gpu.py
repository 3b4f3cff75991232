"""The page of the model beside GPUs: ``python -m docs.pages gpu`` writes it from what was measured and compared."""

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from t3sim.inputs.machine.files import load_machine
from t3sim.run.records import read_record
from t3sim.validation.gpu_record import GpuRecord, Shape

from docs.pages import RESULTS
from docs.pages.shared.hardware import measured_on
from docs.pages.shared.markdown import paragraph, table
from docs.pages.texts.gpu import ALONE, BESIDE, FINDINGS, HEAD

PAGE = RESULTS / "gpu.md"
KEPT = RESULTS / "gpu"
"""A folder of ``t3 validate gpu`` for each GPU."""
MACHINES = {"h100": "h100-like", "h200": "h200-like"}
"""Folder of :data:`KEPT` -> the machine that its GPU is compared with."""


def page() -> str:
    """The text of :data:`PAGE`, from what is kept. Raises ValueError for a comparison with other measurements."""
    parts = []
    for folder, machine in MACHINES.items():
        record = read_record(KEPT / folder / "gpu.json", GpuRecord)
        comparison = KEPT / folder / "validate.json"
        compared = json.loads(comparison.read_text(encoding="utf-8")) if comparison.exists() else None
        parts.append(section(folder, record, compared, machine))
    return HEAD + "\n" + "\n".join(parts) + "\n" + FINDINGS


def section(folder: str, record: GpuRecord, compared: Mapping[str, Any] | None, machine: str) -> str:
    """What is known of one GPU. Raises ValueError if ``compared`` is of another record or machine."""
    device = record.device
    versions = ", ".join(f"{name} {version}" for name, version in device.versions.items())
    of = paragraph(
        f"{device.name}, driver {device.driver}, {versions}, memory at {device.memory_clock_mhz:.0f} MHz; "
        f"{record.measured[:10]}, {len(record.shapes[0].timings[0].samples_us)} samples. Machine `{machine}`."
    )
    head = f"## {device.name}\n\n{of}![rates and slowdowns](gpu/{folder}/gpu.png)\n\n"
    if compared is None:
        return head + paragraph("Not compared with the model yet.")
    if (compared["measured"], compared["machine"]) != (record.measured, machine):
        raise ValueError(f"{folder}/validate.json is of another measurement than gpu.json, or of another machine")
    rows = compared["shapes"]
    return (
        f"{head}{measured_on(compared.get('hardware'))}{ALONE}\n{_alone(record.shapes, rows, machine)}\n{_errors(rows)}"
        f"{BESIDE}\n{_beside(record.shapes, rows)}\n{_slowdowns(rows)}"
    )


def _alone(shapes: Sequence[Shape], rows: Sequence[Mapping[str, Any]], machine: str) -> str:
    gpu = load_machine(machine).gpu
    peak_per_mhz = gpu.cus * gpu.flop_per_clock_per_cu / 1e6  # TFLOP/s
    heads = ("GEMM", "TP:", "M x N x K / TP", "clock, MHz:", "time, us:", "least to most:", "TFLOP/s:", "of the peak:",
             "model, us:", "its error:", "model at the GPU's clock, us:", "its error:")  # fmt: skip
    cells = []
    for shape, row in zip(shapes, rows, strict=True):
        k, timing = shape.workload().k_range[1], shape.timings[0]
        rate = 2 * shape.m * shape.n * k / timing.us / 1e6
        cells.append((
            ", ".join(shape.names), shape.tp, f"{shape.m} x {shape.n} x {k}", f"{timing.clock_mhz:.0f}",
            f"{timing.us:.1f}", f"{min(timing.samples_us):.1f} to {max(timing.samples_us):.1f}", f"{rate:.0f}",
            f"{rate / peak_per_mhz / timing.clock_mhz:.0%}", f"{row['model_us']:.1f}", f"{row['error']:+.0%}",
            f"{row['model_at_clock_us']:.1f}", f"{row['error_at_clock']:+.0%}",
        ))  # fmt: skip
    return table(heads, cells)


def _errors(rows: Sequence[Mapping[str, Any]]) -> str:
    """Medians and ranges, apart for the GEMMs whose rows of K begin at 16 bytes, and for the others."""
    aligned = [row for row in rows if _is_aligned(row)]
    others = [row for row in rows if not _is_aligned(row)]
    texts = [
        f"{_spread(some, 'error')} at the machine's clock and {_spread(some, 'error_at_clock')} at the GPU's"
        for some in (aligned, others)
    ]
    return paragraph(
        f"Median error of the {len(aligned)} GEMMs whose K / TP is a multiple of 8: {texts[0]}; of the {len(others)} "
        f"others: {texts[1]}."
    )


def _is_aligned(row: Mapping[str, Any]) -> bool:
    return -(-row["k"] // row["tp"]) % 8 == 0


def _spread(rows: Sequence[Mapping[str, Any]], key: str) -> str:
    values = [row[key] for row in rows]
    return f"{median(values):+.0%} ({min(values):+.0%} to {max(values):+.0%})"


def _beside(shapes: Sequence[Shape], rows: Sequence[Mapping[str, Any]]) -> str:
    rates = [timing.asked_gb_s for timing in shapes[0].timings[1:]]
    heads = (
        "GEMM",
        "TP:",
        *(title for rate in rates for title in (f"{rate:g} GB/s asked, GB/s:", "slowdown:", "model:")),
    )
    return table(heads, (_beside_row(shape, row) for shape, row in zip(shapes, rows, strict=True)))


def _slowdowns(rows: Sequence[Mapping[str, Any]]) -> str:
    """Medians beside the fastest copies, and beside T3's traffic."""
    fastest = [row["slowdowns"][-1] for row in rows]
    copies, measured, model = (median(item[key] for item in fastest) for key in ("copies_gb_s", "measured", "modelled"))
    traffic, slowdown = (median(row[key] for row in rows) for key in ("t3_gb_s", "t3_slowdown"))
    return paragraph(
        f"Medians: the fastest copies, of {copies:.0f} GB/s each way, lengthen a GEMM by {measured - 1:.1%}, in the "
        f"model by {model - 1:.1%}; T3's traffic, of {traffic:.0f} GB/s, lengthens it there by {slowdown - 1:.1%}."
    )


def _beside_row(shape: Shape, row: Mapping[str, Any]) -> tuple[object, ...]:
    items = row["slowdowns"]
    cells = ((f"{item['copies_gb_s']:.1f}", f"{item['measured']:.3f}", f"{item['modelled']:.3f}") for item in items)
    return (", ".join(shape.names), shape.tp, *(cell for three in cells for cell in three))
