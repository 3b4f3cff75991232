"""Output that is whole or absent: files and folders are written beside their place and renamed at the end."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARKERS = (
    "result.json", "compare.json", "t3.json", "bench.json", "validate.json", "reproduce.json", "sweep.json",
    "sensitivity.json", "proofs.json", "faults.json", "fpga.json",
)  # fmt: skip
"""A folder with one of these files is an earlier output, which a new one may replace."""


def write_atomically(path: Path, content: str) -> None:
    """Writes ``content`` to ``path`` by a temporary file and a rename. Raises OSError; then ``path`` is as before."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_file(path: Path) -> None:
    """Refuses (ValueError) a file that cannot be written."""
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"--out must be a file in a folder that exists and is writable, not {path}")


@contextmanager
def output_folder(target: Path) -> Iterator[Path]:
    """A new folder to fill; it takes the place of ``target`` when the block ends, and vanishes if the block raises.

    Raises ValueError if ``target`` exists and is neither empty nor an earlier output, OSError if it cannot be written.
    """
    target = target.absolute()
    check_replaceable(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.partial-"))
    try:
        work.chmod(0o755)
        yield work
        _replace(target, work)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def check_replaceable(target: Path) -> None:
    """Refuses (ValueError) a target that holds something other than an earlier output, or that cannot be made."""
    existing = next(parent for parent in target.absolute().parents if parent.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        reason = "is not writable" if existing.is_dir() else "is not a folder"
        raise ValueError(f"--out must be a folder that can be made, but {existing} {reason}")
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not target.is_dir() or not any((target / name).exists() for name in MARKERS):
        raise ValueError(f"--out must be a new folder, an empty one or an earlier output of t3, not {target}")


def _replace(target: Path, work: Path) -> None:
    if not target.exists():
        work.rename(target)
        return
    old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.old-"))
    target.rename(old / target.name)
    try:
        work.rename(target)
    except BaseException:
        (old / target.name).rename(target)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
