"""Where a report goes: to a file of its own, never over a file that is not a report as t3 wrote it."""

import hashlib
import os
import re
from pathlib import Path

from t3sim.common.manifest import MANIFEST, Manifest
from t3sim.common.output import write_atomically
from t3sim.common.staging import turn
from t3sim.common.user_input import readable

from .page import PREAMBLE, digest_of

NAME = "report.html"
"""The file in the first folder, without another name."""
_END = re.compile(r"<!-- SHA-256 of all above: ([0-9a-f]{64}) -->\n")
_END_BYTES = len("<!-- SHA-256 of all above:  -->\n") + 64


def target_of(path: Path) -> Path:
    """The file behind ``path``, all links followed. Raises ValueError if no report may or can be written there."""
    file = Path(os.path.realpath(path))
    try:
        _check(path, file)
    except OSError as error:  # such as a name that is too long
        raise _unwritable(path, error.strerror or "error") from error
    return file


def _check(path: Path, file: Path) -> None:
    """Refuses (ValueError, also OSError) a target, which its user calls ``path``."""
    if file.is_dir():
        raise ValueError(f"--out must be a file, not the folder {readable(path)}: give the name of an HTML file")
    if not file.parent.is_dir():
        raise ValueError(f"--out must be a file in a folder that exists, not {readable(path)}: make the folder first")
    if os.path.lexists(file) and not is_report(file):
        raise ValueError(
            f"{readable(path)} is not, or no longer, a report as t3 wrote it: move it away, or choose another --out"
        )
    if not os.access(file.parent, os.W_OK):
        raise _unwritable(path, "Permission denied")


def is_report(path: Path) -> bool:
    """Whether a file is a report, as t3 wrote it: a file that somebody has edited since is his."""
    if not path.is_file():
        return False
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    end = _END.fullmatch(text[-_END_BYTES:])
    return text.startswith(PREAMBLE) and end is not None and digest_of(text[:-_END_BYTES]) == end[1]


def write_report(text: str, path: Path) -> None:
    """Writes the report in one step. Raises ValueError as :func:`target_of` does; then nothing has changed.

    In an output folder of t3 it is one of the folder's files, so that it goes when other results come.
    """
    file = target_of(path)
    try:
        with turn(file.parent):
            manifest = Manifest.read(file.parent)
            if manifest is None:
                write_atomically(file, text)
                return
            digests = Manifest(files={file.name: (hashlib.sha256(text.encode()).hexdigest(),)})
            others = {name: digest for name, digest in manifest.files.items() if name != file.name}
            write_atomically(file.parent / MANIFEST, manifest.merged(digests).text())  # also if interrupted here
            write_atomically(file, text)
            write_atomically(file.parent / MANIFEST, Manifest(files=others).merged(digests).text())
    except OSError as error:
        raise _unwritable(path, error.strerror or "error") from error


def _unwritable(path: Path, why: str) -> ValueError:
    return ValueError(f"--out must be a file that can be written, not {readable(path)}: {why}")
