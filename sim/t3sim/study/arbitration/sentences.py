"""What a reader takes home from maps of arbitration: one sentence each, made from the records alone."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from t3sim.study.published import published
from t3sim.study.suite import OVERLAPPED

from .gains import TOLERANCE
from .record import IMPLIED_PAIR, ArbitrationMap, Cell, Place

Places = Sequence[tuple[ArbitrationMap, Place]]
FC = ("fc1", "fc2")

LATE = 0.02
"""CUs that wait for loads by this part of the GEMM longer than alone wait for communication."""
ROUNDING = 0.005
"""Of the two figures of the implied pair."""


def sentences(records: Collection[ArbitrationMap]) -> list[str]:
    """When arbitration by this project's rule is needed, when it is not, and where the implied pair is; then, for
    comparison, what the paper's rule does. Of records from before the reduce-scatter or the rule was kept, the last two
    or one of them only."""
    places = [(record, place) for record in records for place in record.places()]
    ours, theirs = ([item for item in places if item[1].machine.rule == rule] for rule in ("backlog", "paper"))
    said: list[str] = []
    if all(place.cell.gemm_is_longer is not None for _, place in ours):
        said += _by_need(ours)
    return [*said, *_implied(records), *_by_comparison(theirs)]


def _by_need(places: Places) -> Iterator[str]:
    """When arbitration by this project's rule is needed, and when it is not."""
    cells, where = _cells(places), _machines(places)
    needed = [cell for cell in cells if _needs(cell)]
    others = [cell for cell in cells if not _needs(cell)]
    if needed:
        yield (
            "You need MCA, by this project's rule, when the GEMM takes longer than the reduce-scatter and, without "
            f"arbitration, its CUs wait for loads at least {LATE:.0%} of its time longer than alone: on the "
            f"{len(needed)} such pairs of GEMM and machine ({where}) the sublayer gains {_gain(needed)}."
        )
    if others:
        yield (
            "You do not when the reduce-scatter takes longer than the GEMM, or the GEMM tolerates the wait: on the "
            f"other {len(others)} pairs ({where}) it gains {_gain(others)}."
        )


def _by_comparison(places: Places) -> Iterator[str]:
    """What the paper's rule does; nothing if it was not mapped."""
    if cells := _cells(places):
        yield (
            "For comparison, the paper's rule: with its limits or others, the GEMM gains "
            f"{_range([cell.worth for cell in cells])}, but the sublayer {_gain(cells)}, on {len(cells)} pairs "
            f"({_machines(places)}): communication that was held ends later."
        )


def _cells(places: Places) -> list[Cell]:
    return [place.cell for _, place in places]


def _machines(places: Places) -> str:
    """Which machines, each with its variants."""
    names = sorted({record.machine for record, _ in places})
    one = len(names) == 1
    return f"machine{'' if one else 's'} {' and '.join(names)} and {'its' if one else 'their'} variants"


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
    """How near an FC layer is to the pair that the published speedups imply, how near one is to the published speedups,
    and how near to both; nothing without one."""
    places = [(record, place) for record in records for place in _fc_places(record)]
    if not places:
        return
    pair, wanted = IMPLIED_PAIR, _published()
    close = min(places, key=lambda item: _off(item[1].cell.pair, pair))
    alike = min(places, key=lambda item: _off(_speedups(item[1]), wanted))
    whole = min(_off((*place.cell.pair, *_speedups(place)), (*pair, *wanted)) for _, place in places)
    count = f"the map of {len(places)} pairs of FC layer and machine"
    found = f"is in {count}" if reached([close[1]]) else f"{count} misses by {_off(close[1].cell.pair, pair):.2f}"
    follow = "follow" if _off(_speedups(close[1]), wanted) <= ROUNDING else "do not follow"
    yield (
        f"The published speedups of large FC layers need a GEMM {pair[0]} times as long under t3 and {pair[1]} under "
        f"t3-mca, which {found}: nearest is {_both(close[1].cell.pair)} ({_where(*close)}); there the sublayer's "
        f"speedups are {_both(_speedups(close[1]))} (bound {close[1].cell.ideal:.2f}), so the published ones, "
        f"{_both(wanted)} in the mean of all sublayers, {follow}; nearest to these are {_both(_speedups(alike[1]))} "
        f"({_where(*alike)}; bound {alike[1].cell.ideal:.2f}), with a GEMM {_both(alike[1].cell.pair)} times as long; "
        f"in no pair are all four figures nearer than {whole:.2f}."
    )


def _fc_places(record: ArbitrationMap) -> Iterator[Place]:
    fc = {title for title, gemm in zip(record.titles, record.gemms, strict=True) if gemm.sublayer in FC}
    return (place for place in record.places() if place.gemm in fc)


def _published() -> tuple[float, float]:
    """The mean speedups of sublayers, under t3 and t3-mca."""
    figures = published()
    return figures["t3-geomean"].value, figures["t3-mca-geomean"].value


def _speedups(place: Place) -> tuple[float, float]:
    """The sublayer's, under t3 and t3-mca."""
    t3, mca = (place.cell.policies[policy].speedup for policy in OVERLAPPED)
    return t3, mca


def _both(figures: Sequence[float]) -> str:
    return " and ".join(f"{value:.2f}" for value in figures)


def _where(record: ArbitrationMap, place: Place) -> str:
    return f"{place.gemm} on {record.machine} with {place.machine.name}"


def nearest(places: Iterable[Place]) -> Place:
    """Where GEMM under t3 and under t3-mca are nearest to the implied pair."""
    return min(places, key=lambda place: _off(place.cell.pair, IMPLIED_PAIR))


def reached(places: Iterable[Place]) -> bool:
    """Whether the implied pair is there, within the rounding of its two figures."""
    return _off(nearest(places).cell.pair, IMPLIED_PAIR) <= ROUNDING


def _off(figures: Sequence[float], wanted: Sequence[float]) -> float:
    """How far figures are from the wanted ones: the largest difference."""
    return max(abs(value - target) for value, target in zip(figures, wanted, strict=True))
