"""The section of one run, or of several policies on one GEMM."""

from collections.abc import Sequence

from t3sim.common.units import BYTES, TIMES, with_unit
from t3sim.inputs.machine.settings import machine_title
from t3sim.run.ideal import COMPUTED
from t3sim.run.policies import failures
from t3sim.run.result import Result, WorkloadRecord
from t3sim.study.records.titles import sublayer_name

from .checks import check_cards, checks_block, hardware_block
from .configuration import cautions, configuration_block
from .contention import contention_block
from .folders import Run, Runs
from .limits import limits_block
from .parts import Block, Card, Cards, Item, Section, Text, plural, tabbed
from .provenance import runs_blocks
from .quantities import BOUNDS, ideal_times, speedup_chart, time_chart, traffic_chart
from .timelines import end_of, gpu_chart, lanes_chart, time_unit

MINUS = "\u2212"
ZOOM = (
    "Drag over a chart to zoom into a part of the time, double-click to see all of it, or use the buttons below; all "
    "charts here show the same part. Rates are means over bins of {}."
)
NO_TIMELINE = (
    "The folder has no `timeline.json`: a computed policy has none, and neither has a folder of a version before this "
    "file was written. Run again to see it."
)


def runs_section(folder: Runs) -> Section:
    """All blocks of a run or a comparison."""
    results = folder.results
    named = [(result.policy, result) for result in results]
    first = folder.runs[0]
    work, gemm = first.result.workload, first.result.gemm
    return Section(
        title=f"{workload_title(work)}: {results[0].policy if len(results) == 1 else plural(len(results), 'policy')}",
        name=folder.name,
        facts=[
            f"{work.m} x {work.n} output, inner dimension {work.k_total} split over {plural(work.tp, 'GPU')}",
            f"machine {machine_title(first.result.machine, first.result.settings)}",
            (f"{plural(gemm.workgroups, 'workgroup')} of {gemm.tile_rows} x {gemm.tile_cols}, "
            f"{plural(gemm.waves, 'stage')}"),
            "one GPU simulated, its traffic mirrored" if first.result.mirror else "all GPUs simulated",
        ],
        blocks=[
            Block(title="Summary", items=[
                Cards(cards=_cards(folder)),
                *_failures(results),
                *(Text(text=text) for text in cautions(first.config.machine, first.result.machine)),
            ]),
            _speedups(folder),
            Block(title="Time split", items=[time_chart(named)]),
            limits_block(results),
            _timeline(folder.runs),
            Block(title="DRAM traffic", items=[traffic_chart(named)]),
            contention_block(named),
            checks_block(named),
            hardware_block(named),
            configuration_block(first.config.machine),
            *runs_blocks(folder),
        ],
    )  # fmt: skip


def workload_title(work: WorkloadRecord) -> str:
    """For people, for example ``t-nlg fc2, TP 8``, or ``GEMM 128 x 64 x 256, TP 2``."""
    return f"{sublayer_name(work, before_sizes='GEMM ')}, TP {work.tp}"


def _failures(results: Sequence[Result]) -> list[Item]:
    """A sentence for each thing that does not add up."""
    return [Text(text=f"Does not add up: {text}.") for result in results for text in failures(result)]


def _cards(folder: Runs) -> list[Card]:
    results = folder.results
    if len(results) == 1:
        return [*_run_cards(results[0]), *check_cards(results)]
    simulated = [
        (item, gain) for item, gain in zip(results, folder.speedups, strict=True) if item.policy not in COMPUTED
    ]
    best, gain = min(simulated or [(results[0], None)], key=lambda pair: pair[0].time_ns.total)
    base = next((item for item in results if item.policy == "sequential"), None)
    cards = [Card(title="Shortest time", value=with_unit(TIMES, best.time_ns.total), note=best.policy)]
    if gain is not None and base is not None:
        moved = best.traffic_bytes_per_gpu.total / base.traffic_bytes_per_gpu.total - 1
        cards[:0] = [Card(title="Largest speedup", value=f"{gain:.3f}x", note=f"{best.policy} over sequential")]
        cards += [
            Card(title=f"Bound: {policy}", value=f"{base.time_ns.total / total:.3f}x", note=with_unit(TIMES, total))
            for policy, total in ideal_times(results).items()
        ]
        cards += [
            Card(title="Exposed communication", value=with_unit(TIMES, best.time_ns.exposed_communication),
                 note=f"sequential: {with_unit(TIMES, base.time_ns.exposed_communication)}"),
            Card(title="DRAM traffic", value=f"{moved:+.1%}".replace("-", MINUS),
                 note=f"{best.policy}, against sequential"),
        ]  # fmt: skip
    return cards + check_cards(results)


def _run_cards(result: Result) -> list[Card]:
    time = result.time_ns
    return [
        Card(title="Time", value=with_unit(TIMES, time.total), note=f"{result.policy}, from GEMM launch"),
        Card(title="GEMM", value=with_unit(TIMES, time.gemm), note=f"{time.gemm / time.total:.0%} of the time"),
        Card(
            title="Exposed communication",
            value=with_unit(TIMES, time.exposed_communication),
            note=f"{time.exposed_communication / time.total:.0%} of the time",
        ),
        Card(title="DRAM traffic", value=with_unit(BYTES, result.traffic_bytes_per_gpu.total), note="mean of one GPU"),
    ]


def _speedups(folder: Runs) -> Block:
    if any(result.policy == "sequential" for result in folder.results):
        gains = [1.0] if len(folder.runs) == 1 else folder.speedups
        return Block(title="Speedup and bounds", items=[speedup_chart(folder.results, gains), Text(text=BOUNDS)])
    text = "There is no `sequential` run here to be faster than; `t3 compare` has speedups and their bounds."
    return Block(title="Speedup and bounds", items=[Text(text=text)])


def _timeline(runs: Sequence[Run]) -> Block:
    """Tabs: all policies side by side, then each with all of its GPUs and one by one."""
    timelines = {run.result.policy: run.timeline for run in runs if run.timeline}
    if not timelines:
        return Block(title="Timeline", items=[Text(text=NO_TIMELINE)])
    unit, end = time_unit(list(timelines.values())), max(map(end_of, timelines.values()))
    widths = sorted({item.bin_ns for item in timelines.values()})
    bins = " to ".join(dict.fromkeys(with_unit(TIMES, width) for width in (widths[0], widths[-1])))
    tabs: dict[str, Sequence[Item]] = {}
    if len(timelines) > 1:
        rows = {policy: item.gpus[0] for policy, item in timelines.items()}
        text = f"GPU 0 under {plural(len(rows), 'policy')} over one time axis."
        tabs["side by side"] = [lanes_chart(rows, unit, end, "GPU 0 under every policy", text)]
    for policy, item in timelines.items():
        gpus: dict[str, Sequence[Item]] = {}
        if len(item.gpus) > 1:
            named = {f"GPU {number}": gpu for number, gpu in enumerate(item.gpus)}
            text = f"{policy}: all {len(named)} GPUs over one time axis."
            gpus["all GPUs"] = [lanes_chart(named, unit, end, f"{policy}, all GPUs", text)]
        for number in range(len(item.gpus)):
            gpus[f"GPU {number}"] = [gpu_chart(item, number, unit, end, f"{policy}, GPU {number}")]
        tabs[policy] = tabbed(f"GPUs of {policy}", gpus)
    return Block(title="Timeline", items=[Text(text=ZOOM.format(bins)), *tabbed("policies", tabs)])
