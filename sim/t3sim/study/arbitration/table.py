"""The map on a terminal: machines with what arbitration is worth there, and the extremes that were found."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from t3sim.common.fitted_table import FittedTable
from t3sim.explain.causes import TITLES as CAUSE_TITLES
from t3sim.study.evaluation import geomean

from .record import ArbitrationMap, Cell, MappedMachine, Place
from .sentences import nearest, sentences

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
    lines = (*extremes(record), "", *sentences([record]))
    return Group(Text(title, style="bold"), table, Text(), *map(Text, lines), Text(NOTE, style="dim"))


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


def extreme_places(record: ArbitrationMap) -> dict[str, Place]:
    """Where arbitration is worth most and least, where the GEMM is slowest, and what is nearest to the implied pair."""
    places = list(record.places())
    return {
        "arbitration is worth most": max(places, key=lambda place: place.cell.worth),
        "arbitration is worth least": min(places, key=lambda place: place.cell.worth),
        "the sublayer gains most": max(places, key=lambda place: place.cell.gain),
        "the sublayer gains least": min(places, key=lambda place: place.cell.gain),
        "the GEMM is slowest under t3": max(places, key=lambda place: place.cell.pair[0]),
        "nearest to the implied pair": nearest(places),
    }


def extremes(record: ArbitrationMap) -> Iterator[str]:
    """The extreme places, each in a line."""
    for title, (machine, gemm, cell) in extreme_places(record).items():
        t3, mca = cell.pair
        yield f"{title}: worth {cell.worth:.3f} ({t3:.3f}, {mca:.3f}), gain {cell.gain:.3f}, {gemm} on {machine.name}"


def stage_names(stages: Sequence[int]) -> list[str]:
    """The groups of stages that begin there, counted from 1; the last one is what comes after the GEMM."""
    names = [str(end) if first + 1 == end else f"{first + 1} to {end}" for first, end in itertools.pairwise(stages)]
    return [*names, "after the GEMM"]


def most_of(blocked: Mapping[str, float]) -> str:
    """The clocks of all causes, and the cause that most of them are of."""
    whole, cause = sum(blocked.values()), max(blocked, key=lambda name: blocked[name])
    return f"{whole:.3f} ({CAUSE_TITLES[cause]})" if whole >= 0.0005 else "0"
