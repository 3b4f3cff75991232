"""Waves as a Value Change Dump: scopes ``t3.gpu0.tracker.token_0``, and one clock for all."""

from collections.abc import Iterator
from typing import TextIO

from t3hdl.interface.layouts import TIME_BITS
from vcd import VCDWriter

from .probe import Change
from .record import Wave, Waves
from .signals import NOW, Signal

TOP = "t3"
CLOCK = "clk"


def unit_scope(waves: Waves) -> tuple[str, ...]:
    """The scope of the unit, in which its clock is and the time that its parts see."""
    return TOP, f"gpu{waves.gpu}"


def signal_path(waves: Waves, wave: Wave, signal: Signal) -> tuple[str, ...]:
    """Scopes and name of a signal."""
    return (*unit_scope(waves), wave.instance.name, *signal.path)


def write_vcd(waves: Waves, file: TextIO) -> None:
    """Write ``waves``; times are picoseconds since the launch of the GEMM."""
    window, scope = waves.window, unit_scope(waves)
    start = waves.picoseconds(window.first)
    with VCDWriter(file, timescale="1 ps", date="", version="OpenT3, t3 waves", init_timestamp=start) as writer:
        clock = writer.register_var(scope, CLOCK, "wire", 1, init=1)
        now = writer.register_var(scope, NOW, "wire", TIME_BITS, init=window.first + waves.epoch)
        variables = []
        for wave in waves.parts:
            values = _first_values(wave)
            for number, signal in enumerate(wave.signals):
                *scopes, name = signal_path(waves, wave, signal)
                variables.append(writer.register_var(tuple(scopes), name, "wire", signal.bits, init=values[number]))
        changes = _in_order(waves)
        change = next(changes, None)
        for cycle in range(window.first, window.last):
            edge, following = waves.picoseconds(cycle), waves.picoseconds(cycle + 1)
            writer.change(clock, edge, 1)
            writer.change(now, edge, cycle + waves.epoch)
            while change is not None and change[0] == cycle:
                writer.change(variables[change[1]], edge, _shown(change[2]))
                change = next(changes, None)
            writer.change(clock, (edge + following) // 2, 0)
        writer.close(waves.picoseconds(window.last))


def _first_values(wave: Wave) -> dict[int, int | str]:
    """The values at the first clock that was looked at, by the number of the signal."""
    values: dict[int, int | str] = {}
    for _, number, value in wave.changes:
        values.setdefault(number, _shown(value))
    return values


def _shown(value: int | None) -> int | str:
    """A value as the writer takes it: unknown while it means nothing."""
    return "x" if value is None else value


def _in_order(waves: Waves) -> Iterator[Change]:
    """The changes of all instances by their cycles: cycle, number among the signals of all, value."""
    found, first = [], 0
    for wave in waves.parts:
        found += [(cycle, first + number, value) for cycle, number, value in wave.changes]
        first += len(wave.signals)
    return iter(sorted(found, key=lambda change: change[:2]))
