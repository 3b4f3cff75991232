"""The section of a map of arbitration: what it is worth on every machine, and who waited."""

from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from t3sim.common.units import digits
from t3sim.explain.causes import TITLES as CAUSE_TITLES
from t3sim.inputs.machine.files import CONFIG
from t3sim.inputs.machine.settings import machine_title, settings_text
from t3sim.run.request import Policy
from t3sim.study.arbitration.gains import COLUMNS, rows, verdict
from t3sim.study.arbitration.record import IMPLIED_PAIR, ArbitrationMap, Cell, MappedMachine, StreamWaits
from t3sim.study.arbitration.sentences import sentences
from t3sim.study.arbitration.table import extreme_places, is_pair, most_of, stage_names
from t3sim.study.suite import OVERLAPPED

from .configuration import cautions, cautions_of, configuration_block
from .figures import HEAD, SMALL_ROW, finished, plain
from .folders import Mapped
from .parts import DASH, Block, Card, Cards, Chart, Section, Table, Tabs, Text, plural
from .provenance import earlier, map_command, record_blocks

SCALE = ((0, "#5E3C99"), (0.5, "#F7F7F7"), (1, "#E66101"))
"""Purple below 1, orange above it."""
LEAST = 0.02
"""A colour scale reaches at least so far from 1."""
MOST_TITLES = 12
"""GEMMs that the head of the section names: as many as the paper's."""


def map_section(folder: Mapped) -> Section:
    """All blocks of a map."""
    record = folder.record
    return Section(
        title=f"Map of arbitration: {plural(len(record.machines), 'machine')}, {plural(len(record.gemms), 'GEMM')}",
        name=folder.name,
        facts=[
            f"machine {machine_title(record.machine, record.settings)}",
            "one GPU of every ring, its traffic mirrored",
            _titles(record),
        ],
        blocks=[
            Block(title="Summary", items=[
                Cards(cards=_cards(record)),
                *earlier(record),
                _extremes(record),
                Text(text=MEANINGS),
                *(Text(text=sentence) for sentence in sentences([record])),
                *(Text(text=f"Does not add up: {text}.") for text in record.failures),
                *cautions_of(folder.config, record.machine),
            ]),
            *(_blocks_of_changes(record) if record.singles else [Block(title="Every GEMM", items=[_gains(record)])]),
            *_configuration(folder),
            *record_blocks(
                map_command(record, folder.name),
                {
                    "version of OpenT3": record.opent3, "digest of the simulator": record.sources,
                    "machine": record.machine, "T3 hardware": record.hardware, "seed": str(record.seed),
                    "settings of all runs": settings_text(record.settings),
                },
                folder.config,
            ),
        ],
    )  # fmt: skip


def _configuration(folder: Mapped) -> list[Block]:
    """The machine without a change; a map has no digest to check it by."""
    if folder.config is None:
        return []
    machine = folder.config.machine
    note = " ".join([f"The folder's `{CONFIG}`.", *cautions(machine, folder.record.machine)])
    return [configuration_block(machine, note)]


def _titles(record: ArbitrationMap) -> str:
    more = len(record.titles) - MOST_TITLES
    return "; ".join([*record.titles[:MOST_TITLES], *([f"and {more} more"] if more > 0 else [])])


def _blocks_of_changes(record: ArbitrationMap) -> list[Block]:
    return [
        *(
            [Block(title="What arbitration is worth", items=[_by_gemm(record, _heat_map)])]
            if _has_pairs(record)
            else []
        ),
        Block(title="Speedups on every machine", items=[_by_gemm(record, _machines)]),
        Block(title="Waits by cause", items=[_by_gemm(record, _waits)]),
        *([Block(title="Waits by stage", items=[_by_gemm(record, _stages)])] if _has_stages(record) else []),
        Block(title="Changes", items=[_changes(record)]),
    ]


def _gains(record: ArbitrationMap) -> Table:
    return Table(caption=verdict(record), head=("GEMM", *COLUMNS), rows=list(rows(record)))


