"""The files of waves: VCD and FST say the same, by three readers, and save files name what is there."""

import io
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from t3sim.waves.files import write_waves
from t3sim.waves.gtkwave import write_save
from t3sim.waves.hierarchy import waveform
from t3sim.waves.record import Window
from t3sim.waves.surfer import write_commands
from t3sim.waves.vcd import write_vcd

from .recorded import VcdFile, waves

pylibfst = pytest.importorskip("pylibfst", reason="there is no wheel of pylibfst for this Python")
pywellen = pytest.importorskip("pywellen", reason="there is no wheel of pywellen for this Python")
from t3sim.waves.fst import write_fst  # noqa: E402  it needs pylibfst

SHORT = Window(first=1000, last=1200)


def recorded():
    return waves("rtl", SHORT, "tracker,trigger", internals=True)


class FstFile:
    """An FST read back by GTKWave's library: changes of each signal, by its path below the unit, as (time, digits)."""

    def __init__(self, path: Path) -> None:
        file = pylibfst.lib.fstReaderOpen(str(path).encode())
        assert file != pylibfst.ffi.NULL
        self.span = pylibfst.lib.fstReaderGetStartTime(file), pylibfst.lib.fstReaderGetEndTime(file)
        self.timescale = pylibfst.lib.fstReaderGetTimescale(file)
        scopes, signals = pylibfst.get_scopes_signals2(file)
        self.scopes = scopes
        self.changes: dict[str, list[tuple[int, str]]] = {_below(name): [] for name in signals.by_name}

        def note(_, time, handle, value):
            self.changes[_below(signals.by_handle[handle].name)].append((time, pylibfst.string(value)))

        pylibfst.lib.fstReaderSetFacProcessMaskAll(file)
        pylibfst.fstReaderIterBlocks(file, note)
        pylibfst.lib.fstReaderClose(file)


def _below(name: str) -> str:
    return name.partition("t3.gpu0.")[2]


def test_the_fst_says_what_the_vcd_says(tmp_path: Path):
    of = recorded()
    write_fst(waveform(of), tmp_path / "rtl.fst")
    fst, vcd = FstFile(tmp_path / "rtl.fst"), VcdFile(of)
    assert fst.span == (of.picoseconds(SHORT.first), of.picoseconds(SHORT.last)) and fst.timescale == -12
    assert len(fst.scopes) == len(set(fst.scopes))  # none is opened twice
    assert fst.changes.keys() == vcd.changes.keys() and len(fst.changes) > 1000
    for name, changes in vcd.changes.items():
        read = [(time, _value(digits)) for time, digits in fst.changes[name]]
        assert read == [(time, value) for time, value in changes], name


def _value(digits: str) -> int | str:
    return "x" if set(digits) == {"x"} else int(digits, 2)


@pytest.mark.parametrize(("name", "write"), [("rtl.vcd", write_vcd), ("rtl.fst", write_fst)])
def test_surfers_own_reader_finds_what_was_recorded(tmp_path: Path, name, write):
    made = waveform(recorded())
    write(made, tmp_path / name)
    read = {variable.full_name: variable for variable in pywellen.Waveform(str(tmp_path / name)).all_vars()}
    assert read.keys() == {".".join(variable.path) for variable in made.variables}
    wanted = [[(made.begin, value)] for value in made.first]
    for time, number, value in made.changes:
        wanted[number].append((time, value))
    for variable, changes in zip(made.variables, wanted, strict=True):
        found = read[".".join(variable.path)]
        assert found.length == variable.bits
        assert [(time, None if "x" in str(value) else value) for time, value in found.tv] == changes, variable


def test_the_same_waves_are_the_same_bytes(tmp_path: Path):
    made = waveform(recorded())
    for name, write in (("vcd", write_vcd), ("fst", write_fst)):
        write(made, tmp_path / f"one.{name}")
        write(made, tmp_path / f"other.{name}")
        assert (tmp_path / f"one.{name}").read_bytes() == (tmp_path / f"other.{name}").read_bytes(), name


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [100, 10_000])
def test_an_fst_that_is_not_whole_is_an_error(tmp_path: Path, size):
    made = waveform(recorded())
    with largest_file(size), pytest.raises(OSError, match=r"rtl\.fst"):
        write_fst(made, tmp_path / "rtl.fst")


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path):
    with pytest.raises(OSError, match="missing"):
        write_fst(waveform(recorded()), tmp_path / "missing" / "rtl.fst")


