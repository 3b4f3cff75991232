"""How fast each backend steps each part, beside Amaranth's simulator and the HBM model, all measured in one run.

Absolute numbers belong to the machine and the moment; the ratios are what can be compared.
"""

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
from numba import njit
from t3hdl.config import T3Config
from t3hdl.unit import T3Unit

from .abi import Instance, PartType, address_of
from .golden.hardware import golden_hardware
from .hbm_timing import from_timings
from .rtl import CompiledPart, compiled_part
from .validate_hbm import replay

VECTORS = 256
"""Random input vectors that a loop goes through in turn."""
SECONDS = 0.2
"""Least time that is measured."""
_REFERENCE = Path(__file__).parent / "reference"


@dataclass(frozen=True, kw_only=True)
class PartSpeed:
    """Steps per second of one part, with random inputs in every cycle and no configuration writes."""

    name: str
    instances: int
    """In one GPU; NMC units are per bank group and counted as none."""
    rtl_in_c: float
    rtl_in_numba: float
    golden_in_numba: float


@dataclass(frozen=True, kw_only=True)
class Speeds:
    """All measurements of one run."""

    parts: list[PartSpeed]
    simulator: float
    """Cycles per second of Amaranth's simulator on the whole unit."""
    hbm_requests: float
    """Requests per second of one pseudo-channel of the HBM model, streaming reads."""

    @property
    def unit(self) -> float:
        """Cycles per second of all compiled parts of a unit on one thread, if none were idle."""
        return 1 / sum(part.instances / part.rtl_in_numba for part in self.parts)

    def ratios(self) -> dict[str, float]:
        """What to compare between machines: each ratio is above 1 if the first thing is faster."""
        slices = next(part for part in self.parts if part.name == "slice")
        return {
            "compiled unit to Amaranth's simulator": self.unit / self.simulator,
            "slice: RTL to golden model": slices.rtl_in_numba / slices.golden_in_numba,
            "slice: Numba loop to C loop": slices.rtl_in_numba / slices.rtl_in_c,
            "slice steps to HBM requests": slices.rtl_in_numba / self.hbm_requests,
        }


def measure(config: T3Config, *, seed: int, simulator_cycles: int = 20) -> Speeds:
    """Measures every part of ``config``, the whole unit in Amaranth's simulator, and the HBM model.

    Raises BuildError if the RTL cannot be compiled.
    """
    golden = golden_hardware(config)
    counts = {
        "slice": config.slices, "matcher": config.egress_ports, "leaf": config.nodes, "nmc": 0,
    }  # fmt: skip
    parts = [
        part_speed(compiled_part(config, name), part, counts.get(name, 1), seed)
        for name, part in golden.parts().items()
    ]
    golden.close()
    return Speeds(
        parts=parts,
        simulator=simulator_cycles_per_second(config, cycles=simulator_cycles, seed=seed),
        hbm_requests=hbm_requests_per_second(),
    )


def part_speed(compiled: CompiledPart, golden: PartType, instances: int, seed: int) -> PartSpeed:
    """Steps per second of one part in each of the loops; frees the instances of ``compiled``."""
    rtl = compiled.part_type
    stimulus = _random_inputs(rtl, seed)
    instance, model = Instance(rtl), Instance(golden)
    address, outputs = stimulus.ctypes.data, instance.outputs
    result = PartSpeed(
        name=rtl.name,
        instances=instances,
        rtl_in_c=_rate(lambda n: compiled.bench(instance.handle, address, outputs.ctypes.data, VECTORS, n)),
        rtl_in_numba=_rate(lambda n: _step_often(rtl.step, instance.handle, stimulus, outputs, n)),
        golden_in_numba=_rate(lambda n: _step_often(golden.step, model.handle, stimulus, model.outputs, n)),
    )
    compiled.free()
    return result


def simulator_cycles_per_second(config: T3Config, *, cycles: int, seed: int) -> float:
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


def hbm_requests_per_second() -> float:
    """Speed of the HBM model on the trace of streaming reads that it is validated with."""
    timings = json.loads((_REFERENCE / "hbm2_reference.json").read_text())["timings_in_clock_cycles"]
    parameters = from_timings(timings, refresh=False)
    with np.load(_REFERENCE / "hbm2_traces.npz", allow_pickle=False) as traces:
        trace = traces["stream_read"]

    def run(requests: int) -> None:
        for _ in range(-(-requests // len(trace))):
            replay(parameters, trace)

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
