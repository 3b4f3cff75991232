"""What a run needs first: hardware and kernels are made side by side, and only if the cache folder lacks them."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from t3hdl.config import preset
from t3sim.engine import kernels, prepare
from t3sim.engine.prepare import open_prepared
from t3sim.hardware.rtl.toolchain import Toolchain

SMALL = preset("small")


@pytest.mark.parametrize("backend", ["rtl", "golden"])
def test_what_is_kept_starts_without_building(monkeypatch, backend):
    open_prepared(SMALL, backend, lambda *_: None).close()

    def fail(*_args, **_options):
        raise AssertionError("nothing is to be compiled")

    for name in ("verilate", "compile"):
        monkeypatch.setattr(Toolchain, name, fail)
    monkeypatch.setattr(kernels.subprocess, "Popen", fail)
    open_prepared(SMALL, backend, fail).close()


@pytest.fixture
def compiler(monkeypatch, tmp_path: Path) -> Path:
    """A script in the place of the process that compiles, whose folder it is run with; kernels count as missing."""
    script = tmp_path / "python"
    monkeypatch.setattr(kernels, "is_kept", lambda *_: False)
    monkeypatch.setattr(kernels, "compile_types", lambda *_: (tmp_path / "loaded").touch())
    monkeypatch.setattr(sys, "executable", str(script))
    return script


def script(path: Path, *lines: str) -> None:
    path.write_text("\n".join(("#!/bin/sh", f"cd {path.parent}", *lines, "")))
    path.chmod(0o755)


def test_kernels_are_compiled_while_the_hardware_is_built(compiler, monkeypatch, tmp_path: Path):
    """The hardware is not ready before the other process is at work, which ends only after that."""
    script(compiler, "echo 1", "touch begun", "until test -e built; do sleep 0.01; done", "echo 2")

    def open_hardware(config, backend, show, variants):
        show(0, 2)
        deadline = time.monotonic() + 30
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        show(2, 2)
        (tmp_path / "built").touch()
        return "hardware"

    monkeypatch.setattr(prepare, "open_hardware", open_hardware)
    steps: list[tuple] = []
    assert open_prepared(SMALL, "rtl", lambda *step: steps.append(step)) == "hardware"
    assert [step for step in steps if step[0] == "hardware"] == [("hardware", 0, 2), ("hardware", 2, 2)]
    assert [step for step in steps if step[0] == "kernels"] == [("kernels", 1, None), ("kernels", 2, None)]
    assert (tmp_path / "loaded").exists()


def test_an_error_of_the_hardware_ends_the_other_process(compiler, tmp_path: Path):
    script(compiler, "echo $$ > number", "touch begun", "exec sleep 600")
    begin = time.monotonic()
    with pytest.raises(ValueError, match="no compiler"), kernels.entries_compiled(lambda done: None):
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < begin + 30
            time.sleep(0.01)
        raise ValueError("no compiler")
    assert time.monotonic() < begin + 60
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "number").read_text()), 0)
    assert not (tmp_path / "loaded").exists()


def test_what_the_other_process_could_not_compile_is_compiled_here(compiler, tmp_path: Path):
    script(compiler, "exit 1")
    with kernels.entries_compiled(lambda done: None):
        assert not (tmp_path / "loaded").exists()
    assert (tmp_path / "loaded").exists()


COUNT = """
from t3sim.engine.kernels import ENTRIES, entries_compiled

counts = []
with entries_compiled(counts.append):
    pass
hits = sum(sum(function.stats.cache_hits.values()) for function, _ in ENTRIES)
misses = sum(sum(function.stats.cache_misses.values()) for function, _ in ENTRIES)
print(hits, misses, len(counts) > 50, counts == sorted(counts))
"""


@pytest.mark.long
def test_the_kernels_of_the_other_process_are_those_that_run_here(tmp_path: Path):
    """All five are loaded, none is compiled here, neither the first time nor the second, which has no other process."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    for some in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", COUNT], capture_output=True, text=True, env=environment, check=True
        )
        assert done.stdout.split() == ["5", "0", str(some), "True"]
