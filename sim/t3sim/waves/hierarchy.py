"""From waves to a waveform: the unit's clock and time, and each part's ports and internal signals, in scopes."""

from collections.abc import Iterator, Sequence
from heapq import merge

from t3hdl.interface.layouts import TIME_BITS

from .internals import CLOCK
from .record import Wave, Waves
from .signals import NOW, Change, Signal
from .waveform import TimedChange, Variable, Waveform

TOP = "t3"


def unit_scope(waves: Waves) -> tuple[str, ...]:
    """The scope of the unit, in which its clock is and the time that its parts see."""
    return TOP, f"gpu{waves.gpu}"


def signal_path(waves: Waves, wave: Wave, signal: Signal) -> tuple[str, ...]:
    """Scopes and name of a port's signal."""
    return (*unit_scope(waves), wave.instance.name, *signal.path)


def waveform(waves: Waves) -> Waveform:
    """The clock, the time that parts see, every port and every internal signal of ``waves``."""
    scope = unit_scope(waves)
    variables = [Variable(path=(*scope, CLOCK), bits=1), Variable(path=(*scope, NOW), bits=TIME_BITS)]
    streams = [_clock(waves)]
    for wave in waves.parts:
        for signals, changes in ((wave.signals, wave.changes), (wave.internals.signals, wave.internals.changes)):
            streams.append(_timed(waves, changes, len(variables)))
            variables += [Variable(path=(*scope, wave.instance.name, *x.path), bits=x.bits) for x in signals]
    first: dict[int, int | None] = {}
    behind: list[TimedChange] = []
    for time, number, value in merge(*streams, key=lambda change: change[0]):
        if number in first:
            behind.append((time, number, value))
        else:
            first[number] = value
    return Waveform(
        variables=variables,
        begin=waves.picoseconds(waves.window.first),
        end=waves.picoseconds(waves.window.last),
        first=[first.get(number) for number in range(len(variables))],
        changes=behind,
    )


def _clock(waves: Waves) -> Iterator[TimedChange]:
    """The changes of the clock (number 0) and of the time that parts see (number 1)."""
    for cycle in range(waves.window.first, waves.window.last):
        edge, following = waves.picoseconds(cycle), waves.picoseconds(cycle + 1)
        yield edge, 0, 1
        yield edge, 1, cycle + waves.epoch
        yield (edge + following) // 2, 0, 0


def _timed(waves: Waves, changes: Sequence[Change], first: int) -> Iterator[TimedChange]:
    """``changes`` of signals of which ``first`` is the number of the first."""
    for cycle, number, value in changes:
        yield waves.picoseconds(cycle), first + number, value