SCRIPT = """
import sys
from pathlib import Path
from t3sim.waves.fst import write_fst
from t3sim.waves.waveform import Variable, Waveform

print("begins")
variables = [Variable(path=("t3", "a"), bits=1)]
write_fst(Waveform(variables=variables, begin=0, end=9, first=[0], changes=[]), Path("a.fst"))
"""


def test_an_fst_of_a_script_whose_lines_are_not_guarded(tmp_path: Path):
    """Python's own processes import the caller's script, which would write again in each."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "pickle.py").write_text("raise SystemExit('of the folder that it is called in')")
    command = [sys.executable, "../script.py"]
    done = subprocess.run(command, cwd=tmp_path / "elsewhere", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "begins\n", "")
    assert FstFile(tmp_path / "elsewhere" / "a.fst").span == (0, 9)


def test_what_else_ends_the_writer_of_an_fst_is_said(tmp_path: Path, monkeypatch):
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho Traceback >&2\necho 'ImportError: no such module' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(OSError, match=r"its writer failed: ImportError: no such module: .*a\.fst"):
        write_fst(waveform(recorded()), tmp_path / "a.fst")


def test_gtkwaves_file_groups_signals_by_part_and_stream():
    of = waves(parts="trigger")
    file = io.StringIO()
    write_save(of, "golden.vcd", "golden.gtkw", file)
    lines = file.getvalue().splitlines()
    assert '[savefile] "golden.gtkw"' in lines
    assert '[dumpfile] "golden.vcd"' in lines and f"[timestart] {of.picoseconds(0)}" in lines
    begin = lines.index("-command")
    group = [line for line in lines[begin : lines.index("-command", begin + 1)] if line.startswith("t3.")]
    assert group[:2] == ["t3.gpu0.trigger.command.valid", "t3.gpu0.trigger.command.ready"]
    assert "t3.gpu0.trigger.command.payload.context[3:0]" in group
    shown = {line.partition("[")[0] for line in lines if line.startswith("t3.")}
    assert shown == {f"t3.gpu0.{name}" for name in VcdFile(of).changes}


@pytest.mark.skipif(
    not all(map(shutil.which, ("gtkwave", "xvfb-run", "xauth"))), reason="apt install gtkwave xvfb xauth"
)
@pytest.mark.parametrize("form", ["vcd", "fst"])
def test_gtkwave_opens_the_save_file_from_any_folder(tmp_path: Path, form):
    of = waves(parts="trigger")
    (tmp_path / "a folder").mkdir()
    write_waves(of, tmp_path / "a folder", form)
    script = tmp_path / "count.tcl"
    script.write_text("puts [list [gtkwave::getNumFacs] [gtkwave::getTotalNumTraces]]; exit\n")
    command = ["xvfb-run", "-a", "gtkwave", "--script", script.name, f"a folder/{of.hardware}.gtkw"]
    found = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stdout + found.stderr
    signals, traces = map(int, found.stdout.splitlines()[-1].split())
    assert signals == len(waveform(of).variables) and traces > signals  # and the headings of groups


def test_surfers_commands_add_every_port_behind_its_streams_divider():
    of = waves(parts="trigger")
    file = io.StringIO()
    write_commands(of, file)
    commands = [line.split(" ") for line in file.getvalue().splitlines()]
    assert {command[0] for command in commands} == {"variable_add", "divider_add", "zoom_fit"}
    assert all(len(command) == 2 for command in commands[:-1]) and commands[-1] == ["zoom_fit"]
    begin = commands.index(["divider_add", "trigger.command"])
    assert commands[begin + 1] == ["variable_add", "t3.gpu0.trigger.command.valid"]
    added = [command[1] for command in commands if command[0] == "variable_add"]
    assert sorted(added) == sorted(f"t3.gpu0.{name}" for name in VcdFile(of).changes)
