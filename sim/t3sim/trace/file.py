"""Files of traces: whole or absent, and never in the place of a file of the user's.

A trace ends with a packet that holds the SHA-256 digest of all before it. A file counts as ours only while it does.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TraceAttributes, TracePacket

SUFFIX = ".pftrace"
"""What the name of every trace ends with."""


class _Hashed:
    """A file that is written, with the digest of what was."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self.file.write(data)


def _seal(digest: str) -> bytes:
    """The last packet of a trace of ours."""
    attribute = TraceAttributes.Attribute(key="opent3.sha256", string_value=digest)
    return Trace(packet=[TracePacket(trace_attributes=TraceAttributes(attribute=[attribute]))]).SerializeToString()


_SEAL_BYTES = len(_seal("0" * 64))


def is_ours(path: Path) -> bool:
    """Whether ``path`` is a regular file that this program wrote and nobody has changed since. Raises OSError."""
    if not path.is_file():
        return False
    left, digest = path.stat().st_size - _SEAL_BYTES, hashlib.sha256()
    with path.open("rb") as file:
        while left > 0 and (data := file.read(min(left, 1 << 20))):
            digest.update(data)
            left -= len(data)
        return left == 0 and file.read() == _seal(digest.hexdigest())


def check_name(path: Path) -> None:
    """Refuses (ValueError) a name that is not one of a trace."""
    if path.suffix != SUFFIX:
        raise ValueError(
            f"--trace must be a file whose name ends with {SUFFIX}, not {str(path)!r}: give it that ending"
        )


@contextmanager
def trace_file(target: Path, shown: Path | None = None) -> Iterator[Any]:
    """A file to write a trace to, which has the name ``target`` when the block ends, and vanishes if the block raises.

    Raises ValueError, at once where that can be known, if that may not or cannot be written: another's file stands
    there, or the folder is missing. ``shown``: what messages call it, if it has another name until it is moved.
    """
    path, shown = Path(os.path.realpath(target)), shown or target
    with refusals(shown):
        _check(path, shown)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            hashed = _Hashed(file)
            yield hashed
            file.write(_seal(hashed.digest.hexdigest()))
        with refusals(shown):
            _check(path, shown)
            _share(temporary)
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def refusals(target: Path) -> Iterator[None]:
    """Errors of the file system as ValueError."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"--trace must be a file that can be written, not {target}: {error.strerror}") from error


def _check(path: Path, shown: Path) -> None:
    """Refuses (ValueError) to replace what this program has not written."""
    if os.path.lexists(path) and not is_ours(path):
        raise ValueError(f"--trace {shown} is there and is no trace of t3's, or was changed: choose another name")


def _share(path: Path) -> None:
    """Gives a file the permissions that a new one has here: a temporary one is its owner's alone."""
    mask = os.umask(0)  # it can only be read by setting it
    os.umask(mask)
    path.chmod(0o666 & ~mask)
