"""What `t3 doctor --fix` repairs: what this program itself left in its cache folder, and nothing else.

Everything there may be made again. An entry counts as ours by its name, which is the digest of what it depends on. The
folders `results` and `faults` have names that a user may have thought of, too: in them the names of our files count.
"""

import errno
import os
import pickletools
import re
import shutil
import sqlite3
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from t3sim.common.cache import digest

COMPILED = re.compile(r"(?:t3_[a-z_]+|runtime)-[0-9a-f]{32}\.(so|o|v)")
LEFT = re.compile(r"build-([0-9a-f]{32})-.+")
FOLDERS = re.compile(r"numba-[0-9a-f]{16}|results|faults")
FILES = {
    "results": re.compile(r"runs\.sqlite(\.damaged-\d+)?(-journal)?"),
    "faults": re.compile(r"[0-9a-f]{16}-\d+\.(jsonl|lock)"),
    "numba": re.compile(r".+\.(nbi|nbc|lock)"),
    "build": re.compile(r".+"),
}
"""What is ours in our folders, by the first word of their names."""
NESTED = ("numba", "build")
"""Those in which folders are ours, too."""
ELF = struct.Struct("<16x24xQ10xHHHH")
"""Header of an ELF file of 64 bits, as far as the section table's place, which is at the end of the file."""
OURS_TO_WORK_ON = stat.S_IRWXU
"""Bits of a folder's mode that its owner needs; a file needs reading and writing."""


RUNS = Path("results") / "runs.sqlite"
"""The finished runs."""


@dataclass(frozen=True)
class Fault:
    """Something of ours that is not as it should be. ``fix`` repairs it and may raise OSError; ``hinders``: until then
    it keeps a simulation from working, or its results from being kept."""

    path: Path
    what: str
    done: str
    fix: Callable[[], object]
    hinders: bool = True


OnFile = Callable[[int, int], None]
"""Is told how many compiled functions have been looked at, and how many there are: it takes milliseconds for each."""


def faults(folder: Path, on_file: OnFile | None = None) -> list[Fault]:
    """What is wrong in the cache ``folder``, in the order in which it is to be fixed; nothing if there is no folder.

    Raises OSError, with the name of what could not be looked at.
    """
    with _looked_at(folder):
        if folder.is_dir():
            if not os.access(folder, os.R_OK | os.X_OK):  # what is in there may be anybody's
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
            return [*_locked_up(folder), *_cut_off(folder, on_file), *_damaged(folder / RUNS), *_left(folder)]
    return []


@contextmanager
def _looked_at(path: Path) -> Iterator[None]:
    """Leaves out what another process has just removed; another OSError has a name, that of ``path`` if none."""
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def _locked_up(folder: Path) -> Iterator[Fault]:
    """Folders and files that their owner, this user, may not read or write."""
    own = [path for path in folder.iterdir() if _is_ours(path)]
    inside = [item for room in own if room.is_dir() for item in _inside(room, room.name.partition("-")[0])]
    for path in [folder, *own, *inside] if own else []:
        with _looked_at(path):
            if _lacks_permission(path):
                yield _permissions(path)


def _is_ours(path: Path) -> bool:
    if path.is_symlink():
        return False
    if COMPILED.fullmatch(path.name.removesuffix(".lock")):
        return True
    return bool(LEFT.fullmatch(path.name) or FOLDERS.fullmatch(path.name)) and path.is_dir()


def _inside(folder: Path, kind: str) -> Iterator[Path]:
    """What is ours in a folder of ours; nothing if it cannot be looked into. ``kind``: its key in :data:`FILES`."""
    if not os.access(folder, os.R_OK | os.X_OK):
        return
    with _looked_at(folder):
        for path in sorted(folder.iterdir()):
            if path.is_dir() and not path.is_symlink():
                if kind in NESTED:
                    yield path
                    yield from _inside(path, kind)
            elif FILES[kind].fullmatch(path.name):
                yield path


def _lacks_permission(path: Path) -> bool:
    """Whether the mode keeps its owner out; of another's file nothing can be changed."""
    found = path.lstat()
    wanted = OURS_TO_WORK_ON if stat.S_ISDIR(found.st_mode) else stat.S_IRUSR | stat.S_IWUSR
    return found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode) and found.st_mode & wanted != wanted


def _permissions(path: Path) -> Fault:
    wanted = OURS_TO_WORK_ON if path.is_dir() else stat.S_IRUSR | stat.S_IWUSR
    return Fault(
        path, "cannot be read and written", "made readable and writable",
        lambda: path.chmod(stat.S_IMODE(path.stat().st_mode) | wanted),
    )  # fmt: skip