def _cards(record: ArbitrationMap) -> list[Card]:
    """The range of what arbitration is worth and of what contention costs, beside what was published."""
    worth = [place.cell.worth for place in record.places()]
    cost = [place.cell.pair[0] for place in record.places()]
    gain = [place.cell.gain for place in record.places()]
    t3, mca = IMPLIED_PAIR
    return [
        Card(
            title="Worth of arbitration", value=f"{min(worth):.3f}x to {max(worth):.3f}x", note="GEMM, t3 over t3-mca"
        ),
        Card(
            title="Cost of contention", value=f"{min(cost):.3f}x to {max(cost):.3f}x", note="GEMM, t3 over sequential"
        ),
        Card(title="Gain of the sublayer", value=f"{min(gain):.3f}x to {max(gain):.3f}x", note="time, t3 over t3-mca"),
        Card(title="What the published speedups need", value=f"{t3 / mca:.3f}x", note=f"GEMM {t3}x and {mca}x as long"),
    ]


def _extremes(record: ArbitrationMap) -> Table:
    """Where the arbiter matters most and least, where it is needed most, and what is nearest to the implied pair."""
    return Table(
        caption="Extremes over all machines and GEMMs; times of the GEMM over its sequential time",
        head=("", "GEMM", "machine", *EXTREME_COLUMNS),
        rows=[
            (name, place.gemm, place.machine.name, *(f"{get(place.cell):.3f}" for get in EXTREME_COLUMNS.values()))
            for name, place in extreme_places(record).items()
        ],
        prose=(1, 2),
    )


EXTREME_COLUMNS: dict[str, Callable[[Cell], float]] = {
    "GEMM under t3": lambda cell: cell.pair[0],
    "under t3-mca": lambda cell: cell.pair[1],
    "worth of arbitration": lambda cell: cell.worth,
    "gain of the sublayer": lambda cell: cell.gain,
}


MEANINGS = (
    "Worth of arbitration: the GEMM's time under t3 over that under t3-mca. Gain of the sublayer: the same of the "
    "whole sublayer, GEMM and collectives."
)


def _has_pairs(record: ArbitrationMap) -> bool:
    return any(is_pair(machine) for machine in record.machines)


def _has_stages(record: ArbitrationMap) -> bool:
    """Records from before waits were kept by stage have none."""
    return all(policy.stages for cell in record.machines[0].cells for policy in cell.policies.values())


def _by_gemm(record: ArbitrationMap, make: Callable[[ArbitrationMap, int], Chart | Table]) -> Tabs:
    return Tabs(label="GEMM", tabs={title: [make(record, index)] for index, title in enumerate(record.titles)})


def _heat_map(record: ArbitrationMap, index: int) -> Chart:
    """Every change alone, on the diagonal, and every pair of changes."""
    names = [name for changes in record.singles.values() for name in changes]
    rows: list[list[float | None]] = []
    for place, first in enumerate(names):
        machines = [record.at({first, second}) for second in names[: place + 1]]
        rows.append([None if item is None else item.cells[index].worth for item in machines])
        rows[-1] += [None] * (len(names) - len(rows[-1]))
    title = f"What arbitration is worth, {record.titles[index]}"
    base = record.machines[0].cells[index].worth
    return Chart(
        title=title,
        summary=f"Time of the GEMM under t3 over that under t3-mca, for {plural(len(names), 'change')} of the machine "
        f"and their pairs; {base:.3f} on the machine as it is.",
        figure=_heat_figure(names, rows),
        table=Table(
            caption=f"{title}: every change alone, on the diagonal, and with another",
            head=("change", *names),
            rows=[
                (name, *(DASH if value is None else f"{value:.3f}" for value in row))
                for name, row in zip(names, rows, strict=True)
            ],
        ),
    )


