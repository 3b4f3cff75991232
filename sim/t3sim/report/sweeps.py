"""The section of a sweep: the same sublayers on many machines."""

from collections.abc import Iterator, Sequence, Sized

from t3sim.common.units import TIMES, unit_of
from t3sim.inputs.machine.settings import machine_title, settings_text
from t3sim.run.result import Result
from t3sim.study.sweep import SweepRecord, SweptRun, SweptVariant

from .checks import check_cards, checks_block, hardware_block
from .configuration import cautions_of, record_machine_block
from .contention import contention_items
from .figures import grouped
from .folders import Swept
from .over_time import over_time_block
from .parts import DASH, Block, Card, Cards, Cell, Chart, Folded, Item, Section, Table, Text, chosen, plural
from .provenance import earlier, record_blocks, sweep_command
from .quantities import ideal_times, time_chart, traffic_chart
from .runs import workload_title

MEANS = {"gemm_reads": "GEMM reads of t3-mca, times fewer", "data_movement": "bytes of t3-mca for a byte of sequential"}
"""Geometric means that are no policy's speedup."""
MOST_RUNS = 2500
"""Runs that a page shows one by one; each has rows in half a dozen tables."""


def sweep_section(folder: Swept) -> Section:
    """All blocks of a sweep or of a sensitivity study."""
    record = folder.record
    first = record.variants[0]
    machines = {item.name: [(_run_name(run.result), run.result) for run in item.runs] for item in _detailed(record)}
    results = [(f"{item.name}: {_run_name(run.result)}", run.result) for item in record.variants for run in item.runs]
    points = list(dict.fromkeys(workload_title(run.result.workload) for run in first.runs))
    what = "assumptions, changed one at a time" if folder.assumptions else "combinations of machine values"
    return Section(
        title=f"Sweep: {plural(len(record.variants), 'machine')}, {plural(len(points), 'sublayer')}",
        name=folder.name,
        facts=[
            what,
            f"machine {machine_title(record.machine, record.settings)}",
            "one GPU of every ring, its traffic mirrored",
            "; ".join(points),
        ],
        blocks=[
            Block(title="Summary", items=[
                Cards(cards=_cards(record, [result for _, result in results])), *earlier(record),
                *(Text(text=f"Does not add up: {text}.") for text in record.failures),
                *cautions_of(folder.config, first.machine),
            ]),
            Block(title="Speedup by machine", items=[_means(record)]),
            Block(title="Changes against the first machine", items=[_changes(record)]),
            Block(title="Speedup and bounds of every run", items=[_speedups(record), _exposed(record)]),
            Block(title="Time split", items=[*_left_out(record, machines), *chosen("machine", {
                name: [time_chart(runs, f"Where the time goes, machine {name}")] for name, runs in machines.items()
            })]),
            Block(title="DRAM traffic", items=chosen("machine", {
                name: [traffic_chart(runs, f"DRAM traffic by cause, machine {name}")] for name, runs in machines.items()
            })),
            over_time_block(folder.traffic, {
                name: (name, [result for _, result in runs]) for name, runs in machines.items()
            }),
            Block(title="Contention", items=chosen("machine", {
                name: contention_items(runs) for name, runs in machines.items()
            })),
            checks_block(results),
            hardware_block(results),
            record_machine_block(
                folder.config, first.machine, record.settings | first.settings, [run.result for run in first.runs]
            ),
            *record_blocks(
                sweep_command(record, folder.name, assumptions=folder.assumptions),
                {
                    "version of OpenT3": record.opent3, "digest of the simulator": record.sources,
                    "machine": record.machine, "T3 hardware": record.hardware, "seed": str(record.seed),
                    "settings of all runs": settings_text(record.settings),
                },
                folder.config,
            ),
        ],
    )  # fmt: skip


