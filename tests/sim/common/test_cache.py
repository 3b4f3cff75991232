"""The cache folder: what a killed build left is removed, a warm cache serves read-only, a cold one is refused."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from t3sim.common.cache import BuildError, cache_folder, cached, check_writable, digest

POWERLESS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
"""Runs a command as a user whom permissions bind, also if that is root."""
RUN = ("run", "--machine", "toy", "--m", "256", "--n", "64", "--k", "64", "--tp", "2", "--hardware", "golden")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("OPENT3_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def make(folder: Path) -> Path:
    (folder / "made").write_text("made")
    return folder / "made"


def test_a_file_is_built_once(folder: Path):
    assert cached("thing", make).read_text() == "made"
    assert cached("thing", lambda _: pytest.fail("built again")) == cache_folder() / "thing"


def test_what_a_killed_build_left_is_removed_by_the_next(folder: Path):
    for name in ("thing", "other"):
        left = folder / f"build-{digest(name)}-abc"
        left.mkdir(parents=True)
        (left / "half").write_text("half")
    cached("thing", make)
    builds = [path.name for path in folder.iterdir() if path.name.startswith("build-")]
    assert builds == [f"build-{digest('other')}-abc"], "which somebody may be building now"


def test_a_failed_build_leaves_nothing(folder: Path):
    def fail(work: Path) -> Path:
        make(work)
        raise BuildError("no compiler")

    with pytest.raises(BuildError, match="no compiler"):
        cached("thing", fail)
    assert [path.name for path in folder.iterdir() if path.suffix != ".lock"] == []


def test_a_folder_that_cannot_be_is_refused_with_the_remedy(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match="cannot be used .*: set OPENT3_CACHE to a folder that can"):
        check_writable(tmp_path / "file" / "cache")


def powerless(arguments: Sequence[str], cache: Path) -> subprocess.CompletedProcess[str]:
    """``t3`` with a cache folder that it may only read."""
    command = (*(POWERLESS if os.geteuid() == 0 else ()), sys.executable, "-m", "t3sim", *arguments)
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"OPENT3_CACHE": str(cache)}
    cache.chmod(0o555)
    try:
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    finally:
        cache.chmod(0o755)


needs_permissions = pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="setpriv missing: apt install util-linux"
)


@needs_permissions
def test_a_cold_cache_that_cannot_be_written_is_refused_at_once(tmp_path: Path):
    cache = tmp_path / "cache"
    cache.mkdir()
    done = powerless((*RUN, "-o", str(tmp_path / "out")), cache)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: the cache folder {cache}")
    assert "set OPENT3_CACHE to a folder that can" in done.stderr and done.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache"]


@needs_permissions
@pytest.mark.long
def test_a_warm_cache_serves_without_being_written(tmp_path: Path):
    """Kernels and hardware of this test run, copied, so that nothing can be written beside them."""
    from tests.support.system_cases import missing_compiler

    if missing_compiler():
        pytest.skip(missing_compiler())
    cache, warm = tmp_path / "cache", (*RUN[:-1], "rtl")
    first = subprocess.run(
        [sys.executable, "-m", "t3sim", *warm, "-o", str(tmp_path / "first")],
        capture_output=True,
        text=True,
        check=True,
    )
    shutil.copytree(cache_folder(), cache, ignore=shutil.ignore_patterns("build-*", "results"))
    for path in (cache, *cache.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = sorted(cache.rglob("*"))
    second = powerless((*warm, "-o", str(tmp_path / "second")), cache)
    assert (first.returncode, second.returncode) == (0, 0), second.stderr
    assert sorted(cache.rglob("*")) == before
    records = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("first", "second")]
    assert records[0] == records[1]
    for path in (cache, *cache.rglob("*")):
        path.chmod(0o755)
