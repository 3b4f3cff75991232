"""The core's Verilog, compiled, does in every cycle what Amaranth's simulator does, whatever it holds before reset."""

from collections.abc import Iterable, Iterator
from functools import cache

import pytest
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Op
from t3hdl.interface.words import WordMap
from t3sim.hardware.abi import Instance
from t3sim.hardware.rtl import build as rtl_build

from tests.contract.backends import open_part
from tests.contract.bench import Bench
from tests.contract.core.scene import (
    CONFIG,
    CONTEXT,
    KINDS,
    TINY,
    accesses,
    arm,
    compiled_core,
    drain,
    fire_one_block,
    request,
    send,
)

Cycle = tuple[dict[str, int], dict[str, int]]
"""Inputs and outputs by port."""


def faults(bench: Bench) -> None:
    """Refused writes on several slices, a debug read, a pause, and an abort in the middle of a second job."""

    def control(**fields: int) -> None:
        request(bench, 1, regs.CONTROL, regs.Control.const({"context": CONTEXT, **fields}).as_bits())

    foreign = [{**item, "context": CONTEXT ^ 1} for item in accesses(1, Op.STORE)]
    send(bench, "compute_write", foreign)
    send(bench, "comm_write", foreign[:3])
    drain(bench)
    assert request(bench, 0, regs.VIOLATIONS) == len(foreign) + 3
    request(bench, 1, regs.IRQ_ENABLE, 0xFF)
    control(arm=1, descriptors=len(KINDS))
    bench.step(80)
    control(quiesce=1)
    send(bench, "comm_write", accesses(1, Op.ADD))
    drain(bench)
    request(bench, 1, regs.DEBUG_SELECT, 0)
    request(bench, 1, regs.WATCHDOG, 50)
    control(resume=1)
    bench.step(100)
    assert request(bench, 0, regs.STUCK) & 1
    control(abort=1)
    bench.step(CONFIG.drain_cycles + 40)
    assert bench["armed"] == 0 and bench["entries"] == 0 and bench["interrupt"] == 1
    assert request(bench, 0, regs.IRQ_STATUS) & 0b11010 == 0b01010  # violation, watchdog
    while bench.fields(f"context.{CONTEXT}")["outstanding"]:
        bench.step(command_done=CONTEXT)
    bench.step(3)
    assert request(bench, 0, regs.IRQ_STATUS) & 0b11010 == 0b11010  # aborted, too


class Recorder(Bench):
    """A bench that keeps what the ports do."""

    def __init__(self, config: T3Config) -> None:
        super().__init__(open_part("amaranth", "core", config), seed=77)
        self.trace: list[Cycle] = []

    def _check_held(self, outputs: dict[str, int]) -> None:
        self.trace.append((dict(self._inputs), outputs))
        super()._check_held(outputs)


def valid_of(outputs: Iterable[str]) -> dict[str, str]:
    """By output, the one without which it means nothing."""
    found = {name: name.replace(".payload", ".valid") for name in outputs if name.endswith(".payload")}
    found |= {
        name: f"{name.split('.')[0]}_valid.{name.split('.')[1]}"
        for name in outputs
        if "refused." in name or "stale." in name
    }
    return found | {"response_data": "response_valid", "response_error": "response_valid"}


@cache
def recorded() -> list[Cycle]:
    """A run with back-pressure, overflow and commands; simulated once for all tests."""
    bench = Recorder(CONFIG)
    bench.gap = 0.2
    bench.accept = dict.fromkeys(bench.accept, 0.6)
    arm(bench, mca=1, starvation=9)
    for chunk in (1, 2, 3):
        send(bench, "comm_write", accesses(chunk, Op.ADD))
        send(bench, "compute_write", accesses(chunk, Op.STORE))
    drain(bench)
    assert bench["chunks_done"] == 3 and bench.got["command"]
    faults(bench)
    return bench.trace


@cache
def recorded_block() -> list[Cycle]:
    """A run of a tiny core in which a block fires; simulated once for all tests."""
    bench = Recorder(TINY)
    fire_one_block(bench)
    return bench.trace


def _replaced(flags: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    assert flags.count(old) == 1
    return tuple(new if flag == old else flag for flag in flags)


@pytest.fixture(params=[pytest.param("zeros", marks=pytest.mark.slow), pytest.param("random", marks=pytest.mark.long)])
def power_up(request, monkeypatch) -> Iterator[str]:
    """What registers and memories hold before reset."""
    if request.param == "random":
        monkeypatch.setattr(rtl_build, "_VERILATOR_FLAGS", _replaced(rtl_build._VERILATOR_FLAGS, "fast", "unique"))
        monkeypatch.setattr(rtl_build, "_VERILATOR_FLAGS", _replaced(rtl_build._VERILATOR_FLAGS, "0", "unique"))
        original, new = rtl_build.wrapper, "Part* part = new Part(context);"
        seeded = f"context->randReset(2); context->randSeed(5); {new}"
        assert original(WordMap({}, {}, 0, 0), (), rtl_build.NOT_GATED).count(new) == 1
        monkeypatch.setattr(rtl_build, "wrapper", lambda *args: original(*args).replace(new, seeded))
    yield request.param


def replay(trace: list[Cycle], config: T3Config) -> None:
    """The compiled core gives these outputs for these inputs."""
    part = compiled_core(config)
    instance = Instance(part.part_type)
    payloads = valid_of(part.part_type.words.outputs)
    for cycle, (inputs, outputs) in enumerate(trace):
        for name, value in outputs.items():
            if outputs.get(payloads.get(name, ""), 1):
                assert instance.get(name) == value, f"{name} in cycle {cycle}"
        for name, value in inputs.items():
            instance.set(name, value)
        instance.step()
    part.free()


def test_compiled_core(power_up):
    replay(recorded(), CONFIG)


def test_compiled_tiny_core():
    trace = recorded_block()
    assert any(outputs["command.valid"] for _, outputs in trace)
    replay(trace, TINY)
