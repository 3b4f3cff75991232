"""The files of waves in an output folder: a waveform, and what viewers show of it; and whether waves are the same."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from .compare import first_difference
from .gtkwave import write_save
from .hierarchy import waveform
from .record import Waves
from .surfer import write_commands
from .vcd import write_vcd
from .waveform import Waveform

FORMATS = ("vcd", "fst")


def _writer(format: str) -> Callable[[Waveform, Path], None]:
    if format == "vcd":
        return write_vcd
    from .fst import write_fst  # here, because its library is not there for every Python

    return write_fst


def check_format(format: str) -> None:
    """Refuses (ValueError) a format that is none, or cannot be written here."""
    if format not in FORMATS:
        raise ValueError(f"--format must be one of {', '.join(FORMATS)}, not {format!r}")
    if format == "fst" and find_spec("pylibfst") is None:
        raise ValueError(
            "--format fst needs the Python package pylibfst, which is not installed: pip install pylibfst, or choose "
            "--format vcd"
        )


def write_waves(waves: Waves, folder: Path, format: str) -> None:
    """Write ``rtl.vcd`` or ``rtl.fst`` (``format``), ``rtl.gtkw`` and ``rtl.sucl``, or those of the golden model.

    Raises OSError.
    """
    file_name, save_name = f"{waves.hardware}.{format}", f"{waves.hardware}.gtkw"
    _writer(format)(waveform(waves), folder / file_name)
    with (folder / save_name).open("w", encoding="utf-8") as file:
        write_save(waves, file_name, save_name, file)
    with (folder / f"{waves.hardware}.sucl").open("w", encoding="utf-8") as file:
        write_commands(waves, file)


def summary(recorded: Sequence[Waves]) -> str:
    """What was recorded: the GPU's parts, the window, and how much changes in it."""
    waves = recorded[0]
    first, last = (waves.picoseconds(cycle) / 1000 for cycle in (waves.window.first, waves.window.last))
    changes = sum(len(wave.changes) for wave in waves.parts)
    inside = sum(len(wave.internals.signals) for wave in waves.parts)
    inside_changes = sum(len(wave.internals.changes) for wave in waves.parts)
    return (
        f"GPU {waves.gpu}, {', '.join(wave.instance.name for wave in waves.parts)}: {first:g} ns to {last:g} ns "
        f"({waves.window.last - waves.window.first} clocks), {changes} values of "
        f"{sum(len(wave.signals) for wave in waves.parts)} signals"
        + (f", and within the parts {inside_changes} of {inside}" if inside else "")
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
