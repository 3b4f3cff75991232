"""The program's first half second, in which Ctrl-C ends it with one message, too; and proofs that are interrupted."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from t3formal.prover import run as prover
from t3formal.prover.netlist import ToolError
from t3sim.cli import main as cli

START = "from t3sim.cli.entry import main; print('started', flush=True); main()"
IGNORE = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
"""As nohup does, and a shell for what it runs in the background."""


def interrupted(folder: Path, delay: float, script: str = START) -> tuple[int, str]:
    """Exit code and stderr of ``t3 run`` that gets SIGINT ``delay`` s after its start."""
    command = [sys.executable, "-c", script, "run", "--tp", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
    assert process.stdout is not None and process.stdout.readline() == "started\n"
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


@pytest.mark.parametrize("delay", [0.02, 0.1, 0.2, 0.3])
def test_ctrl_c_while_the_command_line_loads(tmp_path: Path, delay: float):
    code, errors = interrupted(tmp_path, delay)
    if code == 2:  # it was quicker than that
        assert errors == "Error: --tp must be in 2 to 64 GPUs, not 1\n"
    else:
        assert (code, errors.count("\n")) == (130, 1)
        assert errors.startswith("Error: interrupted")
    assert os.listdir(tmp_path) == []


def test_ctrl_c_is_ignored_where_the_shell_says_so(tmp_path: Path):
    assert interrupted(tmp_path, 0.1, IGNORE + START) == (2, "Error: --tp must be in 2 to 64 GPUs, not 1\n")


def test_the_module_is_the_program():
    done = subprocess.run([sys.executable, "-m", "t3sim", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("t3, version")


@pytest.mark.parametrize("found", [True, False])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ToolError("ABC has failed")])
def test_proofs_that_do_not_end_leave_a_folder_only_with_a_counterexample(tmp_path: Path, monkeypatch, error, found):
    def prove(todo, *, workers, keep):
        if found:
            (keep / "found.vcd").write_text("")
        raise error

    monkeypatch.setattr(prover, "prove", prove)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = CliRunner().invoke(cli.main, ["prove", "--quick", "token-queue"])
    left, said = list(tmp_path.iterdir()), result.stderr.splitlines()
    assert len(left) == found
    where = f"the counterexamples that were found are in {left[0]}" if found else "no output was written"
    if isinstance(error, KeyboardInterrupt):
        assert (result.exit_code, said[-1]) == (130, f"Error: interrupted; {where}")
    else:
        assert (result.exit_code, said[-1]) == (2, "Error: ABC has failed") and (where in said) is found