def _detailed(record: SweepRecord) -> list[SweptVariant]:
    """The machines whose runs are shown one by one: all, or if these are too many the first, and those with the least
    and the largest speedups."""
    most = max(1, MOST_RUNS // len(record.variants[0].runs))
    if len(record.variants) <= most:
        return record.variants
    ranked = [sorted(range(len(record.variants)), key=lambda index: record.variants[index].geomeans.speedups[policy])
              for policy in record.variants[0].geomeans.speedups]  # fmt: skip
    ends = (index for place in range(most) for order in ranked for index in (order[place], order[-1 - place]))
    kept = list(dict.fromkeys([0, *ends]))[:most]
    return [record.variants[index] for index in sorted(kept)]


def _left_out(record: SweepRecord, shown: Sized) -> list[Item]:
    """A sentence, if not all machines are shown run by run."""
    if len(shown) == len(record.variants):
        return []
    return [Text(text=f"Here and below {len(shown)} of {len(record.variants)} machines can be chosen: the first, and "
                 "those with the least and the largest speedups. All are in the tables above.")]  # fmt: skip


def _cards(record: SweepRecord, results: Sequence[Result]) -> list[Card]:
    """The best machine under each policy, and what was checked."""
    cards = []
    for policy in record.variants[0].geomeans.speedups:
        best = max(record.variants, key=lambda item: item.geomeans.speedups[policy])
        worst = min(record.variants, key=lambda item: item.geomeans.speedups[policy])
        low, high = (item.geomeans.speedups[policy] for item in (worst, best))
        note = f"{worst.name} to {best.name}" if low != high else "on every machine"
        value = f"{low:.3f}x" if f"{low:.3f}" == f"{high:.3f}" else f"{low:.3f}x to {high:.3f}x"
        cards.append(Card(title=f"{policy}, mean speedup", value=value, note=note))
    return [*cards, *check_cards(results)]


def _means(record: SweepRecord) -> Chart:
    policies = list(record.variants[0].geomeans.speedups)
    others = {name: title for name, title in MEANS.items() if getattr(record.variants[0].geomeans, name) is not None}
    names = [item.name for item in record.variants]
    series: dict[str, list[float | None]] = {
        str(policy): [item.geomeans.speedups[policy] for item in record.variants] for policy in policies
    }
    return Chart(
        title="Geometric means of the speedups over sequential, by machine",
        summary=f"Geometric mean over the sublayers, for {plural(len(names), 'machine')} and {', '.join(policies)}.",
        figure=grouped(names, series, "speedup over sequential", base=1),
        table=Table(
            caption="Geometric means over the sublayers",
            head=("machine", *policies, *others.values()),
            rows=[
                (item.name, *(f"{item.geomeans.speedups[policy]:.3f}" for policy in policies),
                 *(f"{getattr(item.geomeans, name):.3f}" for name in others))
                for item in record.variants
            ],
        ),
    )  # fmt: skip


def _changes(record: SweepRecord) -> Table:
    first, others = record.variants[0], record.variants[1:]
    named = any(item.name != settings_text(item.settings) for item in others)
    explained = any(item.why for item in others)
    head = ["machine", *(["settings"] if named else []), *(MEANS.get(name, name) for name in first.changes)]
    rows: list[list[Cell]] = [
        [
            item.name, *([settings_text(item.settings)] if named else []),
            *(f"{change:+.1f}" for change in item.changes.values()), *([item.why or DASH] if explained else []),
        ]
        for item in others
    ]  # fmt: skip
    return Table(
        caption=f"Change of each geometric mean against {first.name}, in percent",
        head=[*head, *(["why"] if explained else [])],
        rows=rows,
        prose=[*([1] if named else []), *([len(head)] if explained else [])],
    )


def _speedups(record: SweepRecord) -> Table:
    """A row for every sublayer on every machine, a column for every policy, and the bound."""
    unit = unit_of(TIMES, (run.result.time_ns.total for item in record.variants for run in item.runs))
    rows = []
    for machine, sublayer, runs in _points(record):
        alone = runs["sequential"].result.time_ns.total
        bounds = ideal_times([run.result for run in runs.values()])
        gains = {policy: f"{alone / time:.3f}" for policy, time in bounds.items()}
        gains |= {policy: f"{run.speedup:.3f}" for policy, run in runs.items() if policy != "sequential"}
        policies = list(gains)  # the same for all: a sweep runs the same policies everywhere
        rows.append((machine, sublayer, unit.text(alone), *gains.values()))
    return Table(
        caption="Speedups over sequential: 1 is no overlap, ideal-overlap is overlap without contention",
        head=("machine", "sublayer", unit.title("sequential, time"), *policies),
        rows=rows,
        prose=(1,),
    )


def _exposed(record: SweepRecord) -> Folded:
    """What is not hidden, in the same rows and columns."""
    unit = unit_of(TIMES, (run.result.time_ns.exposed_communication for item in record.variants for run in item.runs))
    policies = _policies(record)
    table = Table(
        caption=f"Exposed communication, in {unit.name}: communication while no workgroup is resident",
        head=("machine", "sublayer", *policies),
        rows=[
            (machine, sublayer,
             *(unit.text(runs[policy].result.time_ns.exposed_communication) if policy in runs else DASH
               for policy in policies))
            for machine, sublayer, runs in _points(record)
        ],
        prose=(1,),
    )  # fmt: skip
    return Folded(title="Exposed communication of every run", items=[table])


def _policies(record: SweepRecord) -> list[str]:
    return list(dict.fromkeys(run.result.policy for item in record.variants for run in item.runs))


def _points(record: SweepRecord) -> Iterator[tuple[str, str, dict[str, SweptRun]]]:
    """Machine, sublayer, and its runs by policy."""
    for item in record.variants:
        runs: dict[str, dict[str, SweptRun]] = {}
        for run in item.runs:
            runs.setdefault(workload_title(run.result.workload), {})[run.result.policy] = run
        yield from ((item.name, sublayer, found) for sublayer, found in runs.items())


def _run_name(result: Result) -> str:
    return f"{workload_title(result.workload)}, {result.policy}"
