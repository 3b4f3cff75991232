"""The unit benches of each part, with a mutant in the place of the part."""

import ctypes
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager

from t3formal.prover.mutation import SELECT, Mutant, Netlist
from t3hdl.config import T3Config
from t3hdl.interface.layouts import Dtype, Op
from t3sim.hardware.abi import Instance, PartType, words_of
from t3sim.hardware.golden.backend import golden_hardware
from t3sim.hardware.rtl.backend import CompiledPart
from t3sim.hardware.rtl.build import library
from t3sim.run.request import SimulationError
from t3sim.validation.alu import random_checks
from t3sim.validation.alu import run as run_check

from tb import axi_registers
from tb.alu import directed
from tb.alu.line_reference import FORMATS
from tb.compare import compare
from tb.stimulus.base import Stimulus
from tb.stimulus.tracker_chunks import TrackerOverflows, TrackerTiles
from tb.stimulus.trigger_marks import TriggerMarks

_CYCLES, _MORE_CYCLES = 8000, {"registers": 24000}
"""Cycles of random traffic, after a reset that ends a shorter run: more where one access at a time is all there is."""
_RUNS = {"tracker": 4, "trigger": 4}
"""Runs with successive seeds, one otherwise: tiles, thresholds, limits and floods are those of one plan for most of a
run."""
_DIRECTED: dict[str, dict[type[Stimulus], int]] = {
    "tracker": {TrackerOverflows: _CYCLES, TrackerTiles: _CYCLES},
    "trigger": {TriggerMarks: 16000},
}
"""More traffic, for what that of the part seldom comes to, and cycles of it."""
_ALU_CASES = 3000
"""Random pairs for each operation and data type of the ALU."""
_PATIENCE = 40_000
"""Cycles after which an answer counts as lost."""

Bench = Callable[[PartType, int], None]
"""Runs the bench on a part with this seed; raises AssertionError if it finds a mistake."""


class MutatedPart(CompiledPart):
    """A part compiled with all its mutants; ``active`` is the number of the one that new instances have."""

    def __init__(self, netlist: Netlist, mutants: tuple[Mutant, ...], config: T3Config) -> None:
        words = words_of(config, netlist.component)
        path = library(netlist.top, netlist.verilog(mutants), words, SELECT)
        super().__init__(netlist.component, words, path)
        self._library.part_select.argtypes = [ctypes.c_ssize_t, ctypes.c_int64]
        self.active = 0

    def _new(self) -> int:
        handle = super()._new()
        self._library.part_select(handle, self.active)
        return handle


@contextmanager
def bench_of(component: str, config: T3Config) -> Iterator[Bench]:
    """The unit bench of a part."""
    if component == "alu":
        yield lambda part, seed: _alu(part, config, seed)
    elif component == "axi":
        yield _axi
    else:
        hardware = golden_hardware(config)
        golden = hardware.parts[component]
        try:
            yield lambda part, seed: _locksteps(part, golden, config, seed)
        finally:
            hardware.close()


def found_by_bench(bench: Bench, part: MutatedPart, number: int, seed: int) -> str:
    """What the bench says of mutant ``number``, its first line; empty if it notices nothing."""
    part.active = number
    try:
        bench(part.part_type, seed)
    except (AssertionError, SimulationError) as error:
        return (str(error) or "an assertion fails").splitlines()[0]
    finally:
        part.free()
    return ""


def _locksteps(part: PartType, golden: PartType, config: T3Config, seed: int) -> None:
    for later in range(_RUNS.get(part.name, 1)):
        _lockstep(part, golden, config, seed + later)
    for stimulus, cycles in _DIRECTED.get(part.name, {}).items():
        title = f"{part.name}, {stimulus.__name__}, seed {seed}"
        compare({"golden": golden, "mutant": part}, part.name, config, cycles, title, stimulus)


def _lockstep(part: PartType, golden: PartType, config: T3Config, seed: int) -> None:
    """Side by side with the golden model, and with a copy that skips idle cycles."""
    cycles = _MORE_CYCLES.get(part.name, _CYCLES)
    bench = compare({"golden": golden, "mutant": part}, part.name, config, cycles, f"{part.name}, seed {seed}")
    assert min(bench.skipped.values()) > cycles / 100, "the part is hardly ever idle"


def _alu(part: PartType, config: T3Config, seed: int) -> None:
    """Directed lines, and those of `t3 validate alu --random`."""
    for check in random_checks(config, None, None, count=_ALU_CASES, seed=seed, every=None):
        row = run_check(part, check, threads=1, watch=lambda cases, seconds: None)
        assert not row.differences, row.texts()[0]
    alu = Instance(part)
    directed.every_operation_with_masks(alu, config)
    directed.each_lane_raises_its_flags(alu, config)
    directed.integer_corners(alu, config)
    for op in (Op.ADD, Op.MIN, Op.MAX):
        for dtype in Dtype:
            if dtype in FORMATS:
                directed.special_values_in_both_halves(alu, config, dtype, op)
    directed.check(alu, config, directed.random_cases(seed, 1000))


class _Ports:
    """Names of ports, for tests that take a component."""

    def __getattr__(self, name: str) -> str:
        return name


class _Clock:
    """What Amaranth's simulator gives to a test bench, for one compiled instance."""

    def __init__(self, instance: Instance) -> None:
        self.get, self.set = instance.get, instance.set

    def tick(self, _: str = "sync") -> "_Clock":
        """Await it for one clock."""
        return self

    def __await__(self) -> Iterator[None]:
        yield


def _axi(part: PartType, seed: int) -> None:
    """Random reads and writes by a host, a register file that answers."""
    rng, writes, reads = axi_registers.traffic(seed)
    instance, dut, registers = Instance(part), _Ports(), axi_registers.Registers(rng, axi_registers.LATE)
    context, results = _Clock(instance), {}

    async def receive(channel: str, fields: tuple[str, ...], count: int) -> None:
        results[channel] = await axi_registers.receive(context, dut, rng, channel, fields, count)

    runs: list[Coroutine] = [
        axi_registers.send(context, dut, rng, channel, items)
        for channel, items in (("aw", [aw for aw, _ in writes]), ("w", [w for _, w in writes]), ("ar", reads))
    ]
    runs += [receive("b", ("resp",), len(writes)), receive("r", ("data", "resp"), len(reads))]
    server = registers.serve(context, dut)
    for _ in range(_PATIENCE):
        server.send(None)
        runs = [run for run in runs if _goes_on(run)]
        if not runs:
            break
        instance.step()
    server.close()
    for run in runs:
        run.close()
    assert not runs, "an access was never answered"
    axi_registers.check(registers, writes, reads, results["b"], results["r"])


def _goes_on(run: Coroutine) -> bool:
    try:
        run.send(None)
    except StopIteration:
        return False
    return True
