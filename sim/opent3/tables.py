"""What commands print of single runs: results, speed, and the models held against what is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from t3sim.common.fitted_table import FittedTable
from t3sim.common.units import BYTES, COUNTS, TIMES, Unit, digits, unit_of, with_unit
from t3sim.run.request import CAUSE_TITLES
from t3sim.run.result import GemmRecord, Result

if TYPE_CHECKING:  # they take seconds to import
    from t3sim.validation.alu import Row as AluRow
    from t3sim.validation.bench import Bench
    from t3sim.validation.gpu_model import GpuRow
    from t3sim.validation.gpu_record import GpuRecord, Shape, Timing
    from t3sim.validation.hbm import Row
    from t3sim.validation.memory_rate.record import TrackerWaits
    from t3sim.validation.scaling import Scaling

SECOND = 1e9
"""In ns."""


def tiling_text(gemm: GemmRecord) -> str:
    """The GEMM's workgroup tile and what follows from it, in one line."""
    return (
        f"GEMM: {gemm.workgroups} workgroups of {gemm.tile_rows} x {gemm.tile_cols} in {gemm.waves} "
        f"stage{'s' * (gemm.waves > 1)}, predicted {with_unit(TIMES, gemm.predicted_ns)}"
    )


def result_table(results: Sequence[Result], speedups: Sequence[float | None]) -> FittedTable:
    """Quantities down, policies across; all times have one unit, and so have all bytes and all cycles."""
    table = FittedTable("", *(result.policy for result in results))
    time = unit_of(TIMES, (result.time_ns.total for result in results))
    traffic = unit_of(BYTES, (result.traffic_bytes_per_gpu.total for result in results))
    cycles = unit_of(COUNTS, (result.rtl.cycles for result in results if result.rtl))

    def row(title: str, cell: Callable[[Result], object], *, always: bool = True) -> None:
        """A row; unless ``always``, only if some run has it."""
        values = [cell(result) for result in results]
        if always or any(value is not None for value in values):
            table.add_row(title, *("-" if value is None else str(value) for value in values))

    row(time.title("time"), lambda r: time.text(r.time_ns.total))
    table.add_row("speedup over sequential", *("-" if value is None else f"{value:.3f}" for value in speedups))
    row(time.title("  GEMM"), lambda r: time.text(r.time_ns.gemm))
    row(time.title("  reduce-scatter"), lambda r: time.text(r.time_ns.reduce_scatter))
    row(time.title("  all-gather"), lambda r: time.text(r.time_ns.all_gather))
    row(time.title("  exposed"), lambda r: time.text(r.time_ns.exposed_communication))
    row(traffic.title("DRAM traffic per GPU"), lambda r: traffic.text(r.traffic_bytes_per_gpu.total))
    for cause, title in CAUSE_TITLES.items():
        row(traffic.title(f"  {title}"), partial(_bytes, traffic, cause))
    # That nothing was checked is said; that there was no tracker, or no RTL, is of no interest.
    row("data check: elements", lambda r: r.data_check and r.data_check.elements)
    row("  mismatches", lambda r: r.data_check and r.data_check.mismatches)
    row("blocks by tile / by chunk", lambda r: r.blocks and f"{r.blocks.by_tile} / {r.blocks.by_chunk}", always=False)
    row(cycles.title("RTL cycles"), lambda r: r.rtl and cycles.text(r.rtl.cycles), always=False)
    row(cycles.title("  evaluated"), lambda r: r.rtl and cycles.text(r.rtl.cycles_evaluated), always=False)
    row(cycles.title("  skipped, idle"), lambda r: r.rtl and cycles.text(r.rtl.cycles_skipped), always=False)
    return table


def _bytes(unit: Unit, cause: str, result: Result) -> str:
    return unit.text(getattr(result.traffic_bytes_per_gpu, cause))


def bench_tables(bench: Bench) -> list[FittedTable]:
    """What is held against targets; evaluations by event and what they sum to; evaluations by part and their time."""
    targets = FittedTable("figure", "measured", "target", "")
    for row in bench.targets:
        sign = "<=" if row.ceiling else ">="
        targets.add_row(row.name, f"{row.measured:.3g}", f"{sign} {row.limit:g}", "ok" if row.ok else "MISS")
    events = FittedTable("for each", "evaluations", "times", "sum")
    for cost in bench.costs:
        events.add_row(cost.event, f"{cost.per_event:.2f}", f"{cost.count}", f"{cost.evaluations:.0f}")
    others = bench.evaluations - sum(cost.evaluations for cost in bench.costs)
    events.add_row("all else (matcher, monitor, registers, NMC)", "", "", f"{others:.0f}")
    each = f"{bench.evaluations / bench.lines:.2f}"
    events.add_row(f"all ({bench.evaluated_share:.2%} of part-cycles), for each line", each, f"{bench.lines}",
                   f"{bench.evaluations}")  # fmt: skip
    time = unit_of(TIMES, [SECOND * bench.simulate_seconds])
    parts = FittedTable("part", "evaluations", "per s (Numba)", "per s (C)", time.title("time"))
    for part in bench.parts:
        parts.add_row(
            part.name,
            f"{part.evaluations}",
            f"{part.speed.in_numba:.3g}",
            f"{part.speed.in_c:.3g}",
            time.text(SECOND * part.seconds),
        )
    parts.add_row("all", f"{bench.evaluations}", "", "", time.text(SECOND * bench.rtl_seconds))
    share = f"{bench.rtl_share:.0%} of {time.text(SECOND * bench.simulate_seconds)}"
    parts.add_row("share of simulation", "", "", "", share)
    return [targets, events, parts]


