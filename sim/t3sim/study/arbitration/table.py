"""The map on a terminal: machines with what arbitration is worth there, and the extremes that were found."""

from collections.abc import Callable, Iterable, Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from t3sim.common.fitted_table import FittedTable
from t3sim.study.evaluation import geomean

from .record import PUBLISHED_PAIR, ArbitrationMap, Cell, MappedMachine, Place

CAUSE_TITLES = {
    "other_stream": "the other stream's turn", "threshold": "the threshold", "full_queue": "a full DRAM queue",
    "tracker": "the tracker",
}  # fmt: skip
SHOWN_PAIRS = 12
"""Pairs of changes on the terminal: those where arbitration is worth most. All are in the file and the pictures."""


def map_table(record: ArbitrationMap) -> RenderableType:
    """Geometric means over the GEMMs, for the base and its changes one at a time, combinations, and the best pairs."""
    table = FittedTable(
        "machine", "GEMM, t3", "t3-mca", "worth", "speedup, t3", "t3-mca", "gain", "ideal", "CUs wait for loads, %",
        "for stores, %", "compute mostly waits for", text=["compute mostly waits for"],
    )  # fmt: skip
    for machine in shown_machines(record):
        table.add_row(machine.name, *(cell(machine) for cell in COLUMNS))
    count = len(record.machines)
    title = f"geometric means over {len(record.gemms)} GEMMs, on {table.row_count} of {count} machines"
    return Group(
        Text(title, style="bold"), table, Text(), *(Text(line) for line in extremes(record)), Text(NOTE, style="dim")
    )


NOTE = (
    "GEMM: its time over the sequential GEMM's. worth: the GEMM's time under t3 over that under t3-mca. "
    "gain: the same of the whole sublayer. "
    "Waits: of the sequential GEMM's time, sequential -> t3 -> t3-mca; at the memory slices, under t3."
)


def shown_machines(record: ArbitrationMap) -> Iterator[MappedMachine]:
    """The base and one change at a time, the pairs that are worth most, the combinations."""
    pairs = [item for item in record.machines if is_pair(item)]
    best = sorted(pairs, key=lambda item: -item.worth)[:SHOWN_PAIRS]
    for item in record.machines:
        if item not in pairs or item in best:
            yield item


def is_pair(machine: MappedMachine) -> bool:
    """Whether the machine is two changes without a name of its own."""
    return len(machine.changes) == 2 and not machine.why


def _mean(value: Callable[[Cell], float]) -> Callable[[MappedMachine], str]:
    return lambda machine: f"{geomean(map(value, machine.cells)):.3f}"


def _stalls(kind: str) -> Callable[[MappedMachine], str]:
    """Arithmetic means over the GEMMs, of each policy."""

    def cell(machine: MappedMachine) -> str:
        policies = machine.cells[0].policies
        sums = (sum(item.policies[policy].stalls[kind] for item in machine.cells) for policy in policies)
        return " -> ".join(f"{100 * value / len(machine.cells):.1f}" for value in sums)

    return cell


def cause_of(cells: Iterable[Cell]) -> str:
    """For what the compute stream waits longest under t3, over these GEMMs; the share of its blocked clocks."""
    blocked = [cell.policies["t3"].compute.blocked for cell in cells]
    sums = {cause: sum(item[cause] for item in blocked) for cause in CAUSE_TITLES}
    cause, whole = max(sums, key=lambda name: sums[name]), sum(sums.values())
    return f"{CAUSE_TITLES[cause]}, {sums[cause] / whole:.0%}" if whole else "nothing"


COLUMNS: tuple[Callable[[MappedMachine], str], ...] = (
    _mean(lambda cell: cell.pair[0]),
    _mean(lambda cell: cell.pair[1]),
    _mean(lambda cell: cell.worth),
    _mean(lambda cell: cell.policies["t3"].speedup),
    _mean(lambda cell: cell.policies["t3-mca"].speedup),
    _mean(lambda cell: cell.gain),
    _mean(lambda cell: cell.ideal),
    _stalls("loads"),
    _stalls("stores"),
    lambda machine: cause_of(machine.cells),
)


def extremes(record: ArbitrationMap) -> Iterator[str]:
    """Where arbitration is worth most and least, where the GEMM is slowest, and how near the published pair is."""
    places = list(record.places())
    found = {
        "arbitration is worth most": max(places, key=lambda place: place.cell.worth),
        "arbitration is worth least": min(places, key=lambda place: place.cell.worth),
        "the sublayer gains most": max(places, key=lambda place: place.cell.gain),
        "the sublayer gains least": min(places, key=lambda place: place.cell.gain),
        "the GEMM is slowest under t3": max(places, key=lambda place: place.cell.pair[0]),
        "nearest to the published pair": nearest(places),
    }
    for title, (machine, gemm, cell) in found.items():
        t3, mca = cell.pair
        yield f"{title}: worth {cell.worth:.3f} ({t3:.3f}, {mca:.3f}), gain {cell.gain:.3f}, {gemm} on {machine.name}"
    t3, mca = PUBLISHED_PAIR
    yield (
        f"the published pair, a GEMM {t3} times as long under t3 and {mca} under t3-mca (worth {t3 / mca:.3f}), is "
        f"{'in the map' if reached(places) else 'nowhere in the map'}"
    )


def nearest(places: Iterable[Place]) -> Place:
    """Where GEMM under t3 and under t3-mca are nearest to the published pair."""
    return min(places, key=lambda place: distance(place.cell))


def reached(places: Iterable[Place]) -> bool:
    """Whether the published pair is there, within the rounding of its two figures."""
    return distance(nearest(places).cell) <= ROUNDING


ROUNDING = 0.005


def distance(cell: Cell) -> float:
    """How far the pair of ``cell`` is from the published one: the larger of both differences."""
    return max(abs(value - wanted) for value, wanted in zip(cell.pair, PUBLISHED_PAIR, strict=True))
