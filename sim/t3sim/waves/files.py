"""The files of waves in an output folder: a waveform and a save file of each, and whether both are the same."""

from collections.abc import Sequence
from pathlib import Path

from .compare import first_difference
from .record import Waves
from .save import write_save
from .vcd import write_vcd


def write_waves(waves: Waves, folder: Path) -> None:
    """Write ``rtl.vcd`` and ``rtl.gtkw``, or those of the golden model. Raises OSError."""
    vcd = f"{waves.hardware}.vcd"
    with (folder / vcd).open("w", encoding="utf-8") as file:
        write_vcd(waves, file)
    with (folder / f"{waves.hardware}.gtkw").open("w", encoding="utf-8") as file:
        write_save(waves, vcd, file)


def summary(recorded: Sequence[Waves]) -> str:
    """What was recorded: the GPU's parts, the window, and how much changes in it."""
    waves = recorded[0]
    first, last = (waves.picoseconds(cycle) / 1000 for cycle in (waves.window.first, waves.window.last))
    changes = sum(len(wave.changes) for wave in waves.parts)
    return (
        f"GPU {waves.gpu}, {', '.join(wave.instance.name for wave in waves.parts)}: {first:g} ns to {last:g} ns "
        f"({waves.window.last - waves.window.first} clocks), {changes} values of "
        f"{sum(len(wave.signals) for wave in waves.parts)} signals"
    )


def difference_text(rtl: Waves, golden: Waves) -> str | None:
    """Where RTL and golden model differ first, in words; None if they do not."""
    found = first_difference(rtl, golden)
    if found is None:
        return None
    return (
        f"RTL and golden model differ first at {rtl.picoseconds(found.cycle) / 1000:g} ns in {found.signal}: "
        f"RTL {found.values[0]}, golden model {found.values[1]}"
    )
