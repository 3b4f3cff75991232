"""What `make` installs, and by which program: uv where it can, else pip. Both are played by scripts here."""

import subprocess
import sys
from pathlib import Path

import pytest

MAKE = ("make", "-f", Path(__file__).parents[2] / "Makefile", f"PYTHON={sys.executable}")
PYTHON = """#!/bin/sh
case "$*" in
*"pip --version") test -z "{cut_off}" || exit 1;;
*"config list") echo "{config}";;
*) echo "pip $*" >> calls;;
esac
"""
UV = """#!/bin/sh
echo "uv $*" >> calls
exit {status}
"""


def installed(
    folder: Path, target: str, *, config: str = "global.timeout='9'", status: int = 0, cut_off: bool = False
) -> list[str]:
    """The calls of pip and uv by ``make target``, where pip's configuration is ``config`` and uv ends with status.

    ``cut_off``: the environment has no pip, and the Python that would add it is the environment's own script.
    """
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    python = PYTHON.format(config=config, cut_off="yes" if cut_off else "")
    for name, text in (("python", python), ("uv", UV.format(status=status))):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (folder / "pyproject.toml").touch()
    own = [f"PYTHON={programs / 'python'}"] if cut_off else []
    done = subprocess.run([*MAKE, *own, target], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return (folder / "calls").read_text().splitlines()


@pytest.mark.parametrize(("target", "package"), [(".venv/.runnable", "."), (".venv/.ready", ".[dev]")])
def test_run_installs_what_runs_and_the_rest_what_tests(tmp_path, target, package):
    pip, uv = installed(tmp_path, target)
    assert pip.startswith("pip -m pip ") and pip.endswith(" install uv")
    assert uv == f"uv pip install --quiet --python .venv/bin/python --editable {package}"
    assert (tmp_path / target).exists()


def test_an_environment_that_was_cut_off_is_completed(tmp_path):
    """``venv`` makes ``bin/python`` first, and installs pip last."""
    made = "pip -m venv .venv"
    assert made in installed(tmp_path / "cut-off", ".venv/.runnable", cut_off=True)
    assert made not in installed(tmp_path / "whole", ".venv/.runnable")


def test_what_tests_also_runs(tmp_path):
    installed(tmp_path, ".venv/.ready")
    command = [*MAKE, "--dry-run", "run"]
    dry = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "--editable" not in dry.stdout and ".venv/bin/t3 compare" in dry.stdout


def test_another_index_is_pips_business(tmp_path):
    (pip,) = installed(tmp_path, ".venv/.runnable", config="global.index-url='https://example.org/simple'")
    assert pip.startswith("pip -m pip ") and pip.endswith(" install --editable .")


def test_an_index_beside_pypi_is_no_other_index(tmp_path):
    assert len(installed(tmp_path, ".venv/.runnable", config="global.extra-index-url='https://example.org'")) == 2


def test_pip_installs_what_uv_cannot(tmp_path):
    *_, uv, pip = installed(tmp_path, ".venv/.runnable", status=1)
    assert uv.startswith("uv ") and pip.endswith(" install --editable .")
