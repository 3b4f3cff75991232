"""DRAM traffic over time of the runs of a sweep or a reproduction: one sublayer under its policies."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from plotly.subplots import make_subplots

from t3sim.common.units import BYTES, RATES, TIMES, unit_of, with_unit
from t3sim.run.request import CAUSE_TITLES, CAUSES
from t3sim.run.result import Result
from t3sim.run.timeline import COLOURS
from t3sim.study.traffic_record import Curve, TrafficRecord

from .figures import finished, plain
from .parts import DASH, Block, Chart, Item, Table, Text, chosen, plural
from .runs import workload_title

ROW, HEAD, GAP = 160, 110, 24
"""Pixels of a policy's row, of legend and axis, and between rows."""
MOST_CHARTS = 400
"""Charts of one page: beyond, only the first sublayers of each machine have one."""
NO_TRAFFIC = "The folder has no `traffic.json`, as of a version that did not write it. Run again to see it."
OF_GPU_0 = "Of GPU 0, in bins; rates are means over a bin."


def over_time_block(traffic: TrafficRecord | None, machines: Mapping[str, tuple[str, Sequence[Result]]]) -> Block:
    """A chart for each machine and sublayer. ``machines``: what each is called here -> its name in the record, and its
    results."""
    title = "DRAM traffic over time"
    if traffic is None:
        return Block(title=title, items=[Text(text=NO_TRAFFIC)])
    most = max(1, MOST_CHARTS // max(1, len(machines)))
    contents: dict[str, Sequence[Item]] = {}
    left_out = 0
    for name, (machine, results) in machines.items():
        groups: dict[str, dict[str, Curve]] = {}
        for result in results:
            if curve := traffic.of(machine, result):
                groups.setdefault(workload_title(result.workload), {})[result.policy] = curve
        left_out = max(left_out, len(groups) - most)
        charts = {sublayer: [traffic_over_time(sublayer, groups[sublayer])] for sublayer in list(groups)[:most]}
        if charts:
            contents[name] = chosen("sublayer", charts)
    if not contents:
        return Block(title=title, items=[])
    items: list[Item] = [Text(text=OF_GPU_0), *chosen("machine", contents)]
    if left_out > 0:
        more = plural(left_out, "further sublayer")
        items.append(Text(text=f"{more} of each machine not shown: there would be too many."))
    return Block(title=title, items=items)


def traffic_over_time(sublayer: str, curves: Mapping[str, Curve]) -> Chart:
    """A row for each policy over one time axis: rates by cause, stacked."""
    rates = {
        policy: {cause: np.array(curve.bytes[cause]) / curve.bin_ns for cause in CAUSES}
        for policy, curve in curves.items()
    }
    ends = {policy: len(next(iter(curve.bytes.values()))) * curve.bin_ns for policy, curve in curves.items()}
    peak = max(_peak(found.values()) for found in rates.values())
    time, rate = unit_of(TIMES, ends.values()), unit_of(RATES, [peak])
    height = HEAD + ROW * len(curves)
    figure = make_subplots(rows=len(curves), shared_xaxes=True, vertical_spacing=GAP / height)
    for row, (policy, found) in enumerate(rates.items(), 1):
        for cause, values in found.items():
            figure.add_scatter(
                y=np.append(values, values[-1:]).astype(np.float32) / np.float32(rate.size), x0=0,
                dx=curves[policy].bin_ns / time.size, name=CAUSE_TITLES[cause], legendgroup=cause, showlegend=row == 1,
                stackgroup=policy, fillcolor=COLOURS[cause], row=row, col=1, mode="lines",
                line={"shape": "hv", "width": 0, "color": COLOURS[cause]},
                hovertemplate=f"{CAUSE_TITLES[cause]}: %{{y:.4g}} {rate.name}<extra></extra>",
            )  # fmt: skip
        figure.update_yaxes(title_text=f"{plain(policy)}<br>({rate.name})", row=row, col=1)
    figure.update_xaxes(range=[0, max(ends.values()) / time.size])
    figure.update_xaxes(title_text=time.title("time since GEMM launch"), row=len(curves), col=1)
    figure.update_yaxes(range=[0, 1.05 * peak / rate.size or 1], zeroline=False)
    title = f"DRAM traffic over time, {sublayer}"
    return Chart(
        title=title,
        summary=f"{title}, of GPU 0 by cause: "
        + "; ".join(f"{policy} over {with_unit(TIMES, end)}" for policy, end in ends.items()) + ".",
        figure=finished(figure, height, hovermode="x unified"),
        table=_table(title, curves),
    )  # fmt: skip


def _peak(values: Iterable[np.ndarray]) -> float:
    """The largest sum over the causes."""
    return float(np.sum(list(values), axis=0).max(initial=0))


def _table(title: str, curves: Mapping[str, Curve]) -> Table:
    """What the chart shows in numbers: a row for each policy and cause."""
    sums = {policy: {cause: sum(curve.bytes[cause]) for cause in CAUSES} for policy, curve in curves.items()}
    moved = unit_of(BYTES, (value for found in sums.values() for value in found.values()))
    rates = {
        policy: {cause: max(curve.bytes[cause], default=0) / curve.bin_ns for cause in CAUSES}
        for policy, curve in curves.items()
    }
    rate = unit_of(RATES, (value for found in rates.values() for value in found.values()))
    times = unit_of(TIMES, (len(curve.bytes["gemm_read"]) * curve.bin_ns for curve in curves.values()))
    rows = []
    for policy, curve in curves.items():
        for cause in CAUSES:
            busy = np.flatnonzero(curve.bytes[cause])
            ends = [times.text(edge * curve.bin_ns) for edge in (busy[0], busy[-1] + 1)] if len(busy) else []
            rows.append((f"{policy}, {CAUSE_TITLES[cause]}", moved.text(sums[policy][cause]),
                         rate.text(rates[policy][cause]), " to ".join(ends) or DASH))  # fmt: skip
    return Table(
        caption=f"{title}: bytes of each cause, the largest rate in a bin, and when",
        head=("policy and cause", moved.title("bytes"), rate.title("largest rate"), times.title("when")),
        rows=rows,
    )
