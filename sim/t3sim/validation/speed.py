"""Speed of single things in loops of their own: compiled parts, Amaranth's simulator, the HBM model."""

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from amaranth.hdl import Value
from amaranth.lib.wiring import In
from amaranth.sim import Simulator
from t3hdl.config import T3Config
from t3hdl.unit import T3Unit

from t3sim.common.compiled import njit
from t3sim.hardware.abi import Instance, PartType, address_of
from t3sim.hardware.rtl.backend import compiled_part

from .hbm import memory_with_timings, replay

VECTORS = 256
"""Random input vectors that a loop goes through in turn."""
SECONDS = 0.2
"""Least time that is measured."""
SIMULATOR_CYCLES = 20
"""Cycles of Amaranth's simulator that are measured; at paper size each takes a good part of a second."""
_REFERENCE = Path(__file__).parent / "reference"


@dataclass(frozen=True, kw_only=True)
class PartSpeed:
    """Evaluations per second of one compiled part, called from Numba code as the engine does, and from a bare C loop.

    Inputs are random in every cycle, except that nothing is configured.
    """

    in_numba: float
    in_c: float


@dataclass(frozen=True, kw_only=True)
class HbmLoad:
    """What the HBM model is measured on: one of the traces that it is validated with; ``updates``: with near-memory
    updates for its writes; ``refresh``: while banks are refreshed."""

    trace: str
    updates: bool = False
    refresh: bool = False

    @property
    def title(self) -> str:
        """For people, for example ``rw_random_75, updates for writes, refresh``."""
        return self.trace + ", updates for writes" * self.updates + ", refresh" * self.refresh


def part_speed(config: T3Config, name: str, *, seed: int) -> PartSpeed:
    """Speed of one part of ``config``; frees its instance. Raises BuildError if it cannot be compiled."""
    part = compiled_part(config, name)
    stimulus = _random_inputs(part.part_type, seed)
    instance = Instance(part.part_type)
    handle, address, outputs = instance.handle, stimulus.ctypes.data, instance.outputs
    try:
        return PartSpeed(
            in_numba=_rate(lambda n: _step_often(part.part_type.step, handle, stimulus, outputs, n)),
            in_c=_rate(lambda n: part.bench(handle, address, outputs.ctypes.data, VECTORS, n)),
        )
    finally:
        part.free()


def simulator_cycles_per_second(config: T3Config, *, seed: int, cycles: int = SIMULATOR_CYCLES) -> float:
    """Speed of Amaranth's simulator on the whole unit, with random inputs in each of ``cycles`` cycles."""
    unit = T3Unit(config=config)
    ports = [Value.cast(port) for _, member, port in unit.signature.flatten(unit) if member.flow == In]
    rng, seconds = random.Random(seed), 0.0

    async def testbench(ctx: Any) -> None:
        nonlocal seconds
        await ctx.tick()  # the first cycle settles everything and is not typical
        start = time.perf_counter()
        for _ in range(cycles):
            for port in ports:
                ctx.set(port, rng.getrandbits(len(port)))
            await ctx.tick()
        seconds = time.perf_counter() - start

    simulator = Simulator(unit)
    simulator.add_clock(1e-9)
    simulator.add_testbench(testbench)
    simulator.run()
    return cycles / seconds


def hbm_requests_per_second(load: HbmLoad) -> float:
    """Speed of the HBM model on ``load``."""
    timings = json.loads((_REFERENCE / "hbm2_reference.json").read_text())["timings_in_clock_cycles"]
    parameters = memory_with_timings(timings, refresh=load.refresh)
    with np.load(_REFERENCE / "hbm2_traces.npz", allow_pickle=False) as traces:
        trace = traces[load.trace]

    def run(requests: int) -> None:
        for _ in range(-(-requests // len(trace))):
            replay(parameters, trace, updates=load.updates)

    return _rate(run, first=len(trace))


def _random_inputs(part: PartType, seed: int) -> np.ndarray:
    """Input vectors in which every port is random, except that nothing is configured."""
    words = part.words
    vectors = np.random.default_rng(seed).integers(0, 1 << 64, (VECTORS, max(1, words.input_words)), dtype=np.uint64)
    if "config_valid" in words.inputs:
        vectors[:, words.inputs["config_valid"][0]] = 0
    return vectors


def _rate(run: Callable[[int], object], first: int = VECTORS) -> float:
    """Steps per second of ``run(steps)``; the first call (which may compile) does not count."""
    run(first)
    steps = first
    while True:
        start = time.perf_counter()
        run(steps)
        elapsed = time.perf_counter() - start
        if elapsed >= SECONDS:
            return steps / elapsed
        steps *= 4


@njit(cache=True, nogil=True)
def _step_often(step, state, inputs, outputs, steps):
    """``steps`` cycles with the rows of ``inputs`` in turn."""
    for cycle in range(steps):
        step(state, address_of(inputs[cycle % len(inputs)]), address_of(outputs))
