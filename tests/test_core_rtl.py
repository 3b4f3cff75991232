"""The core's Verilog, compiled, does in every cycle what Amaranth's simulator does, whatever it holds before reset."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import cache

import pytest
import stream_checks
from amaranth.hdl import Value
from amaranth.lib.wiring import In
from t3hdl.config import T3Config
from t3hdl.core import T3Core
from t3hdl.export.verilog import write_verilog
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Op
from t3hdl.interface.signatures import core_signature, word_map
from t3sim.hardware.abi import Instance
from t3sim.hardware.rtl import build as rtl_build
from t3sim.hardware.rtl.backend import CompiledPart
from test_core import CONFIG, CONTEXT, KINDS, TINY, accesses, arm, drain, fire_one_block, request, send

Cycle = tuple[dict[str, int], dict[str, int]]
"""Inputs and outputs by port."""


async def faults(bench: stream_checks.Bench) -> None:
    """Refused writes on several slices, a debug read, a pause, and an abort in the middle of a second job."""

    async def control(**fields: int) -> None:
        await request(bench, 1, regs.CONTROL, regs.Control.const({"context": CONTEXT, **fields}).as_bits())

    foreign = [{**item, "context": CONTEXT ^ 1} for item in accesses(1, Op.STORE)]
    send(bench, "compute_write", foreign)
    send(bench, "comm_write", foreign[:3])
    await drain(bench)
    assert await request(bench, 0, regs.VIOLATIONS) == len(foreign) + 3
    await request(bench, 1, regs.IRQ_ENABLE, 0xFF)
    await control(arm=1, descriptors=len(KINDS))
    await bench.step(80)
    await control(quiesce=1)
    send(bench, "comm_write", accesses(1, Op.ADD))
    await drain(bench)
    await request(bench, 1, regs.DEBUG_SELECT, 0)
    await request(bench, 1, regs.WATCHDOG, 50)
    await control(resume=1)
    await bench.step(100)
    assert await request(bench, 0, regs.STUCK) & 1
    await control(abort=1)
    await bench.step(CONFIG.drain_cycles + 40)
    assert bench["armed"] == 0 and bench["entries"] == 0 and bench["interrupt"] == 1
    assert await request(bench, 0, regs.IRQ_STATUS) & 0b11010 == 0b11010  # aborted, violation, watchdog


def record(config: T3Config, scenario: Callable[[stream_checks.Bench], Awaitable[None]]) -> list[Cycle]:
    """What a core's ports do in this scenario in Amaranth's simulator."""
    unit = T3Core(config=config)
    inputs = {
        ".".join(str(part) for part in path): Value.cast(value)
        for path, member, value in unit.signature.flatten(unit)
        if member.flow == In
    }
    trace: list[Cycle] = []

    class Recorder(stream_checks.Bench):
        def _check_held(self, outputs: dict[str, int]) -> None:
            trace.append(({name: self.ctx.get(value) for name, value in inputs.items()}, outputs))
            super()._check_held(outputs)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(stream_checks, "Bench", Recorder)
        stream_checks.run(unit, scenario, seed=77)
    return trace


def valid_of(outputs: Iterable[str]) -> dict[str, str]:
    """By output, the one without which it means nothing."""
    found = {name: name.replace(".payload", ".valid") for name in outputs if name.endswith(".payload")}
    found |= {name: f"{name.split('.')[0]}_valid.{name.split('.')[1]}" for name in outputs if "refused." in name}
    return found | {"response_data": "response_valid", "response_error": "response_valid"}


@cache
def recorded() -> list[Cycle]:
    """A run with back-pressure, overflow and commands; simulated once for all tests."""

    async def scenario(bench: stream_checks.Bench) -> None:
        bench.gap = 0.2
        bench.accept = dict.fromkeys(bench.accept, 0.6)
        await arm(bench, mca=1, starvation=9)
        for chunk in (1, 2, 3):
            send(bench, "comm_write", accesses(chunk, Op.ADD))
            send(bench, "compute_write", accesses(chunk, Op.STORE))
        await drain(bench)
        assert bench["chunks_done"] == 3 and bench.got["command"]
        await faults(bench)

    return record(CONFIG, scenario)


@cache
def recorded_block() -> list[Cycle]:
    """A run of a tiny core in which a block fires; simulated once for all tests."""
    return record(TINY, fire_one_block)


@pytest.fixture(params=[pytest.param("zeros", marks=pytest.mark.slow), pytest.param("random", marks=pytest.mark.long)])
def power_up(request, monkeypatch) -> Iterator[str]:
    """What registers and memories hold before reset."""
    if request.param == "random":
        original = rtl_build.wrapper
        flags = tuple("unique" if flag == "fast" else flag for flag in rtl_build._VERILATOR_FLAGS)
        seeded = "{ context.randReset(2); context.randSeed(5); return"
        monkeypatch.setattr(rtl_build, "_VERILATOR_FLAGS", flags)
        monkeypatch.setattr(rtl_build, "wrapper", lambda *args: original(*args).replace("{ return", seeded, 1))
    yield request.param


def replay(trace: list[Cycle], config: T3Config, optimise: int) -> None:
    """The compiled core gives these outputs for these inputs."""
    words = word_map(core_signature(config))
    text = write_verilog(T3Core(config=config), "t3_core")
    part = CompiledPart("t3_core", words, rtl_build.library("t3_core", text, words, optimise=optimise))
    instance = Instance(part.part_type)
    payloads = valid_of(words.outputs)
    for cycle, (inputs, outputs) in enumerate(trace):
        for name, value in outputs.items():
            if outputs.get(payloads.get(name, ""), 1):
                assert instance.get(name) == value, f"{name} in cycle {cycle}"
        for name, value in inputs.items():
            instance.set(name, value)
        instance.step()
    part.free()


def test_compiled_core(power_up):
    replay(recorded(), CONFIG, 3)


def test_compiled_tiny_core():
    trace = recorded_block()
    assert any(outputs["command.valid"] for _, outputs in trace)
    replay(trace, TINY, 0)
