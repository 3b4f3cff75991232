"""The program ``t3``: ends with one message if Ctrl-C comes before the command line is there to handle it."""

import io
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT


def _end(number: int, frame: FrameType | None) -> None:
    """At once: an exception in the middle of an import could end up in any library's hands."""
    os.write(2, b"Error: interrupted before anything began\n")
    os._exit(INTERRUPTED)


def _print_anything() -> None:
    """A terminal or file whose encoding lacks a character gets its number: a user's file names may have any."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="backslashreplace")


def main() -> None:
    """Loads the command line, which takes half a second, and runs it."""
    _print_anything()
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # as in the background of a shell
    if not ignored:
        signal.signal(signal.SIGINT, _end)
    from .main import main as command

    if not ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()
