"""What the streams into memory cost each other: waits, blocked clocks, DRAM, link, CUs."""

from collections.abc import Callable, Sequence

from t3sim.common.units import TIMES, unit_of
from t3sim.explain.causes import FIELDS, SHORT
from t3sim.run.request import CAUSE_TITLES
from t3sim.run.result import Contention, StageWaits, StreamContention

from .checks import Labelled
from .figures import MANY, SERIES, stacked
from .parts import Block, Chart, Folded, Item, Table, Tabs, Text, count

BLOCKED = {SHORT[cause]: field for cause, field in FIELDS.items()}
"""Why a line waited at its memory slice -> field of a stream."""
WAITS = {"CUs wait for loads": "loads", "CUs wait for stores": "stores"}


def contention_block(results: Labelled) -> Block:
    """Contention of ``results``."""
    return Block(title="Contention", items=contention_items(results))


def contention_items(results: Labelled) -> list[Item]:
    """Charts and tables of all runs that were simulated, a row for each; tables of many runs are folded."""
    simulated = [(name, result.contention) for name, result in results if result.contention]
    if not simulated:
        return [Text(text="None was observed: the policies are computed, or were simulated with --no-contention.")]
    tables: list[Item] = [_streams(simulated), _memory(simulated), *_conflicts(simulated)]
    if len(simulated) > MANY:
        return [_waits(simulated), Folded(title="Streams into memory, and DRAM, of every run", items=tables)]
    return [_waits(simulated), *_by_stage(simulated), *tables]


_Named = list[tuple[str, Contention]]


def _waits(runs: _Named) -> Chart:
    unit = unit_of(TIMES, (value for _, item in runs for value in item.cu_stall_ns.values()))
    names = [name for name, _ in runs]
    parts = {title: [item.cu_stall_ns.get(key, 0) / unit.size for _, item in runs] for title, key in WAITS.items()}
    return Chart(
        title="Waiting of the CUs",
        summary="Mean time that a CU has workgroups and no arithmetic, by what it waits for.",
        figure=stacked(names, parts, dict(zip(WAITS, SERIES, strict=False)), unit.title("mean time of a CU")),
        table=Table(
            caption="Waiting of the CUs, link of the busiest GPU, and stores held back for a chunk that is not live",
            head=("run", *(unit.title(title) for title in WAITS), unit.title("link busy"), unit.title("link idle"),
                  unit.title("stores held")),
            rows=[
                (name, *(unit.text(item.cu_stall_ns.get(key, 0)) for key in WAITS.values()),
                 unit.text(item.link_busy_ns), unit.text(item.link_idle_ns), unit.text(item.window_stall_ns))
                for name, item in runs
            ],
        ),
    )  # fmt: skip


def _streams(runs: _Named) -> Table:
    rows = []
    for name, item in runs:
        streams: dict[str, StreamContention] = {"compute": item.compute, "communication": item.communication}
        for stream, found in streams.items():
            rows.append(
                (f"{name}, {stream}", count(found.lines), f"{found.mean_wait_ns:.1f}", f"{found.p99_wait_ns:.1f}",
                 *(count(getattr(found, field)) for field in BLOCKED.values()))
            )  # fmt: skip
    return Table(
        caption="Both streams into memory: lines, their wait at the memory slice, and why (memory clocks over all "
        "channels)",
        head=("run and stream", "lines", "mean wait (ns)", "99th percentile (ns)", *BLOCKED),
        rows=rows,
    )


def _memory(runs: _Named) -> Table:
    fields: dict[str, Callable[[Contention], str]] = {
        "data bus in use": lambda item: f"{item.dram.bus_use:.1%}",
        "row hits": lambda item: count(item.dram.row_hits),
        "row misses": lambda item: count(item.dram.row_misses),
        "row conflicts": lambda item: count(item.dram.row_conflicts),
        "turnarounds": lambda item: count(item.dram.turnarounds),
        "reads for atomics": lambda item: count(item.dram.atomic_reads),
        "mode switches": lambda item: count(item.dram.mode_switches),
    }
    return Table(
        caption="DRAM of all simulated GPUs",
        head=("run", *fields),
        rows=[(name, *(get(item) for get in fields.values())) for name, item in runs],
    )


def _conflicts(runs: _Named) -> list[Table]:
    """Which traffic closed whose rows; records from before it was counted have none."""
    rows = [
        (f"{name}, {CAUSE_TITLES[by]}", *(count(found.get(of, 0)) for of in CAUSE_TITLES))
        for name, item in runs
        for by, found in ((by, (item.dram.conflicts or {}).get(by)) for by in CAUSE_TITLES)
        if found
    ]
    caption = (
        "Row conflicts of all simulated GPUs: lines of the row's traffic that found a row open in which a line of "
    )
    caption += "the column's traffic had moved last"
    return [Table(caption=caption, head=("run and traffic", *CAUSE_TITLES.values()), rows=rows)] if rows else []


def _by_stage(runs: _Named) -> list[Item]:
    """A tab for each run: what both streams waited for in every stage; records from before it was kept have none."""
    charts: dict[str, Sequence[Item]] = {
        name: [_stage_chart(name, item.stages, int(item.compute.lines + item.communication.lines))]
        for name, item in runs
        if item.stages
    }
    return [Tabs(label="waits by stage", tabs=charts)] if charts else []


def _stage_chart(run: str, stages: Sequence[StageWaits], lines: int) -> Chart:
    """Bars of both streams for every stage, by what they waited for."""
    names = [_stage_name(stages, index) for index in range(len(stages))]
    parts = {
        f"{stream}: {title}": [getattr(getattr(stage, stream), cause) for stage in stages]
        for stream in ("compute", "communication")
        for cause, title in SHORT.items()
    }
    colours = dict(zip(parts, SERIES, strict=True))
    title = f"Waits at the memory slices by stage of the GEMM, {run}"
    return Chart(
        title=title,
        summary=f"Memory clocks that lines of both streams waited, over all channels, in every stage and after the "
        f"GEMM; the run has {count(lines)} lines.",
        figure=stacked(names, parts, colours, "memory clocks, all channels"),
        table=Table(
            caption=title,
            head=("stage", "begins at (us)", *parts),
            rows=[
                (name, f"{stage.start_ns / 1000:.1f}", *(count(values[index]) for values in parts.values()))
                for index, (name, stage) in enumerate(zip(names, stages, strict=True))
            ],
        ),
    )


def _stage_name(stages: Sequence[StageWaits], index: int) -> str:
    """Of the stages that a row is of: they are counted from 1."""
    if index == len(stages) - 1:
        return "after the GEMM"
    first, end = stages[index].first_stage, stages[index + 1].first_stage
    return f"stage {first + 1}" if end == first + 1 else f"stages {first + 1} to {end}"
