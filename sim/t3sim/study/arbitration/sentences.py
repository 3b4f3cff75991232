"""What a reader takes home from maps of arbitration: one sentence each, made from the records alone."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from .record import IMPLIED_PAIR, ArbitrationMap, Cell, Place

LATE = 0.02
"""CUs that wait for loads by this part of the GEMM longer than alone wait for communication."""
ROUNDING = 0.005
"""Of the two figures of the implied pair."""


def sentences(records: Collection[ArbitrationMap]) -> list[str]:
    """When arbitration is needed, when it is not, and where the implied pair is. Of records from before the
    reduce-scatter was kept, the last one only."""
    cells = [place.cell for record in records for place in record.places()]
    needed = [cell for cell in cells if _needs(cell)]
    others = [cell for cell in cells if not _needs(cell)]
    said = []
    if needed and all(cell.gemm_is_longer is not None for cell in cells):
        said.append(
            "You need MCA when the GEMM takes longer than the reduce-scatter and, without arbitration, its CUs wait "
            f"for loads at least {LATE:.0%} of its time longer than alone: on the {len(needed)} such pairs of GEMM and "
            f"machine the sublayer then takes {_range(needed)} less time."
        )
    if others and all(cell.gemm_is_longer is not None for cell in cells):
        said.append(
            "You do not when the reduce-scatter takes longer than the GEMM, or the GEMM tolerates the wait: on the "
            f"other {len(others)} pairs it takes {_range(others)} less."
        )
    return [*said, _implied(records)]


def _needs(cell: Cell) -> bool:
    return bool(cell.gemm_is_longer) and cell.late_loads >= LATE


def _range(cells: Sequence[Cell]) -> str:
    """What the sublayer gains by arbitration: the middle, and the ends."""
    saved = [100 * (1 - 1 / cell.gain) for cell in cells]
    return f"{np.median(saved):.1f} % (the median; {min(saved):+.1f} to {max(saved):+.1f} %)"


def _implied(records: Collection[ArbitrationMap]) -> str:
    """How near a GEMM is to the pair that the published speedups imply."""
    t3, mca = IMPLIED_PAIR
    places = [(record, place) for record in records for place in record.places()]
    close = nearest(place for _, place in places)
    where = next(_where(*item) for item in places if item[1] is close)
    there = "is in the map" if reached([close]) else "lies nowhere in the map"
    return (
        f"The published speedups of large FC layers need a GEMM {t3} times as long under t3 and {mca} under t3-mca, "
        f"which {there} of {len(places)} pairs: nearest is {_both(close)} ({where}){_most(places)}."
    )


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
    return f"{place.gemm} on {record.machine} with {place.machine.name}"


def nearest(places: Iterable[Place]) -> Place:
    """Where GEMM under t3 and under t3-mca are nearest to the implied pair."""
    return min(places, key=lambda place: _distance(place.cell))


def reached(places: Iterable[Place]) -> bool:
    """Whether the implied pair is there, within the rounding of its two figures."""
    return _distance(nearest(places).cell) <= ROUNDING


def _distance(cell: Cell) -> float:
    """How far the pair of ``cell`` is from the implied one: the larger of both differences."""
    return max(abs(value - wanted) for value, wanted in zip(cell.pair, IMPLIED_PAIR, strict=True))
