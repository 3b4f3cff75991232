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


@pytest.mark.slow
def test_the_wheel_holds_the_packages_and_their_data(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == set(PACKAGES)
    for data in (
        "t3hdl/interface/t3.rdl", "t3sim/inputs/machine/presets/paper.toml", "t3sim/study/published.toml",
        "t3sim/report/templates/report.html", "opent3/py.typed", "t3sim/py.typed",
    ):  # fmt: skip
        assert data in names


@pytest.mark.slow
def test_an_empty_environment_runs_the_wheel(wheel, tmp_path):
    environment, work = tmp_path / "venv", tmp_path / "work"
    work.mkdir()
    call(sys.executable, "-m", "venv", environment, cwd=work)
    python, t3 = environment / "bin" / "python", environment / "bin" / "t3"
    call(python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", f"{wheel}[prove]", cwd=work)
    cache = {"OPENT3_CACHE": str(tmp_path / "cache")}
    where = call(python, "-c", "import opent3, t3hdl; print(opent3.__file__, t3hdl.__file__)", cwd=work)
    assert all(Path(path).is_relative_to(environment) for path in where.split())
    call(t3, "verilog", "--preset", "small", "-o", work / "rtl", cwd=work, **cache)
    assert (work / "rtl" / "t3_unit.v").stat().st_size > 100_000
    assert "t3-mca" in call(t3, "demo", "-o", work / "demo", cwd=work, **cache)
    assert (work / "demo" / "report.html").exists()
    assert "proven" in call(t3, "prove", "--quick", cwd=work, **cache)
    assert set(work.iterdir()) == {work / "rtl", work / "demo"}, "nothing else is written"
