"""Output that is whole or absent, and that never costs a user a file of his own.

A command opens its output folder before it works: everything that the folder could not take is refused then. Results
are written into a staging folder beside it, and moved into place at the end. See :mod:`t3sim.common.manifest` for what
may be replaced.
"""

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, overload

from .manifest import EMPTY, MANIFEST, Manifest
from .staging import STAGING, Staging, remove_left, turn

_UMASK = os.umask(0)  # it can only be read by setting it
os.umask(_UMASK)
LONGEST_NAME = 128
"""Room in bytes for the names of our files below an output folder."""


def write_atomically(path: Path, content: str) -> None:
    """Writes ``content`` to ``path`` by a temporary file and a rename. Raises OSError; then ``path`` is as before."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        temporary.chmod(0o666 & ~_UMASK)
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

    Raises ValueError if ``target`` may not or cannot be used, at once where that can be known. If something comes into
    the way later, the output is kept elsewhere, ``target`` is as before, and the message says where.
    """
    if target is None:
        yield None
        return
    folder, made, staging = _open(target)
    try:
        with staging:
            yield staging.output
            with _undisturbed():
                _commit(staging, folder)
    except BaseException:
        _unmake(made)
        raise


def _open(target: Path) -> tuple[Path, list[Path], "Staging"]:
    """The folder behind ``target``, the parents that were made for it, and the folder to fill. Raises ValueError."""
    made: list[Path] = []
    try:
        folder = _real(target)
        made = _make(folder.parent)
        _check(folder)
        return folder, made, Staging(folder if folder.exists() else folder.parent)
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
        with suppress(FileExistsError):  # another process makes it just now
            folder.mkdir()  # shows whether it can be made
            with suppress(OSError):  # another process has put its output there just now
                folder.rmdir()
        return
    if not folder.is_dir():
        raise ValueError(f"--out must be a folder, not the file {folder}: choose another name")
    remove_left(folder)
    with turn(folder):
        others = sorted(name for name in os.listdir(folder) if not name.startswith(STAGING))
        manifest = Manifest.read(folder)
        changed = (manifest or EMPTY).changed(folder)
    if others and manifest is None:
        raise ValueError(
            f"--out must be a new folder, an empty one or an earlier output of t3, not {folder}: it holds "
            f"{others[0]!r} and no {MANIFEST}. Choose another folder"
        )
    if changed:
        raise ValueError(_in_the_way(folder / changed[0]))


def _in_the_way(path: Path) -> str:
    return f"{path} is not, or no longer, a file as t3 wrote it: move it away, or choose another --out"


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C and SIGTERM have no effect until the block ends: what they would keep from being written is being written.

    Only the main thread can see to that; elsewhere they end the block as usual.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _commit(staging: Staging, folder: Path) -> None:
    """Moves the output to ``folder``. Raises ValueError if that cannot be; then ``folder`` is as before."""
    new = Manifest.of(staging.output)
    write_atomically(staging.output / MANIFEST, new.text())
    try:
        if not os.path.lexists(folder):
            try:
                staging.output.rename(folder)
                return
            except OSError:
                if not folder.is_dir():  # else another process has made it meanwhile
                    raise
        with turn(folder):
            old = Manifest.read(folder) or EMPTY
            blocked = old.changed(folder) + [name for name in new.files if _is_blocked(folder, name, old)]
            if blocked:
                raise ValueError(f"{_in_the_way(folder / blocked[0])}. The results are in {staging.keep(folder)}")
            _replace(staging, folder, old, new)
    except OSError as error:
        where = error.filename or folder
        raise ValueError(
            f"the results cannot be moved to {folder} ({error.strerror}: {where}). They are in {staging.keep(folder)}"
        ) from error


def _replace(staging: Staging, folder: Path, old: Manifest, new: Manifest) -> None:
    """Puts the files of ``new`` in the place of those of ``old``. Raises OSError; then all are where they were."""
    done: list[str] = []
    try:
        write_atomically(folder / MANIFEST, old.merged(new).text())
        for name in new.files:
            done.append(name)
            _set_aside(folder / name, staging.replaced / name)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (staging.output / name).replace(folder / name)
        removed = [name for name in old.files if name not in new.files]
        for name in removed:
            done.append(name)
            _set_aside(folder / name, staging.replaced / name)
            (folder / name).unlink(missing_ok=True)
        write_atomically(folder / MANIFEST, new.text())
    except OSError:
        with suppress(OSError):
            _put_back(staging, folder, old, new, done)
        raise
    _remove_empty(folder, removed)


def _set_aside(path: Path, copy: Path) -> None:
    """A second name for a file that is about to be replaced or removed, or a copy where there are no second names."""
    if path.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, copy)
        except OSError:
            shutil.copy2(path, copy)


def _put_back(staging: Staging, folder: Path, old: Manifest, new: Manifest, names: list[str]) -> None:
    """Undoes what was done to the files ``names``."""
    for name in reversed(names):
        if name in new.files and not (staging.output / name).exists():
            shutil.copy2(folder / name, staging.output / name)
        if (staging.replaced / name).exists():
            (staging.replaced / name).replace(folder / name)
        elif name not in old.files:
            (folder / name).unlink(missing_ok=True)
    _remove_empty(folder, names)
    if old is EMPTY:
        (folder / MANIFEST).unlink(missing_ok=True)
    else:
        write_atomically(folder / MANIFEST, old.text())


def _is_blocked(folder: Path, name: str, old: Manifest) -> bool:
    """Whether something that is not ours stands where file ``name`` goes."""
    if os.path.lexists(folder / name):
        return not old.holds(folder, name)
    parents = [folder / parent for parent in Path(name).parents if parent.parts]
    return any(parent.is_symlink() or (parent.exists() and not parent.is_dir()) for parent in parents)


def _remove_empty(folder: Path, names: list[str]) -> None:
    """Removes the folders of files that are gone, as far as they are empty."""
    for name in names:
        for parent in Path(name).parents:
            if parent.parts:
                with suppress(OSError):  # something is in it
                    (folder / parent).rmdir()
