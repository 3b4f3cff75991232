"""A Value Change Dump."""

from pathlib import Path

from vcd import VCDWriter

from .waveform import VERSION, Waveform


def write_vcd(waveform: Waveform, path: Path) -> None:
    """Write ``waveform``. Raises OSError."""
    with (
        path.open("w", encoding="utf-8") as file,
        VCDWriter(file, timescale="1 ps", date="", version=VERSION, init_timestamp=waveform.begin) as writer,
    ):
        variables = [
            writer.register_var(variable.path[:-1], variable.path[-1], "wire", variable.bits, init=_shown(value))
            for variable, value in zip(waveform.variables, waveform.first, strict=True)
        ]
        for time, number, value in waveform.changes:
            writer.change(variables[number], time, _shown(value))
        writer.close(waveform.end)


def _shown(value: int | None) -> int | str:
    """A value as the writer takes it: unknown while it means nothing."""
    return "x" if value is None else value
