"""The cache folder: compiled hardware and kernels, and results of finished runs. It may be deleted at any time.

Every file is named by the hash of all that it depends on. Several processes may make the same file at once: a lock
guards each name, and a file appears by an atomic rename. A folder that cannot be written serves what it holds.
"""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs
from filelock import FileLock

CACHE_VARIABLE = "OPENT3_CACHE"
"""Environment variable that overrides the cache folder."""

MAX_LEVELS = 100
"""Deepest cache folder: what makes folders with their parents, in Python and in Numba, goes by recursion."""


class BuildError(Exception):
    """Something outside OpenT3 keeps the hardware from being compiled; the message says what, and the remedy."""


def cache_folder() -> Path:
    """Where compiled hardware and kernels are kept: ``$OPENT3_CACHE``, else the user's cache folder.

    Raises BuildError if that is in the home of nobody, or too deep.
    """
    override = os.environ.get(CACHE_VARIABLE)
    if not override:
        return platformdirs.user_cache_path("opent3")
    try:
        folder = Path(override).expanduser()
    except RuntimeError as error:
        raise BuildError(
            f"{CACHE_VARIABLE} must be a folder, not {override!r}, whose user does not exist: set it to another one"
        ) from error
    if len(folder.parts) > MAX_LEVELS:
        raise BuildError(
            f"{CACHE_VARIABLE} must be a folder at most {MAX_LEVELS} levels deep, not {len(folder.parts)}: set it to "
            "another one"
        )
    return folder


def cached(name: str, build: Callable[[Path], Path]) -> Path:
    """The file ``name`` of the cache folder; if it is not there, ``build(folder)`` makes it in a new empty folder.

    Raises BuildError if the disk is full, or if the cache folder cannot be used.
    """
    folder = cache_folder()
    path = folder / name
    with cache_errors(folder):
        if path.exists():
            return path
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{name}.lock"):
            if not path.exists():
                work = f"build-{digest(name)}-"
                for left in folder.glob(f"{work}*"):  # of a process that was killed: it had this lock
                    shutil.rmtree(left)
                with tempfile.TemporaryDirectory(dir=folder, prefix=work) as temporary:
                    os.replace(build(Path(temporary)), path)
    return path


def check_writable(folder: Path) -> None:
    """Raises BuildError if no file can be written to a folder of the cache, which is made if it is missing."""
    with cache_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


@contextmanager
def cache_errors(folder: Path) -> Iterator[None]:
    """Turn errors of the file system in the cache ``folder`` into BuildError."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise BuildError(no_space(folder)) from error
        raise BuildError(
            f"the cache folder {folder} cannot be used ({error}): set {CACHE_VARIABLE} to a folder that can"
        ) from error


def no_space(folder: Path) -> str:
    """The message for a full disk."""
    return f"no space left on the disk of {folder}: free some, or set {CACHE_VARIABLE} to a folder on another disk"


def digest(*texts: str) -> str:
    """A name for exactly these texts (32 hexadecimal digits)."""
    state = hashlib.sha256()
    for text in texts:
        data = text.encode()
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()[:32]