def _heat_figure(names: Sequence[str], rows: Sequence[Sequence[float | None]]) -> dict[str, object]:
    reach = max([LEAST, *(abs(value - 1) for row in rows for value in row if value is not None)])
    labels = [plain(name) for name in names]
    figure = go.Figure()
    figure.add_heatmap(
        x=labels, y=labels, z=rows, zmin=1 - reach, zmax=1 + reach, colorscale=SCALE, hoverongaps=False, xgap=1, ygap=1,
        colorbar={"title": {"text": "GEMM time, t3 / t3-mca", "side": "right"}},
        hovertemplate="%{y} and %{x}: %{z:.3f}<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(showgrid=False, tickangle=-45)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return finished(figure, 2 * HEAD + SMALL_ROW * len(names))


def _machines(record: ArbitrationMap, index: int) -> Table:
    fields: dict[str, Callable[[Cell], float]] = {
        "GEMM under t3, sequential = 1": lambda cell: cell.pair[0],
        "under t3-mca": lambda cell: cell.pair[1],
        "worth of arbitration": lambda cell: cell.worth,
        "speedup of t3": lambda cell: cell.policies["t3"].speedup,
        "of t3-mca": lambda cell: cell.policies["t3-mca"].speedup,
        "gain of the sublayer": lambda cell: cell.gain,
        "speedup of ideal-overlap": lambda cell: cell.ideal,
    }
    return Table(
        caption=f"{record.titles[index]} on every machine",
        head=("machine", *fields),
        rows=[
            (machine.name, *(f"{get(machine.cells[index]):.3f}" for get in fields.values()))
            for machine in record.machines
        ],
    )


def _waits(record: ArbitrationMap, index: int) -> Table:
    streams: dict[str, Callable[[Cell, Policy], StreamWaits]] = {
        "compute": lambda cell, policy: cell.policies[policy].compute,
        "communication": lambda cell, policy: cell.policies[policy].communication,
    }
    causes = [(stream, get, cause) for stream, get in streams.items() for cause in CAUSE_TITLES]

    def cells(machine: MappedMachine, policy: Policy) -> list[str]:
        cell = machine.cells[index]
        stalls = (f"{100 * cell.policies[policy].stalls[kind]:.1f}" for kind in ("loads", "stores"))
        return [*stalls, *(digits(get(cell, policy).blocked[cause]) for _, get, cause in causes)]

    return Table(
        caption=f"{record.titles[index]}: waits of the CUs in percent of the sequential GEMM's time, and memory clocks "
        "that the streams waited at the memory slices for each of their lines, by what they waited for",
        head=(
            "machine and policy", "CUs: loads", "CUs: stores",
            *(f"{stream}: {CAUSE_TITLES[cause]}" for stream, _, cause in causes),
        ),
        rows=[
            (f"{machine.name}, {policy}", *cells(machine, policy))
            for machine in record.machines
            for policy in OVERLAPPED
        ],
    )  # fmt: skip


def _stages(record: ArbitrationMap, index: int) -> Table:
    """Which stream waited when, on the machine as it is."""
    cell = record.machines[0].cells[index]
    policies = {policy: cell.policies[policy] for policy in OVERLAPPED}
    columns = [
        (stream, policy, getattr(found, stream).by_stage)
        for stream in ("compute", "communication")
        for policy, found in policies.items()
    ]
    names = stage_names(policies["t3"].stages)
    return Table(
        caption=f"{record.titles[index]} on the machine as it is: memory clocks that each stream waited at the memory "
        "slices for each of its lines, by stage of the GEMM, with what it waited for most",
        head=("stages", *(f"{stream}, {policy}" for stream, policy, _ in columns)),
        rows=[(name, *(most_of(stages[row]) for _, _, stages in columns)) for row, name in enumerate(names)],
    )


def _changes(record: ArbitrationMap) -> Table:
    return Table(
        caption="What is changed on the machine, and why",
        head=("change", "settings", "why"),
        rows=[(name, settings_text(item.settings), item.why) for name, item in record.changes.items()],
        prose=(1, 2),
    )
