"""What a reader takes home from maps of arbitration: one sentence each, made from the records alone."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from t3sim.study.suite import OVERLAPPED

from .gains import TOLERANCE
from .record import IMPLIED_PAIR, ArbitrationMap, Cell, Place

FC = ("fc1", "fc2")

LATE = 0.02
"""CUs that wait for loads by this part of the GEMM longer than alone wait for communication."""
ROUNDING = 0.005
"""Of the two figures of the implied pair."""


def sentences(records: Collection[ArbitrationMap]) -> list[str]:
    """When arbitration by this project's rule is needed, when it is not, what the paper's rule does, and where the
    implied pair is. Of records from before the reduce-scatter or the rule was kept, the last one or two only."""
    places = [place for record in records for place in record.places()]
    ours, theirs = ([place.cell for place in places if place.machine.rule == rule] for rule in ("backlog", "paper"))
    said: list[str] = []
    if all(cell.gemm_is_longer is not None for cell in ours):
        said += _by_need(ours)
    if theirs:
        said.append(
            "Under the paper's rule, with its limits or others, the GEMM gains "
            f"{_range([cell.worth for cell in theirs])}, but the sublayer {_gain(theirs)}, on {len(theirs)} pairs: "
            "communication that was held ends later."
        )
    return [*said, *_implied(records)]


def _by_need(cells: Sequence[Cell]) -> Iterator[str]:
    """When arbitration by this project's rule is needed, and when it is not."""
    needed = [cell for cell in cells if _needs(cell)]
    others = [cell for cell in cells if not _needs(cell)]
    if needed:
        yield (
            "You need MCA, by this project's rule, when the GEMM takes longer than the reduce-scatter and, without "
            f"arbitration, its CUs wait for loads at least {LATE:.0%} of its time longer than alone: on the "
            f"{len(needed)} such pairs of GEMM and machine the sublayer gains {_gain(needed)}."
        )
    if others:
        yield (
            "You do not when the reduce-scatter takes longer than the GEMM, or the GEMM tolerates the wait: on the "
            f"other {len(others)} pairs it gains {_gain(others)}."
        )


def _needs(cell: Cell) -> bool:
    return bool(cell.gemm_is_longer) and cell.late_loads >= LATE


def _gain(cells: Sequence[Cell]) -> str:
    """What sublayers gain by arbitration, and how many lose."""
    lost = sum(cell.gain < 1 - TOLERANCE for cell in cells)
    return f"{_range([cell.gain for cell in cells])}; losing more than {TOLERANCE:.1%}: {lost}"


def _range(gains: Sequence[float]) -> str:
    """The middle, and the ends."""
    found = [100 * (gain - 1) for gain in gains]
    return f"{np.median(found):.1f} % (the median; {min(found):+.1f} to {max(found):+.1f} %)"


def _implied(records: Collection[ArbitrationMap]) -> Iterator[str]:
    """How near an FC layer is to the pair that the published speedups imply; nothing without one."""
    t3, mca = IMPLIED_PAIR
    places = [(record, place) for record in records for place in _fc_places(record)]
    if not places:
        return
    close = nearest(place for _, place in places)
    where = next(_where(*item) for item in places if item[1] is close)
    there = "is in the map" if reached([close]) else "lies nowhere in the map"
    yield (
        f"The published speedups of large FC layers need a GEMM {t3} times as long under t3 and {mca} under t3-mca, "
        f"which {there} of {len(places)} pairs of FC layer and machine: nearest is {_both(close)} ({where})"
        f"{_most(places)}."
    )


def _fc_places(record: ArbitrationMap) -> Iterator[Place]:
    fc = {title for title, gemm in zip(record.titles, record.gemms, strict=True) if gemm.sublayer in FC}
    return (place for place in record.places() if place.gemm in fc)


def _both(place: Place) -> str:
    return "{:.2f} and {:.2f}".format(*place.cell.pair)


def _most(places: Sequence[tuple[ArbitrationMap, Place]]) -> str:
    """Where the GEMM is longest under t3 of all places where it is as the implied pair, or less, under t3-mca."""
    mca = IMPLIED_PAIR[1]
    quiet = [item for item in places if item[1].cell.pair[1] <= mca + ROUNDING]
    if not quiet:
        return f"; under t3-mca it is above {mca} everywhere"
    most = max(quiet, key=lambda item: item[1].cell.pair[0])
    return f"; of those with {mca} or less under t3-mca, the longest under t3 is {_both(most[1])} ({_where(*most)})"


def _where(record: ArbitrationMap, place: Place) -> str:
    t3, mca = (place.cell.policies[policy].speedup for policy in OVERLAPPED)
    return (
        f"{place.gemm} on {record.machine} with {place.machine.name}, where the sublayer's speedup is {t3:.2f} and "
        f"{mca:.2f}"
    )


def nearest(places: Iterable[Place]) -> Place:
    """Where GEMM under t3 and under t3-mca are nearest to the implied pair."""
    return min(places, key=lambda place: _distance(place.cell))


def reached(places: Iterable[Place]) -> bool:
    """Whether the implied pair is there, within the rounding of its two figures."""
    return _distance(nearest(places).cell) <= ROUNDING


def _distance(cell: Cell) -> float:
    """How far the pair of ``cell`` is from the implied one: the larger of both differences."""
    return max(abs(value - wanted) for value, wanted in zip(cell.pair, IMPLIED_PAIR, strict=True))