def _cut_off(folder: Path, on_file: OnFile | None) -> Iterator[Fault]:
    """Files that are not whole: a disk that was full, or a copy of the folder that was interrupted."""
    kernels: list[Path] = []
    for path in sorted(folder.iterdir()):
        if not _is_ours(path) or not os.access(path, os.R_OK):
            continue
        with _looked_at(path):
            if (named := COMPILED.fullmatch(path.name)) and path.is_file() and not _WHOLE[named[1]](path):
                yield _removal(path)
        if path.name.startswith("numba-"):
            kernels += [item for item in _inside(path, "numba") if item.suffix in (".nbi", ".nbc") and item.is_file()]
    for done, kernel in enumerate(kernels, 1):
        with _looked_at(kernel):
            if os.access(kernel, os.R_OK) and not _is_pickle(kernel):
                yield _removal(kernel)
        if on_file is not None:
            on_file(done, len(kernels))


def _removal(path: Path) -> Fault:
    return Fault(path, "is cut off", "removed; it is made again when it is needed", path.unlink)


def _is_elf(path: Path) -> bool:
    """Whether an ELF file reaches to the end of its section table."""
    with path.open("rb") as file:
        head = file.read(ELF.size)
    if len(head) < ELF.size or not head.startswith(b"\x7fELF"):
        return False
    offset, _, _, size, count = ELF.unpack(head)
    return 0 < offset + size * count <= path.stat().st_size


def _is_verilog(path: Path) -> bool:
    return path.read_bytes().rstrip().endswith(b"endmodule")


_WHOLE = {"so": _is_elf, "o": _is_elf, "v": _is_verilog}


def _is_pickle(path: Path) -> bool:
    """Whether a file of Numba's is whole pickles, of which nothing is executed here."""
    with path.open("rb") as file:
        size, count = os.fstat(file.fileno()).st_size, 0
        try:
            while file.tell() < size:
                for _ in pickletools.genops(file):
                    pass
                count += 1
        except (ValueError, IndexError):
            return False
    return count > 0


def _damaged(path: Path) -> Iterator[Fault]:
    """The finished runs, if their file is none of SQLite's or not whole. One that is in use is not judged."""
    if not os.access(path, os.R_OK) or not path.is_file():
        return
    try:
        # Not read-only: what a killed command left half done is undone first, as whoever reads the file does.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=0)) as database:
            ((said,),) = database.execute("PRAGMA quick_check(1)")
    except sqlite3.OperationalError:  # locked, or a disk that does not answer
        return
    except sqlite3.DatabaseError as error:
        said = str(error)
    if said != "ok":
        aside = _free_name(path)
        what, done = f"is damaged ({said})", f"set aside as {aside.name}; what is asked for runs again"
        yield Fault(path, what, done, lambda: _set_aside(path, aside))


def _free_name(path: Path) -> Path:
    """A name beside ``path`` that no file has."""
    number = 1
    while os.path.lexists(found := path.with_name(f"{path.name}.damaged-{number}")):
        number += 1
    return found


def _set_aside(path: Path, aside: Path) -> None:
    """Renames a database with its journal, which would be played back into the next file of its name."""
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists():
        journal.rename(aside.with_name(f"{aside.name}-journal"))
    path.rename(aside)


def _left(folder: Path) -> Iterator[Fault]:
    """Folders in which something was compiled by a process that has died: it held the lock of the name. They only take
    room: the next process to compile that removes them."""
    names = {digest(path.name.removesuffix(".lock")): path for path in folder.glob("*.lock")}
    for path in sorted(folder.glob("build-*")):
        named = LEFT.fullmatch(path.name)
        lock = names.get(named[1]) if named else None
        if lock is None or path.is_symlink() or not path.is_dir():
            continue
        with suppress(OSError), FileLock(lock, timeout=0):  # else it is in use, or not ours to lock
            if path.is_dir():  # else it was in use, and its process has just removed it
                yield Fault(path, "was left by a process that has ended", "removed", _remover(path), hinders=False)


def _remover(path: Path) -> Callable[[], object]:
    return lambda: shutil.rmtree(path, ignore_errors=True)  # the next process to compile this removes it, too


def repair(folder: Path, on_file: OnFile | None = None) -> list[str]:
    """Fixes what it can; a line for each fault says so. What is in a folder that could not be read comes second. The
    last line names what could not be fixed, or looked at."""
    said: list[str] = []
    for _ in range(2):
        try:
            found = faults(folder, on_file)
        except OSError as error:
            return [*said, f"not looked at: {error.filename} ({error.strerror})"]
        for fault in found:
            try:
                fault.fix()
                said.append(f"fixed: {fault.path} {fault.what}: {fault.done}")
            except FileNotFoundError:
                continue  # another process has just removed it
            except OSError as error:
                said.append(f"not fixed: {fault.path} {fault.what} ({error.strerror})")
                return said
    return said
