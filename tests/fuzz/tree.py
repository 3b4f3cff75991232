"""What is in a folder, byte by byte, so that any change of it shows."""

import hashlib
import os
import stat
from pathlib import Path

Tree = dict[str, tuple[str, str]]
"""Path below the folder -> what it is (with its permissions), and the digest or target of it."""


def tree(folder: Path) -> Tree:
    """All below ``folder``, however deep; links are not followed."""
    found: Tree = {}
    waiting = [""]
    while waiting:
        place = waiting.pop()
        for entry in os.scandir(folder / place):
            name = os.path.join(place, entry.name)
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                found[name] = ("link", os.readlink(entry.path))
            elif stat.S_ISDIR(mode):
                found[name] = (f"folder {mode:o}", "")
                waiting.append(name)
            else:
                found[name] = (f"file {mode:o}", digest(Path(entry.path)) if stat.S_ISREG(mode) else "no file")
    return found


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def changes(before: Tree, after: Tree) -> list[str]:
    """Paths that are new, gone or other than before."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
