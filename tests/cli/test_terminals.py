"""What people see: 40 columns, no colours, terminals that can do nothing, encodings with few characters, CI logs."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

TOY = ("--machine", "toy", "--m", "64", "--n", "64", "--k", "40", "--tp", "2", "--hardware", "golden")
COMMANDS = {
    "run": ("run", *TOY),
    "doctor": ("doctor",),
    "compare": ("compare", *TOY),
    "demo": ("demo",),
}
LONG = {"compare", "demo"}
WIDTH = 40
KINDS = {
    "colours": {"TERM": "xterm-256color"},
    "NO_COLOR": {"TERM": "xterm-256color", "NO_COLOR": "1"},
    "dumb": {"TERM": "dumb"},
    "ASCII": {"TERM": "xterm-256color", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
}
HIDDEN = ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "LINES", "LC_ALL", "PYTHONIOENCODING", "PYTHONUTF8", "CI")
"""What the environment of the tests may say of terminals."""
T3 = [sys.executable, "-m", "t3sim"]


@pytest.fixture(autouse=True)
def _elsewhere(request, tmp_path: Path, monkeypatch):
    """The demonstration writes into the current folder; the doctor gets a cache that nobody else uses."""
    monkeypatch.chdir(tmp_path)
    if "[doctor" in request.node.name:
        monkeypatch.setenv("OPENT3_CACHE", str(tmp_path / "cache"))


def environment(**changes: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in HIDDEN} | changes


def on_a_terminal(arguments: tuple[str, ...], environ: dict[str, str]) -> str:
    """What a command prints on a terminal of WIDTH columns. Fails unless it ends well."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 25, WIDTH, 0, 0))
    process = subprocess.Popen([*T3, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environ)
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # the end of what a terminal shows
            break
        if not data:
            break
        shown += data
    os.close(ours)
    text = shown.decode("utf-8")
    assert process.wait() == 0, text
    return text


def marked(names: object) -> list[object]:
    return [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in names]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", marked(COMMANDS))
def test_narrow_terminals_of_every_kind(command, kind):
    text = on_a_terminal(COMMANDS[command], environment(**KINDS[kind]))
    assert "Traceback" not in text
    escapes = set(re.findall(r"\x1b\[[?\d;]*[A-Za-z]", text))
    if kind == "dumb":
        assert not escapes and "\r" not in text.replace("\r\n", "\n")
        assert "started" in text, "progress in lines"
    if kind == "NO_COLOR":
        parts = {number for code in escapes if code.endswith("m") for number in code[2:-1].split(";")}
        assert parts <= {"", "0", "1", "2", "3", "4"}, "bold and the like, no colour"
    if kind == "ASCII":
        assert text.isascii()
    if kind != "colours":
        return
    for line in re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", text).replace("\r", "\n").split("\n"):
        assert len(line.rstrip()) <= WIDTH, line


@pytest.mark.parametrize("command", ["doctor", pytest.param("demo", marks=pytest.mark.long)])
def test_a_dumb_terminal_has_a_width(command):
    text = on_a_terminal(COMMANDS[command], environment(TERM="dumb"))
    lines = [line.rstrip() for line in text.split("\n") if "started" not in line]
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize("command", marked(COMMANDS))
def test_a_log_has_lines_and_nothing_else(command):
    environ = environment(LC_ALL="C", PYTHONIOENCODING="ascii", CI="true", TERM="xterm-256color")
    done = subprocess.run([*T3, *COMMANDS[command]], capture_output=True, env=environ, check=False)
    assert done.returncode == 0, done.stderr
    for stream in (done.stdout, done.stderr):
        assert stream.isascii() and b"\r" not in stream and b"\x1b" not in stream
    assert len(done.stderr.splitlines()) <= 6, "lines of progress are ten seconds apart"


def test_a_name_that_the_encoding_lacks_is_printed_in_numbers(tmp_path: Path):
    environ = environment(LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="1")
    out, trace = tmp_path / "größe", tmp_path / "größe.pftrace"
    arguments = [*COMMANDS["run"], "--out", str(out), "--trace", str(trace)]
    done = subprocess.run([*T3, *arguments], capture_output=True, env=environ, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
    assert rb"gr\xf6\xdfe" in done.stdout
    assert (out / "result.json").exists() and trace.exists()
