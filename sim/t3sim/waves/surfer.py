"""A command file for Surfer: which signals it shows, behind a divider for each part and each stream."""

from itertools import groupby
from typing import TextIO

from .hierarchy import signal_path, unit_scope
from .internals import CLOCK
from .record import Waves
from .signals import NOW


def write_commands(waves: Waves, file: TextIO) -> None:
    """Write the commands for a waveform that is open: ``surfer rtl.vcd --command-file rtl.sucl``.

    Surfer's paths are relative to where it is started, so that the file does not name the waveform. A divider's name is
    one word.
    """
    unit = ".".join(unit_scope(waves))
    lines = [f"variable_add {unit}.{CLOCK}", f"variable_add {unit}.{NOW}"]
    for wave in waves.parts:
        for stream, signals in groupby(wave.signals, key=lambda signal: signal.stream):
            lines.append(f"divider_add {wave.instance.name}{f'.{stream}' if stream else ''}")
            lines += [f"variable_add {'.'.join(signal_path(waves, wave, signal))}" for signal in signals]
    file.write("\n".join([*lines, "zoom_fit", ""]))
