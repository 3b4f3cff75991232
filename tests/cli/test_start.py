"""The first minutes: the demonstration, and completion of the shell."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from t3sim.cli import main as cli
from t3sim.cli.start import demo as demonstration
from t3sim.common.manifest import MANIFEST
from t3sim.report.output import is_report


def t3(*arguments: object):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def test_demo_shows_the_table_the_reasons_and_where_to_go_next(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = t3("demo")
    assert result.exit_code == 0, result.output
    for text in ("ideal-overlap", "speedup over sequential", "mismatches", "Why:\nt3-mca:\n- Of ", "Next:\n  t3 "):
        assert text in result.stdout
    assert "\nReport, with charts to zoom: out/demo/report.html\n" in result.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "out"] and is_report(tmp_path / "out/demo/report.html")
    (fired,) = (line for line in result.stdout.splitlines() if line.startswith("blocks by tile / by chunk"))
    assert fired.split()[6:9] == ["-", "16", "/"] and "overflowed" not in result.stdout, "blocks fire by their tiles"


def test_demo_writes_a_comparison_and_its_report(tmp_path: Path):
    for _ in range(2):  # a second time replaces the first
        assert t3("demo", "-o", tmp_path / "out").exit_code == 0
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"compare.json", "t3-mca", "report.html", MANIFEST} <= written
    assert "t3-mca:" in t3("explain", tmp_path / "out").stdout


def test_demo_refuses_an_occupied_folder_before_it_runs(tmp_path: Path):
    (tmp_path / "mine").write_text("")
    result = t3("demo", "-o", tmp_path)
    assert result.exit_code == 2 and "started" not in result.stderr and not result.stdout


@pytest.mark.parametrize("what", ["explain", "report"])
def test_an_interrupted_report_of_the_demo_leaves_the_comparison(tmp_path: Path, monkeypatch, what):
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"opent3.{what}", interrupted)
    result = t3("demo", "-o", tmp_path / "out")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == f"Error: interrupted; the comparison was written, in {tmp_path}/out"
    assert (tmp_path / "out" / "compare.json").exists() and not (tmp_path / "out" / "report.html").exists()


def test_demo_refuses_unknown_hardware_before_it_says_anything():
    result = t3("demo", "--hardware", "fpga")
    assert result.exit_code == 2 and "--hardware must be one of rtl, golden, not 'fpga'" in result.stderr
    assert not result.stdout


def test_what_the_demo_names_is_there():
    for command, _ in demonstration.NEXT:
        program, name, *rest = shlex.split(command)
        assert program == "t3"
        usage = t3(*([name] if name == "--help" else [name, "--help"]))
        assert usage.exit_code == 0
        for option in (word for word in rest if word.startswith("--")):
            assert option in usage.stdout
    values = " ".join(f"--{name} {value}" for name, value in demonstration.SIZE.items())
    settings = " ".join(f"--set {key}={value}" for key, value in demonstration.SETTINGS.items())
    assert f"--machine toy {values} {settings}" == demonstration.TOY


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_and_how_to_install_it(shell):
    result = t3("completion", shell)
    assert result.exit_code == 0
    script, last = result.stdout.rstrip("\n").rsplit("\n", 1)
    assert "_T3_COMPLETE=" in script.replace("env ", "") and last.startswith("# for this shell: ")
    assert f"t3 completion {shell}" in last
    assert t3("completion", "tcsh").exit_code == 2


COMPLETED = {
    "t3 exp": ["explain"],
    "t3 run --trac": ["--trace"],
    "t3 run --policy t3": ["t3", "t3-mca"],
    "t3 compare --policies sequential,t3-": ["sequential,t3-mca"],
    "t3 run --machine to": ["toy"],
    "t3 run --hardware ": ["rtl", "golden"],
    "t3 completion z": ["zsh"],
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here: apt install bash")
@pytest.mark.parametrize("line", COMPLETED)
def test_bash_completes(line, tmp_path: Path):
    """The function that the script defines, as bash calls it."""
    program = tmp_path / "t3"
    program.write_text(f"#!{sys.executable}\nfrom t3sim.cli.entry import main\nmain()\n")
    program.chmod(0o755)
    (tmp_path / "script").write_text(t3("completion", "bash").stdout)
    words = shlex.split(line) + ([""] if line.endswith(" ") else [])
    asked = (
        f"source {tmp_path}/script; COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); "
        '_t3_completion t3; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environ = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, env=environ, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == COMPLETED[line]
