"""Testbench of t3_axi: AXI4-Lite accesses by an independent bus driver, a register file behind the bus."""

import random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from t3hdl.export.verilog import PARTS

from tb.bench_run import BenchRun
from tb.cocotb.axi_traffic import Memory, Traffic, axi_bins, master_of
from tb.cocotb.player import PERIOD_NS
from tb.cocotb.time_limit import bench_test
from tb.cocotb.watch import Watch
from tb.coverage_bins import Coverage, CoverageBins, after
from tb.words import Ports, all_streams

IN_FLIGHT = 4
"""Accesses that the host starts before the first one is answered."""


class RegisterFile:
    """What answers on the bus: takes a request after a random time, answers in the next cycle.

    Requests must be those that the host has made: ``memory`` says what a good write changes and what a read gives.
    """

    def __init__(self, ports: Ports, memory: Memory, rng: random.Random) -> None:
        self._places = {**ports.words.inputs, **ports.words.outputs}
        self._memory, self._rng = memory, rng
        self._answer = 0

    def __call__(self, outputs: int) -> int:
        """One cycle."""
        inputs, self._answer = self._answer, 0
        if self._rng.random() < 0.5:
            inputs |= self._word("bus_ready", 1)
            if self._read(outputs, "bus_valid"):
                self._answer = self._serve(outputs)
        return inputs

    def _serve(self, outputs: int) -> int:
        write, address, data, privileged = (
            self._read(outputs, f"bus_{name}") for name in ("write", "address", "data", "privileged")
        )
        error, value = self._memory.serve(bool(write), address, data, bool(privileged))
        answer = self._word("response_valid", 1) | self._word("response_error", error)
        return answer | self._word("response_data", value)

    def _word(self, port: str, value: int) -> int:
        return value << 64 * self._places[port][0]

    def _read(self, words: int, port: str) -> int:
        first, bits = self._places[port]
        return words >> 64 * first & (1 << bits) - 1


def bins() -> CoverageBins:
    """What can happen at the port."""
    return {
        **axi_bins("axi_"),
        "read and write wait together": lambda t: (
            t.is_set("bus_valid") & ~t.is_set("axi_awready") & ~t.is_set("axi_wready") & ~t.is_set("axi_arready")
        ),
        "registers refuse": lambda t: t.is_set("response_valid") & t.is_set("response_error"),
        "registers not ready": lambda t: t.is_set("bus_valid") & ~t.is_set("bus_ready"),
        "privileged request": lambda t: t.is_set("bus_valid") & t.is_set("bus_privileged"),
        "idle": lambda t: t.is_set("idle") & ~after(t.is_set("idle")),
    }


@bench_test
async def traffic(dut: Any) -> None:
    """Random reads and writes, whole and partial, several in flight, every channel pausing."""
    job = BenchRun.here()
    rng = random.Random(f"axi {job.seed}")
    ports = Ports.of(PARTS["axi"](job.config).signature)
    streams = all_streams(ports)
    coverage = Coverage(bins(), {})
    memory = Memory()
    cocotb.start_soon(Clock(dut.clk, PERIOD_NS, "ns").start())
    dut.in_words.value = 0
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)  # the bus driver reads the port, which is unknown before the reset
    master = master_of(dut, "axi", dut.clk, dut.rst, rng)
    dut.rst.value = 0
    watch = Watch(dut, dut.clk, ports, streams, coverage)
    watching = cocotb.start_soon(watch.run(RegisterFile(ports, memory, rng)))
    host = Traffic(master, memory, rng)
    while watch.cycle < job.cycles:
        await host.burst(rng.randrange(1, 3 * IN_FLIGHT), IN_FLIGHT)
    watching.cancel()
    watch.check()
    memory.check_empty()
    coverage.save(job.report_path(), part=job.part, simulator=job.simulator, seed=job.seed)
