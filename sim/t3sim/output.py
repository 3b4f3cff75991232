"""Output that is whole or absent, and that never costs a user a file of his own.

A command opens its output folder before it works: everything that the folder could not take is refused then. Results
are written into a staging folder beside it, and moved into place at the end. See :mod:`t3sim.manifest` for what may be
replaced.
"""

import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, overload

from .manifest import EMPTY, MANIFEST, Manifest

STAGING = ".t3-partial-"
"""Prefix of staging folders. Its owner holds a lock on the folder, so that one without a lock is known to be left."""
KEPT = "t3-output"
"""Where results are kept that could not be moved into place."""
LONGEST_NAME = 128
"""Room in bytes for the names of our files below an output folder."""


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


@overload
def output_folder(target: Path) -> AbstractContextManager[Path]: ...
@overload
def output_folder(target: Path | None) -> AbstractContextManager[Path | None]: ...
@contextmanager
def output_folder(target: Path | None) -> Iterator[Any]:
    """A new folder to fill, whose files are moved to ``target`` when the block ends, and vanish if the block raises.

    Without ``target`` there is no folder: None. Files of an earlier output are replaced, or removed if there is no new
    one of that name; nothing else is touched.

    Raises ValueError if ``target`` may not or cannot be used, at once where that can be known. A file that comes into
    the way later makes it ValueError, too; then the output is kept, and the message says where.
    """
    if target is None:
        yield None
        return
    folder, made, staging = _open(target)
    try:
        with staging as place:
            yield place
            with _undisturbed():
                _commit(place, folder)
    except BaseException:
        _unmake(made)
        raise


def _open(target: Path) -> tuple[Path, list[Path], "_Staging"]:
    """The folder behind ``target``, the parents that were made for it, and the folder to fill. Raises ValueError."""
    made: list[Path] = []
    try:
        folder = _real(target)
        made = _make(folder.parent)
        _check(folder)
        return folder, made, _Staging(folder if folder.exists() else folder.parent)
    except OSError as error:
        _unmake(made)
        where = f" ({error.filename})" if error.filename else ""
        raise ValueError(
            f"--out must be a folder that can be made and written, not {target}: {error.strerror}{where}"
        ) from error
    except ValueError:
        _unmake(made)
        raise


def _real(target: Path) -> Path:
    """The folder that ``target`` names, behind all links."""
    for path in (target, *target.parents):
        if path.is_symlink() and not path.exists():
            raise ValueError(f"--out must be a folder that can be made, but {path} is a link to nothing")
    folder = Path(os.path.realpath(target))
    longest = os.pathconf("/", "PC_PATH_MAX")
    if len(os.fsencode(folder)) + LONGEST_NAME > longest:
        raise ValueError(
            f"--out must be a folder with room for the names of its files: a path may have {longest} bytes, and this "
            f"folder's has {len(os.fsencode(folder))}"
        )
    return folder


def _make(folder: Path) -> list[Path]:
    """Makes ``folder`` and its parents, however deep; returns those that are new, the outermost first."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    made: list[Path] = []
    try:
        for path in reversed(missing):
            path.mkdir()
            made.append(path)
    except BaseException:
        _unmake(made)
        raise
    return made


def _unmake(made: list[Path]) -> None:
    """Removes folders that this program made, as far as nobody has put anything into them."""
    for path in reversed(made):
        with suppress(OSError):
            path.rmdir()


def _check(folder: Path) -> None:
    """Refuses (ValueError) a folder with files that are not ours, or that cannot be made (also OSError)."""
    if not folder.exists():
        folder.mkdir()  # shows whether it can be made
        folder.rmdir()
        return
    if not folder.is_dir():
        raise ValueError(f"--out must be a folder, not the file {folder}: choose another name")
    _remove_left(folder)
    others = sorted(name for name in os.listdir(folder) if not name.startswith(STAGING))
    manifest = Manifest.read(folder)
    if others and manifest is None:
        raise ValueError(
            f"--out must be a new folder, an empty one or an earlier output of t3, not {folder}: it holds "
            f"{others[0]!r} and no {MANIFEST}. Choose another folder"
        )
    if changed := (manifest or EMPTY).changed(folder):
        raise ValueError(_in_the_way(folder / changed[0]))


def _in_the_way(path: Path) -> str:
    return f"{path} is not, or no longer, a file as t3 wrote it: move it away, or choose another --out"


class _Staging:
    """A new folder in ``parent``, removed at the end unless it was renamed. Those that were left there are removed."""

    def __init__(self, parent: Path) -> None:
        _remove_left(parent)
        while True:
            self.folder = Path(tempfile.mkdtemp(dir=parent, prefix=STAGING))
            self.lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):  # a file system without locks: nobody will take this folder for one that was left
                fcntl.flock(self.lock, fcntl.LOCK_EX)
            if self.folder.exists():  # else another process found it before it was locked, and removed it
                break
            os.close(self.lock)
        self.folder.chmod(0o755)

    def __enter__(self) -> Path:
        return self.folder

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self.lock)


def _remove_left(parent: Path) -> None:
    """Removes staging folders in ``parent`` whose owner has died, which its lock shows."""
    for folder in parent.glob(f"{STAGING}*"):
        with suppress(OSError):  # not ours to open, gone meanwhile, in use, or without locks
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(lock)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the block ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _commit(staging: Path, folder: Path) -> None:
    """Moves the files of ``staging`` to ``folder``, in one step if that does not exist."""
    new = Manifest.of(staging)
    write_atomically(staging / MANIFEST, new.text())
    if not folder.exists():
        staging.rename(folder)
        return
    old = Manifest.read(folder) or EMPTY
    blocked = old.changed(folder) + [name for name in new.files if _is_blocked(folder, name, old)]
    if blocked:
        raise ValueError(f"{_in_the_way(folder / blocked[0])}. The results are in {_keep(staging, folder / KEPT)}")
    write_atomically(folder / MANIFEST, old.merged(new).text())
    for name in new.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (staging / name).replace(folder / name)
    _remove_old(folder, [name for name in old.files if name not in new.files])
    write_atomically(folder / MANIFEST, new.text())


def _is_blocked(folder: Path, name: str, old: Manifest) -> bool:
    """Whether something that is not ours stands where file ``name`` goes."""
    if os.path.lexists(folder / name):
        return not old.holds(folder, name)
    parents = [folder / parent for parent in Path(name).parents if parent.parts]
    return any(parent.is_symlink() or (parent.exists() and not parent.is_dir()) for parent in parents)


def _keep(staging: Path, wanted: Path) -> Path:
    """Renames ``staging`` to ``wanted``, with a number behind it if that is taken."""
    place, number = wanted, 1
    while os.path.lexists(place):
        number += 1
        place = wanted.with_name(f"{wanted.name}-{number}")
    return staging.rename(place)


def _remove_old(folder: Path, names: list[str]) -> None:
    """Removes files of an earlier output, and the folders that are empty then."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
        for parent in Path(name).parents:
            if parent.parts:
                with suppress(OSError):  # the user has put something there
                    (folder / parent).rmdir()
