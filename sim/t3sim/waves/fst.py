"""A Fast Signal Trace: GTKWave's own format, compressed, which Surfer reads, too."""

import errno
import os
import pickle
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

from pylibfst import ffi, lib

from .waveform import VERSION, Waveform

_PICOSECONDS = -12
_COMPRESSED_HIERARCHY = 1
_NO_ALIAS = 0
_FAILED = "the FST library cannot write it; is the disk full?"
_UNWRITTEN = 3
"""Exit code of the writing process if it noticed that the file is not whole."""


def write_fst(waveform: Waveform, path: Path) -> None:
    """Write ``waveform``. Raises OSError.

    The library maps its files into memory: on a full disk the system ends the process that writes them. So that is not
    this one; nor one of multiprocessing, which would run the caller's script again.
    """
    command = [sys.executable, "-P", "-m", __name__, os.fspath(path)]
    places = os.pathsep.join(map(os.path.abspath, sys.path))  # so that it imports what this process does
    environ = os.environ | {"PYTHONPATH": places}
    done = subprocess.run(command, input=pickle.dumps(waveform), capture_output=True, env=environ, check=False)
    if done.returncode == _UNWRITTEN or done.returncode < 0:  # noticed, or ended by the system
        raise OSError(errno.EIO, _FAILED, str(path))
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise OSError(errno.EIO, f"its writer failed: {said[-1] if said else 'it says nothing'}", str(path))


def _write(waveform: Waveform, path: Path) -> None:
    """Raises OSError, also if the file is not whole afterwards: the library does not tell."""
    writer = lib.fstWriterCreate(os.fsencode(path), _COMPRESSED_HIERARCHY)
    if writer == ffi.NULL:
        raise OSError(errno.EIO, _FAILED, str(path))
    lib.fstWriterSetDate(writer, b"")  # else the present time: other bytes every time
    lib.fstWriterSetVersion(writer, VERSION.encode())
    lib.fstWriterSetTimescale(writer, _PICOSECONDS)
    handles = _declare(writer, waveform)
    first = ((waveform.begin, number, value) for number, value in enumerate(waveform.first))
    now = None
    for time, number, value in chain(first, waveform.changes):
        if time != now:
            now = time
            lib.fstWriterEmitTimeChange(writer, now)
        lib.fstWriterEmitValueChange(writer, handles[number], _digits(value, waveform.variables[number].bits))
    lib.fstWriterEmitTimeChange(writer, waveform.end)
    lib.fstWriterClose(writer)
    _check(waveform, path)


def _declare(writer: Any, waveform: Waveform) -> list[int]:
    """Scopes and variables; the handles of these. Sorted by their paths, those of a scope are together."""
    handles = [0] * len(waveform.variables)
    scopes: tuple[str, ...] = ()
    for number in sorted(range(len(handles)), key=lambda number: waveform.variables[number].path):
        *wanted, name = waveform.variables[number].path
        common = len(os.path.commonprefix([scopes, tuple(wanted)]))
        for _ in scopes[common:]:
            lib.fstWriterSetUpscope(writer)
        for scope in wanted[common:]:
            lib.fstWriterSetScope(writer, lib.FST_ST_VCD_MODULE, scope.encode(), ffi.NULL)
        scopes = tuple(wanted)
        kind, direction, bits = lib.FST_VT_VCD_WIRE, lib.FST_VD_IMPLICIT, waveform.variables[number].bits
        handles[number] = lib.fstWriterCreateVar(writer, kind, direction, bits, name.encode(), _NO_ALIAS)
    for _ in scopes:
        lib.fstWriterSetUpscope(writer)
    return handles


def _digits(value: int | None, bits: int) -> bytes:
    """A value as the library takes it: a character for each bit, unknown while it means nothing."""
    return b"x" * bits if value is None else f"{value:0{bits}b}".encode()


def _check(waveform: Waveform, path: Path) -> None:
    """Raises OSError if the file lacks variables or its end, as on a full disk."""
    reader = lib.fstReaderOpen(os.fsencode(path))
    whole = False
    if reader != ffi.NULL:
        whole = (lib.fstReaderGetVarCount(reader), lib.fstReaderGetEndTime(reader)) == (
            len(waveform.variables),
            waveform.end,
        )
        lib.fstReaderClose(reader)
    if not whole:
        raise OSError(errno.EIO, _FAILED, str(path))


if __name__ == "__main__":
    try:
        _write(pickle.load(sys.stdin.buffer), Path(sys.argv[1]))
    except OSError:
        sys.exit(_UNWRITTEN)
