"""Staging folders: where output is written before it is moved into place, and how one that was left is known."""

import fcntl
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

from .user_input import read_file

STAGING = ".t3-partial-"
"""Prefix of staging folders. Its owner holds a lock on the folder, so that one without a lock is known to be left."""
MARKER = ".t3-staging"
"""File in a staging folder: this program made it, on the machine that it names. Without one it is the user's."""
KEPT = "t3-output"
"""Where results are kept that could not be moved into place."""


class Staging:
    """A new folder in ``parent``, removed at the end unless something must be kept in it.

    A marker in it says that it is ours and of which machine; a lock on it, that its owner lives.
    """

    def __init__(self, parent: Path) -> None:
        remove_left(parent)
        self.folder = Path(tempfile.mkdtemp(dir=parent, prefix=STAGING))
        self.lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        with suppress(OSError):  # a file system without locks: nobody will take this folder for one that was left
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            (self.folder / MARKER).write_text(_this_machine(), encoding="utf-8")
        self.output = self.folder / "output"
        self.output.mkdir()
        self.replaced = self.folder / "replaced"
        self.kept = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.kept:
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self.lock)

    def keep(self, folder: Path) -> Path:
        """Moves the output to a new name in ``folder``, else beside it, else leaves it here; returns where it is."""
        for wanted in (folder / KEPT, folder.with_name(f"{folder.name}-{KEPT}")):
            place, number = wanted, 1
            while os.path.lexists(place):
                number += 1
                place = wanted.with_name(f"{wanted.name}-{number}")
            with suppress(OSError):
                return self.output.rename(place)
        self.kept = True
        (self.folder / MARKER).unlink(missing_ok=True)
        return self.output


def _this_machine() -> str:
    """What tells this start of this machine from others, whose locks are not seen here."""
    start = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()} {start.read_text('ascii').strip() if start.exists() else ''}\n"


def remove_left(parent: Path) -> None:
    """Removes staging folders in ``parent`` that this program made on this machine, and whose owner has died."""
    for folder in parent.glob(f"{STAGING}*"):
        with suppress(OSError, ValueError):  # not ours, gone meanwhile, in use, or without locks
            if read_file(folder / MARKER, 4096) != _this_machine().encode():
                continue
            with locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
                shutil.rmtree(folder)


@contextmanager
def locked(folder: Path, how: int) -> Iterator[None]:
    """Holds a lock on ``folder``. Raises OSError if there are none, or if it is taken and ``how`` does not wait."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, how)
        yield
    finally:
        os.close(lock)


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Waits until no other process replaces files of ``folder``, and holds them off, where there are locks."""
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(locked(folder, fcntl.LOCK_EX))
        yield
