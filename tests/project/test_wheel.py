"""Wheel and source distribution install into an empty environment, and work in another folder."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("opent3", "t3fpga", "t3formal", "t3hdl", "t3sim")


def call(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Standard output of a program that must succeed. It sees no sources of this repository."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=environment | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """A wheel that was made of the source distribution, not of the repository."""
    folder = tmp_path_factory.mktemp("dist")
    script = "import sys; from setuptools.build_meta import build_sdist as build; print(build(sys.argv[1]))"
    environment = folder / "build"
    call(sys.executable, "-m", "venv", environment, cwd=folder)
    pip = (environment / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet")
    call(*pip, "install", "setuptools>=64", cwd=folder)
    call(environment / "bin" / "python", "-c", script, folder, cwd=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        assert not [name for name in tar.getnames() if "/.venv/" in name or "/.cache/" in name]
    call(*pip, "wheel", "--no-deps", "--wheel-dir", folder, archive, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """An environment that has nothing but the wheel and what it asks for, and a folder ``work`` beside it."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "work").mkdir()
    call(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    install(folder / "venv" / "bin" / "python", str(wheel), cwd=folder)
    return folder


def install(python: Path, requirement: str, *, cwd: Path) -> None:
    """By uv, if it is there, as `make` does: it takes a fifth of pip's time."""
    uv = Path(sys.executable).with_name("uv")
    if uv.exists():
        call(uv, "pip", "install", "--quiet", "--python", python, requirement, cwd=cwd)
    else:
        call(python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", requirement, cwd=cwd)


def t3(installed: Path, *arguments: str) -> str:
    program = installed / "venv" / "bin" / "t3"
    return call(program, *arguments, cwd=installed / "work", OPENT3_CACHE=str(installed / "cache"))


@pytest.mark.long
def test_the_wheel_holds_the_packages_and_their_data(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == set(PACKAGES)
    for data in (
        "t3hdl/interface/t3.rdl", "t3sim/inputs/machine/presets/paper.toml", "t3sim/study/published.toml",
        "t3sim/report/templates/report.html", "opent3/py.typed", "t3sim/py.typed",
    ):  # fmt: skip
        assert data in names


@pytest.mark.long
def test_an_empty_environment_runs_the_wheel(installed):
    work, python = installed / "work", installed / "venv" / "bin" / "python"
    where = call(python, "-c", "import opent3, t3hdl; print(opent3.__file__, t3hdl.__file__)", cwd=work)
    assert all(Path(path).is_relative_to(installed / "venv") for path in where.split())
    t3(installed, "verilog", "--preset", "small", "-o", "rtl")
    assert (work / "rtl" / "t3_unit.v").stat().st_size > 100_000
    assert "t3-mca" in t3(installed, "demo", "-o", "demo")
    assert (work / "demo" / "report.html").exists()
    assert set(work.iterdir()) == {work / "rtl", work / "demo"}, "nothing else is written"


@pytest.mark.slow
def test_an_empty_environment_proves(installed, wheel):
    install(installed / "venv" / "bin" / "python", f"{wheel}[prove]", cwd=installed)
    assert "proven" in t3(installed, "prove", "--quick")
