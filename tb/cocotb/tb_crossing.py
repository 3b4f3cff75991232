"""Testbench of t3_crossing: AXI4-Lite from a host clock to the unit's clock and back, at random clock ratios."""

import logging
import random
from collections import deque
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import Timer, gather
from cocotbext.axi import AxiLiteBus, AxiLiteRam, AxiResp
from t3hdl.export.verilog import PARTS

from tb.bench_run import BenchRun
from tb.cocotb.axi_traffic import ADDRESSES, BYTES, master_of, pauses
from tb.cocotb.player import PERIOD_NS
from tb.cocotb.time_limit import bench_test
from tb.cocotb.watch import Watch
from tb.coverage_bins import MEDIUM, Coverage, CoverageBins
from tb.words import Ports, Stream, Trace, all_streams

UNIT_PS, HOST_PS = 1000 * PERIOD_NS, range(700, 9000, 2)
"""Clock periods: that of the unit, and those from which the host's is drawn."""
HOST, UNIT = "host_", ""
"""The two sides, by the prefix of their ports."""
USERS = 12
POWER_UP, RESET = 8, 2
"""Cycles of the slower clock in reset: at first, and later (as the component's manual asks)."""
RARE = {"host_axi_ar: back-pressure": MEDIUM}
"""Cycles from which these bins are expected (see tb/coverage_bins.py)."""


class Queues:
    """What went into each channel, until it comes out: nothing is lost, doubled, changed or overtaken."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[tuple[int, ...]]] = {}
        self.passed = 0

    def see(self, trace: Trace, streams: list[Stream], entering: bool) -> None:
        """Transfers of one clock domain; those of the side on which items enter come first."""
        for stream in streams:
            name = stream.name.removeprefix(HOST)
            is_entry = (name in ("axi_b", "axi_r")) != (HOST in stream.name)
            if is_entry != entering:
                continue
            moved = trace.is_set(stream.valid) & trace.is_set(stream.ready)
            items = zip(*(trace.get(port)[moved].tolist() for port in sorted(stream.payload)), strict=True)
            queue = self._waiting.setdefault(name, deque())
            if entering:
                queue.extend(items)
                continue
            for item in items:
                assert queue, f"{name}: an item came out that never went in"
                assert queue.popleft() == item, f"{name}: another item came out than went in"
                self.passed += 1

    def check_empty(self) -> None:
        """Raises AssertionError if an item is still inside."""
        left = {name: len(queue) for name, queue in self._waiting.items() if queue}
        assert not left, f"items were lost: {left}"


def bins(streams: list[Stream]) -> CoverageBins:
    """What can happen on both sides: flow, pause and back-pressure on every channel."""
    found: CoverageBins = {}
    for stream in streams:
        found[f"{stream.name}: transfer"] = lambda t, s=stream: t.is_set(s.valid) & t.is_set(s.ready)
        found[f"{stream.name}: pause"] = lambda t, s=stream: ~t.is_set(s.valid) & t.is_set(s.ready)
        found[f"{stream.name}: back-pressure"] = lambda t, s=stream: t.is_set(s.valid) & ~t.is_set(s.ready)
    return found


class Host:
    """Random accesses through the crossing to a memory, checked by what it has written itself."""

    def __init__(self, dut: Any, rng: random.Random) -> None:
        self._rng = rng
        self._master = master_of(dut, "host_axi", dut.host_clk, dut.host_rst, rng)
        ram = AxiLiteRam(AxiLiteBus.from_prefix(dut, "axi"), dut.clk, dut.rst, size=ADDRESSES)
        for side in (ram.write_if, ram.read_if):
            side.log.setLevel(logging.WARNING)
        for channel in (ram.write_if.b_channel, ram.read_if.r_channel, ram.write_if.w_channel, ram.read_if.ar_channel):
            channel.set_pause_generator(pauses(rng.getrandbits(32)))

    async def burst(self) -> None:
        """Users with addresses of their own; each reads back what it wrote."""
        await gather(*(self._user(number) for number in range(USERS)))

    async def _user(self, number: int) -> None:
        held: dict[int, bytes] = {}
        for _ in range(self._rng.randrange(1, 12)):
            address = self._rng.randrange(number * BYTES, ADDRESSES, USERS * BYTES)
            if address in held and self._rng.random() < 0.6:
                answer = await self._master.read(address, BYTES)
                assert (answer.resp, answer.data) == (AxiResp.OKAY, held[address]), f"read of {address:#x}: {answer}"
            else:
                held[address] = self._rng.randbytes(BYTES)
                answer = await self._master.write(address, held[address])
                assert answer.resp == AxiResp.OKAY, f"write to {address:#x}: {answer}"


class Clocks:
    """The clocks of both sides, and the reset of both together."""

    def __init__(self, dut: Any) -> None:
        self._dut = dut
        self.signals = {HOST: dut.host_clk, UNIT: dut.clk}
        self._running: list[Clock] = []
        self.slower_ps = UNIT_PS

    def start(self, host_ps: int) -> None:
        """Let both run, the host's with this period."""
        for clock in self._running:
            clock.stop()
        self._running = [Clock(self._dut.host_clk, host_ps, "ps"), Clock(self._dut.clk, UNIT_PS, "ps")]
        for clock in self._running:
            clock.start()
        self.slower_ps = max(host_ps, UNIT_PS)

    async def reset(self, cycles: int) -> None:
        """Hold both sides in reset for so many cycles of the slower clock."""
        self._dut.rst.value = self._dut.host_rst.value = 1
        await Timer(cycles * self.slower_ps, "ps")
        self._dut.rst.value = self._dut.host_rst.value = 0


async def episode(dut: Any, host: Host, clocks: Clocks, cycles: int, coverage: Coverage) -> None:
    """Random traffic from reset."""
    ports = Ports.of(PARTS["crossing"](BenchRun.here().config).signature)
    streams = all_streams(ports)
    sides = {HOST: [s for s in streams if HOST in s.name], UNIT: [s for s in streams if HOST not in s.name]}
    watches = {side: Watch(dut, clocks.signals[side], ports, sides[side], coverage, keep=True) for side in sides}
    tasks = [cocotb.start_soon(watch.run()) for watch in watches.values()]
    while watches[UNIT].cycle < cycles:
        await host.burst()
    await Timer(20 * clocks.slower_ps, "ps")
    for task in tasks:
        task.cancel()
    queues = Queues()
    for entering in (True, False):
        for side, watch in watches.items():
            for trace in watch.take():
                queues.see(trace, sides[side], entering)
    queues.check_empty()


@bench_test
async def traffic(dut: Any) -> None:
    """Episodes with slow, equal and fast host clocks."""
    job = BenchRun.here()
    rng = random.Random(f"crossing {job.seed}")
    ports = Ports.of(PARTS["crossing"](job.config).signature)
    coverage = Coverage(bins(all_streams(ports)), RARE)
    clocks = Clocks(dut)
    clocks.start(UNIT_PS)
    await clocks.reset(POWER_UP)
    host = Host(dut, rng)
    for period in (UNIT_PS, rng.choice(HOST_PS[: len(HOST_PS) // 8]), rng.choice(HOST_PS)):
        clocks.start(period)
        await clocks.reset(RESET)
        await episode(dut, host, clocks, job.cycles // 3, coverage)
    coverage.save(job.report_path(), part=job.part, simulator=job.simulator, seed=job.seed)
