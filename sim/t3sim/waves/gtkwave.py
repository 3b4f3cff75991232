"""A save file for GTKWave: which signals it shows, in a group for each part and in that one for each stream."""

from itertools import groupby
from typing import TextIO

from t3hdl.interface.layouts import TIME_BITS
from vcd.gtkw import GTKWSave

from .hierarchy import signal_path, unit_scope
from .internals import CLOCK
from .record import Waves
from .signals import NOW

OTHERS = "status and levels"


def write_save(waves: Waves, waveform: str, name: str, file: TextIO) -> None:
    """Write the save file called ``name`` of the file ``waveform``, which is in the same folder.

    GTKWave looks for the waveform beside the save file only if the latter says what itself is called.
    """
    save = GTKWSave(file)
    save.savefile(name, abspath=False)
    save.dumpfile(waveform, abspath=False)
    save.timestart(waves.picoseconds(waves.window.first))
    unit = ".".join(unit_scope(waves))
    save.treeopen(f"{unit}.")
    save.trace(f"{unit}.{CLOCK}")
    save.trace(_name((unit, NOW), TIME_BITS), datafmt="dec")
    for wave in waves.parts:
        with save.group(wave.instance.name):
            for stream, signals in groupby(wave.signals, key=lambda signal: signal.stream):
                with save.group(stream or OTHERS, closed=not stream):
                    for signal in signals:
                        save.trace(_name(signal_path(waves, wave, signal), signal.bits))


def _name(path: tuple[str, ...], bits: int) -> str:
    """A signal as GTKWave calls it: with its bits if it has several."""
    return ".".join(path) + (f"[{bits - 1}:0]" if bits > 1 else "")
