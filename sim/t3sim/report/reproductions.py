"""The section of a reproduction: every published figure beside ours, and the runs that it was measured from."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from t3sim.common.units import TIMES, unit_of, with_unit
from t3sim.inputs.machine.settings import machine_title, settings_text
from t3sim.run.ideal import COMPUTED
from t3sim.run.result import Result
from t3sim.study.published import Verdict
from t3sim.study.reproduction import FigureRecord, Reproduction, RunRecord

from .checks import Labelled, check_cards, checks_block, hardware_block
from .configuration import record_machine_block
from .contention import contention_items
from .figures import beside, grouped
from .folders import Reproduced
from .over_time import over_time_block
from .parts import (
    DASH,
    Block,
    Card,
    Cards,
    Cell,
    Chart,
    Folded,
    Item,
    Mark,
    Section,
    Table,
    Text,
    Tone,
    chosen,
    count,
    plural,
    tabbed,
)
from .provenance import earlier, record_blocks, reproduce_command
from .quantities import BOUNDS, time_chart, traffic_chart
from .runs import workload_title

VARIANTS = {
    "base": "", "fit": ", tracker that never overflows", "cus": ", twice the CUs",
    "backlog": ", this project's rule of arbitration",
}  # fmt: skip
UNITS = {"x": "Speedups and other factors", "%": "Percentages"}
TONES: dict[Verdict, Tone] = {"inside": "good", "outside": "bad"}
SHOWN = ("ideal-overlap", "ideal-overlap-nmc", "t3", "t3-mca")
"""Policies of the speedup charts."""
OVER_TIME = ("sequential", "t3", "t3-mca")
"""Policies whose traffic is shown over time."""


def reproduce_section(folder: Reproduced) -> Section:
    """All blocks of a reproduction."""
    record = folder.record
    results = [(_name(run), run.result) for run in record.runs]
    only = [result for _, result in results]
    base = [run.result for run in record.runs if run.variant == "base"]
    split = _by_machine(record, ("sequential",), lambda runs: [
        time_chart(runs, "Where the time of the sequential runs goes", parts_of=True)
    ])  # fmt: skip
    moved = _by_machine(record, ("sequential", "t3-mca"), _traffic)
    compared = _by_machine(record, ("sequential", "t3", "t3-mca"), contention_items)
    over_time = over_time_block(folder.traffic, {
        _machine_name(variant): (variant, [result for _, result in _of_policies(record, OVER_TIME, variant)])
        for variant in _variants(record)
    })  # fmt: skip
    blocks = [
        Block(title="Summary", items=[Cards(cards=[*_cards(record), *check_cards(only)]), *earlier(record),
                                      *(Text(text=f"Does not add up: {text}.") for text in record.failures)]),
        Block(title="Published and measured", items=list(_figures(record))),
        Block(title="Speedups and bounds", items=[*_speedups(record), Text(text=BOUNDS), _runs(record)]),
        Block(title="Time split", items=split),
        Block(title="DRAM traffic", items=moved),
        over_time,
        *([Block(title="Whole models", items=[_models(record)])] if record.models else []),
        Block(title="Contention", items=compared),
        checks_block(results),
        hardware_block(results),
        record_machine_block(folder.config, record.machine, record.settings, base),
        *record_blocks(
            reproduce_command(record, folder.name),
            {
                "version of OpenT3": record.opent3, "digest of the simulator": record.sources,
                "machine": record.machine, "T3 hardware": record.hardware, "seed": str(record.seed),
                "settings": settings_text(record.settings),
                "tables": ", ".join(record.tables), "quick": "yes" if record.quick else "no",
            },
            folder.config,
        ),
    ]  # fmt: skip
    return Section(
        title="The paper's results, compared with ours",
        name=folder.name,
        facts=[
            plural(len(record.runs), "run"),
            f"machine {machine_title(record.machine, record.settings)}",
            f"{record.hardware} hardware",
            f"tables {', '.join(record.tables)}",
        ],
        blocks=[block for block in blocks if block.items],
    )  # fmt: skip


def _name(run: RunRecord) -> str:
    mirrored = ", mirrored" if run.result.mirror else ""
    return f"{workload_title(run.result.workload)}, {run.result.policy}{mirrored}{VARIANTS[run.variant]}"


def _variants(record: Reproduction) -> list[str]:
    """The machines that have runs, in the order of VARIANTS."""
    return [variant for variant in VARIANTS if any(run.variant == variant for run in record.runs)]


def _machine_name(variant: str) -> str:
    return VARIANTS[variant].removeprefix(", ") or "the paper's"


def _by_machine(
    record: Reproduction, policies: Sequence[str], show: Callable[[Labelled], Sequence[Item]]
) -> list[Item]:
    """A choice of machines, and for each a tab for every degree, with what ``show`` makes of the runs."""
    found = {_machine_name(variant): _of_policies(record, policies, variant) for variant in _variants(record)}
    return chosen("machine", {name: _by_degree(runs, show) for name, runs in found.items() if runs})


def _of_policies(record: Reproduction, policies: Sequence[str], variant: str) -> list[tuple[str, Result]]:
    """Runs on a machine: of every sublayer and policy the one with the most GPUs simulated."""
    found: dict[str, Result] = {}
    for run in record.runs:
        name = f"{workload_title(run.result.workload)}, {run.result.policy}"
        known = found.get(name)
        more = known is None or known.gpus_simulated < run.result.gpus_simulated
        if more and run.variant == variant and run.result.policy in policies:
            found[name] = run.result
    return list(found.items())


def _by_degree(runs: Labelled, show: Callable[[Labelled], Sequence[Item]]) -> list[Item]:
    """A tab for each degree of tensor parallelism, with what ``show`` makes of its runs."""
    degrees: dict[str, list[tuple[str, Result]]] = {}
    for name, result in runs:
        degrees.setdefault(f"TP {result.workload.tp}", []).append((name, result))
    return tabbed("degrees of tensor parallelism", {degree: show(found) for degree, found in degrees.items()})


def _traffic(runs: Labelled) -> list[Item]:
    """Bytes of every sublayer, as parts of those of its sequential run, where all have one."""
    bases = {
        workload_title(result.workload): result.traffic_bytes_per_gpu.total
        for _, result in runs
        if result.policy == "sequential"
    }
    known = [bases.get(workload_title(result.workload)) for _, result in runs]
    return [traffic_chart(runs, bases=[base for base in known if base is not None] if all(known) else None)]


def _cards(record: Reproduction) -> list[Card]:
    verdicts = Counter(figure.verdict for figure in record.figures)
    inside, outside = verdicts["inside"], verdicts["outside"]
    others = {kind: number for kind, number in verdicts.items() if kind not in ("inside", "outside")}
    gains = [run.speedup for run in record.runs if run.speedup and run.result.policy not in COMPUTED]
    cards = [
        Card(title="Inside their band", value=count(inside), note=f"of {plural(verdicts.total(), 'published figure')}"),
        Card(title="Outside their band", value=count(outside), note="with a reason, in the values of the charts below"),
        Card(title="Without a verdict", value=count(sum(others.values())),
             note=", ".join(f"{count(number)} {kind}" for kind, number in others.items())),
    ]  # fmt: skip
    if others.get("not run") == verdicts.total():
        cards = [Card(title="Published figures", value=count(verdicts.total()), note="of tables that were not run")]
    if gains:
        best = max((run for run in record.runs if run.speedup == max(gains)), key=lambda run: run.result.policy)
        cards.append(Card(title="Largest speedup", value=f"{max(gains):.3f}x", note=_name(best)))
    return cards


def _figures(record: Reproduction) -> Iterator[Item]:
    measured = [figure for figure in record.figures if figure.measured is not None]
    for unit, title in UNITS.items():
        rows = [figure for figure in measured if figure.unit == unit]
        if rows:
            yield Chart(
                title=title,
                summary=f"{plural(len(rows), 'published figure')} with the measured value and the band: "
                + ", ".join(f"{verdict} {sum(row.verdict == verdict for row in rows)}"
                            for verdict in dict.fromkeys(row.verdict for row in rows)) + ".",
                figure=beside([(row.title, row.published, row.measured, row.low, row.high) for row in rows], title,
                              unit),
                table=_figure_table(record, rows, title),
            )  # fmt: skip
    missing = [figure for figure in record.figures if figure.measured is None]
    if missing:
        yield Folded(
            title=f"{plural(len(missing), 'figure')} not run", items=[_figure_table(record, missing, "Not run")]
        )


def _figure_table(record: Reproduction, figures: Sequence[FigureRecord], caption: str) -> Table:
    return Table(
        caption=f"{caption}: published and measured",
        head=("figure", "published", "measured", "our rule", "band", "verdict", "table", "note", "source"),
        rows=[
            (item.title, *(_value(value, item.unit) for value in (item.published, item.measured, item.own_rule)),
             _band(item),
             Mark(item.verdict, TONES.get(item.verdict, "")), item.table, record.remark(item) or DASH,
             item.source)
            for item in figures
        ],
        prose=(4, 5, 6, 7, 8),
    )  # fmt: skip


def _value(value: float | None, unit: str) -> str:
    return DASH if value is None else f"{value:.3f}x" if unit == "x" else f"{value:.1f} %"


def _band(figure: FigureRecord) -> str:
    if figure.band is None:
        return DASH
    return f"{figure.limits(lambda value: _value(value, figure.unit))} ({figure.band})"


def _speedups(record: Reproduction) -> list[Item]:
    """A chart for each degree, and one for the machine with twice the CUs: every sublayer under every policy."""
    charts: dict[str, Sequence[Item]] = {}
    for variant, suffix in VARIANTS.items():
        gains: dict[tuple[str, str], tuple[int, float]] = {}
        degrees: dict[str, int] = {}
        for run in record.runs:
            if run.variant == variant and run.speedup and run.result.policy in SHOWN:
                point = workload_title(run.result.workload)
                where = point, run.result.policy
                gains[where] = max(gains.get(where, (0, 0.0)), (run.result.gpus_simulated, run.speedup))
                degrees[point] = run.result.workload.tp
        for tp in dict.fromkeys(degrees.values()):
            points = [point for point, degree in degrees.items() if degree == tp]
            charts[f"TP {tp}{suffix}"] = [_gains(points, gains, f"Speedups over sequential, TP {tp}{suffix}")]
    return tabbed("degrees of tensor parallelism", charts)


def _gains(points: Sequence[str], gains: dict[tuple[str, str], tuple[int, float]], title: str) -> Chart:
    policies = [policy for policy in SHOWN if any((point, policy) in gains for point in points)]
    series = {policy: [gains.get((point, policy), (0, None))[1] for point in points] for policy in policies}
    rows = [
        (point, *(DASH if row[index] is None else f"{row[index]:.3f}" for row in series.values()))
        for index, point in enumerate(points)
    ]
    return Chart(
        title=title,
        summary=f"{title}, of {plural(len(points), 'sublayer')} under {', '.join(policies)}.",
        figure=grouped(points, series, "speedup over sequential", base=1),
        table=Table(caption=title, head=("sublayer", *policies), rows=rows),
    )


def _runs(record: Reproduction) -> Folded:
    rows: list[tuple[Cell, ...]] = [
        (_name(run), with_unit(TIMES, run.result.time_ns.total), DASH if run.speedup is None else f"{run.speedup:.3f}",
         with_unit(TIMES, run.result.time_ns.exposed_communication), str(run.result.gpus_simulated))
        for run in record.runs
    ]  # fmt: skip
    table = Table(
        caption="Every run, with its speedup over the sequential run that is like it in all else",
        head=("run", "time", "speedup", "exposed communication", "GPUs simulated"),
        rows=rows,
    )
    return Folded(title=f"All {plural(len(rows), 'run')}", items=[table])


def _models(record: Reproduction) -> Chart:
    """Speedups of whole models, by phase; unfused attention, as the figures have it."""
    shown = [item for item in record.models if item.attention == "unfused" and item.policy != "sequential"]
    gains: dict[tuple[str, str], float] = {
        (f"{item.model} TP {item.tp}, {item.phase}", item.policy): item.speedup for item in shown
    }
    names, policies = (list(dict.fromkeys(where[index] for where in gains)) for index in (0, 1))
    unit = unit_of(TIMES, (item.total_ns for item in record.models))
    return Chart(
        title="Speedups of whole models over sequential",
        summary=f"Speedups over sequential of {len(names)} models in a phase, under {' and '.join(policies)}.",
        figure=grouped(names, {policy: [gains[name, policy] for name in names] for policy in policies},
                       "speedup over sequential", base=1),
        table=Table(
            caption="Whole models: the time of an iteration or prompt, of which in all-reduced sublayers",
            head=("model, phase, attention and policy", unit.title("time"), unit.title("sublayers"), "speedup"),
            rows=[
                (f"{item.model} TP {item.tp}, {item.phase}, {item.attention}, {item.policy}", unit.text(item.total_ns),
                 unit.text(item.sublayers_ns), f"{item.speedup:.3f}")
                for item in record.models
            ],
        ),
    )  # fmt: skip