def scaling_table(scaling: Scaling, axis: str) -> FittedTable:
    """Time and memory of one simulated GPU over the values of ``axis``, and what it did in that time."""
    points = scaling.of(axis)
    memory = unit_of(BYTES, [point.state_bytes for point in points])
    table = FittedTable(axis, "s", memory.title("state"), "ns a burst", "evaluations a burst", "us/s")
    for point in points:
        evaluations = "-" if point.evaluations is None else f"{point.evaluations / point.bursts:.2f}"
        table.add_row(
            f"{point.value}",
            f"{point.seconds:.2f}",
            memory.text(point.state_bytes),
            f"{1e9 * point.seconds / point.bursts:.0f}",
            evaluations,
            f"{point.simulated_ns / 1e3 / point.seconds:.0f}",
        )
    return table


def validation_table(rows: Sequence[Row]) -> FittedTable:
    """Cycles of model and reference for each trace."""
    table = FittedTable("trace", "requests", "model", "reference", "error", "")
    for row in rows:
        table.add_row(
            row.name,
            f"{row.requests}",
            f"{row.cycles}",
            f"{row.reference_cycles}",
            f"{row.error:+.2%}",
            "" if row.within else "OFF",
        )
    return table


def tracker_table(found: TrackerWaits) -> FittedTable:
    """Regimes, and the cycles in which an access waited for the tracker."""
    table = FittedTable("regime", "where", "lines", "chunks overflowed", "cycles blocked", "cause")
    for row in found.rows:
        table.add_row(
            row.regime, row.hardware, f"{row.lines}", f"{row.overflowed_chunks}", f"{row.blocked}", row.cause or "-"
        )
    return table


def alu_table(rows: Sequence[AluRow]) -> FittedTable:
    """Cases of each check of the ALU, how many came out wrong, and how long it took."""
    time = unit_of(TIMES, (SECOND * row.seconds for row in rows))
    rate = unit_of(COUNTS, (row.cases / row.seconds for row in rows if row.seconds))
    speed = f"{rate.name} of cases per s" if rate.name else "cases per s"
    table = FittedTable("check", "cases", "alone in a line", "differences", time.title("time"), speed)
    for row in rows:
        table.add_row(
            f"{row.dtype} {row.op}",
            f"{row.cases}",
            f"{row.alone}",
            f"{row.differences}",
            time.text(SECOND * row.seconds),
            rate.text(row.cases / row.seconds) if row.seconds else "-",
        )
    return table


def gpu_table(record: GpuRecord, rows: Sequence[GpuRow]) -> FittedTable:
    """Times of the GEMMs, and how copies of each rate slow them; beside the model's, if there are ``rows``."""
    rates = [timing.asked_gb_s for timing in record.shapes[0].timings[1:]]
    measured = [f"x at {rate:g} GB/s" for rate in rates]
    times = ["model (us)", "its error", "model at GPU's clock (us)", "its error"]
    model = [*times, *(f"model {title}" for title in measured)] if rows else []
    table = FittedTable("GEMM", "TP", "M", "N", "K", "clock (MHz)", "time (us)", *measured, *model)
    for number, shape in enumerate(record.shapes):
        sizes = (", ".join(shape.names), *map(str, (shape.tp, shape.m, shape.n, shape.k)))
        cells = [
            f"{shape.timings[0].clock_mhz:.0f}",
            digits(shape.timings[0].us),
            *_slowdowns({t.asked_gb_s: _slowdown(shape, t) for t in shape.timings}, rates),
        ]
        if rows:
            row = rows[number]
            slowed = {item.asked_gb_s: item.modelled for item in row.slowdowns}
            cells += [digits(row.model_us), f"{row.error:+.1%}"]
            cells += [digits(row.model_at_clock_us), f"{row.error_at_clock:+.1%}", *_slowdowns(slowed, rates)]
        table.add_row(*sizes, *cells)
    return table


def _slowdown(shape: Shape, timing: Timing) -> float:
    return median(shape.slowdowns(timing))


def _slowdowns(found: Mapping[float, float], rates: Sequence[float]) -> list[str]:
    return [f"{found[rate]:.3f}" if rate in found else "-" for rate in rates]
