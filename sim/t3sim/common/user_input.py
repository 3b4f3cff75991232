"""Files and values that a user gives: read within limits, and named in messages that stay readable."""

import os
import re
import stat
from pathlib import Path

LONGEST = 80
"""Characters of a user's text that a message repeats."""

LONGEST_WORD = 500
"""Characters between two spaces of a message."""


def read_file(path: Path, most: int) -> bytes:
    """The content of a regular file of at most ``most`` bytes.

    Raises OSError if it cannot be read, ValueError if it is a device or pipe, which may never end, or larger.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait for its writer
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("Is a directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "not a regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"larger than {most} bytes")
    return content


def readable(path: Path | str) -> str:
    """A path in characters that every output can hold, also if the file system's are none of UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")


def shortened(text: object) -> str:
    """``text`` in quotes, or the representation of another value, with a middle left out if it is long."""
    shown = repr(text)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST // 2]}...{shown[-LONGEST // 2 + 3 :]}"


def one_line(message: str) -> str:
    """``message`` without control characters, which would move a terminal's cursor, and with a middle left out of words
    that are too long to be anything but a user's."""
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in message)
    return re.sub(
        rf"\S{{{LONGEST_WORD},}}", lambda word: f"{word[0][: LONGEST // 2]}...{word[0][-LONGEST // 2 :]}", shown
    )
