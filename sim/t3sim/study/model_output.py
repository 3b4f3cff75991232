"""What ``t3 model`` prints and draws: operators and policies."""

from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.figure import Figure

from t3sim.common.fitted_table import FittedTable
from t3sim.common.units import BYTES, FLOP, TIMES, unit_of
from t3sim.inputs.machine.settings import machine_title

from .drawing import FONT, SPLIT_COLOURS, legend_above, save, stacked_bars
from .end_to_end import ModelTime
from .layer.work import Operator
from .model_record import WholeModelRecord
from .suite import BASELINE

COLOURS = {
    "other operators": "#BBBBBB", "GEMM": SPLIT_COLOURS["GEMM"], "all-gather": SPLIT_COLOURS["all-gather"],
    "exposed reduce-scatter": SPLIT_COLOURS["reduce-scatter"],
}  # fmt: skip


def operator_table(time: ModelTime) -> FittedTable:
    """Every operator with its work and its time, all-reduced sublayers with their simulated sequential times."""
    simulated, operators = time.sublayers[BASELINE], [item.operator for item in time.operators]
    each = unit_of(TIMES, (*(one.total for one in simulated.values()), *(item.ns for item in time.operators)))
    total, moved = unit_of(TIMES, [time.total_ns(BASELINE)]), unit_of(BYTES, (work.bytes for work in operators))
    flop = unit_of(FLOP, (work.flop for work in operators))
    table = FittedTable(
        "operator", "runs", flop.title("work"), moved.title("bytes"), each.title("time"), "limited by",
        total.title("all runs"), "share %", text=["limited by"],
    )  # fmt: skip

    def row(name: str, runs: int, work: Operator | None, ns: float, limit: str) -> None:
        table.add_row(
            name, str(runs), flop.text(work.flop) if work and work.flop else "", moved.text(work.bytes) if work else "",
            each.text(ns), limit, total.text(runs * ns), f"{100 * shares[name]:.1f}",
        )  # fmt: skip

    shares = time.shares(BASELINE)
    for name, one in simulated.items():
        row(f"sublayer {name}", time.runs[name], None, one.total, "simulated")
    for item in time.operators:
        row(item.operator.name, item.count, item.operator, item.ns, item.limit)
    return table


def policy_table(time: ModelTime) -> FittedTable:
    """Times and speedup of every policy."""
    unit = unit_of(TIMES, map(time.total_ns, time.sublayers))
    times = ("all-reduced sublayers", "other operators", "total")
    table = FittedTable("policy", *map(unit.title, times), "speedup")
    for policy in time.sublayers:
        parts = (time.sublayer_ns(policy), time.other_ns, time.total_ns(policy))
        table.add_row(policy, *map(unit.text, parts), f"{time.speedup(policy):.3f}")
    return table


def draw_model(record: WholeModelRecord, path: Path) -> None:
    """Writes the time of the model under every policy as stacked bars, PNG and SVG."""
    times = list(record.policies.values())
    unit = unit_of(TIMES, (item.total for item in times))
    parts = {
        "other operators": [item.other / unit.size for item in times],
        "GEMM": [item.gemm / unit.size for item in times],
        "exposed reduce-scatter": [item.exposed_reduce_scatter / unit.size for item in times],
        "all-gather": [item.all_gather / unit.size for item in times],
    }
    figure = Figure(figsize=(2 + 1.6 * len(times), 4.2), layout="constrained")
    title = f"{record.model}, TP {record.tp}, {record.phase}, on {machine_title(record.machine, record.settings)}"
    figure.suptitle(fill(title, 50), fontsize="medium")
    axes = figure.subplots()
    where = np.arange(len(times), dtype=float)
    stacked_bars(axes, where, parts, COLOURS)
    labels = [
        f"{name}\n{unit.text(item.total)} {unit.name}\n{item.speedup:.3f}x" for name, item in record.policies.items()
    ]
    axes.set_xticks(where, labels, fontsize=FONT)
    axes.set_ylabel(unit.title("time of the model"))
    axes.spines[["top", "right"]].set_visible(False)
    legend_above(axes, 2)
    save(figure, path)
