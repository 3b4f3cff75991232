"""AxiLitePort and AxiLiteCrossing: every access reaches the bus once, in order, with its answer, under any pressure."""

from itertools import pairwise

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator
from t3hdl.config import preset
from t3hdl.interface.signatures import AXI
from t3hdl.registers.axi import AxiLitePort
from t3hdl.registers.crossing import AxiLiteCrossing

from tb.axi_registers import LATE, Registers, check, receive, send, traffic

CONFIG = preset("small")


def bench(run, *arguments, results=None, key=None, **keywords):
    """``run(ctx, ...)`` as a testbench; what it returns becomes ``results[key]``."""

    async def testbench(ctx):
        value = await run(ctx, *arguments, **keywords)
        if results is not None:
            results[key] = value

    return testbench


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_accesses(seed):
    rng, writes, reads = traffic(seed)
    dut, registers = AxiLitePort(config=CONFIG), Registers(rng, LATE)
    results = {}

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench(registers.serve, dut), background=True)
    for channel, items in (("aw", [aw for aw, _ in writes]), ("w", [w for _, w in writes]), ("ar", reads)):
        simulator.add_testbench(bench(send, dut, rng, channel, items))
    for channel, fields, count in (("b", ("resp",), len(writes)), ("r", ("data", "resp"), len(reads))):
        simulator.add_testbench(bench(receive, dut, rng, channel, fields, count, results=results, key=channel))
    simulator.run()
    check(registers, writes, reads, results["b"], results["r"])


def test_latency_and_turns():
    """Quiet: ``latency`` cycles. A read and a write that wait together take turns."""
    dut, registers = AxiLitePort(config=CONFIG), Registers()

    async def main(ctx):
        ctx.set(dut.axi_bready, 1)
        ctx.set(dut.axi_rready, 1)
        assert ctx.get(dut.idle)
        ctx.set(dut.axi_arvalid, 1)
        cycles = 0
        while not ctx.get(dut.axi_rvalid):
            await ctx.tick()
            ctx.set(dut.axi_arvalid, 0)
            cycles += 1
        assert cycles == dut.latency
        for name in ("axi_awvalid", "axi_wvalid", "axi_arvalid"):
            ctx.set(getattr(dut, name), 1)
        ctx.set(dut.axi_wstrb, 0xFF)
        await ctx.tick().repeat(60)
        kinds = [item[0] for item in registers.seen[1:]]
        assert len(kinds) >= 12 and all(a != b for a, b in pairwise(kinds))

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench(registers.serve, dut), background=True)
    simulator.add_testbench(main)
    simulator.run()


class Crossed(wiring.Component):
    """The crossing in front of the port, with the host's clock as a domain of the simulation."""

    def __init__(self):
        self.crossing, self.port = AxiLiteCrossing(), AxiLitePort(config=CONFIG)
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.crossing, m.submodules.port = self.crossing, self.port
        for name, member in AXI.items():
            inner, outer = getattr(self.port, name), getattr(self.crossing, name)
            m.d.comb += inner.eq(outer) if member.flow == wiring.In else outer.eq(inner)
        return m


@pytest.mark.parametrize("ratio", [0.31, 1.0, 2.7])
def test_crossing(ratio):
    """Clocks of any ratio: the same accesses, each once, in order."""
    rng, writes, reads = traffic(int(10 * ratio))
    top, registers = Crossed(), Registers()
    dut, results, period = top.crossing, {}, 1e-9 * ratio

    async def clock(ctx):
        ctx.set(dut.host_rst, 1)
        for edge in range(1 << 20):
            ctx.set(dut.host_clk, edge & 1)
            ctx.set(dut.host_rst, edge < 8)
            await ctx.delay(period / 2)

    class Host:
        """Ticks of the host clock for the functions above."""

        def __init__(self, ctx):
            self.get, self.set, self._ctx = ctx.get, ctx.set, ctx

        async def tick(self, _):
            await self._ctx.negedge(dut.host_clk)

    async def hosted(ctx, run, *arguments):
        """``run`` in the host's domain, once its reset is over."""
        host = Host(ctx)
        for _ in range(12):
            await host.tick(None)
        return await run(host, dut, rng, *arguments, prefix="host_")

    simulator = Simulator(top)
    simulator.add_clock(1e-9)
    simulator.add_testbench(clock, background=True)
    simulator.add_testbench(bench(registers.serve, top.port), background=True)
    for channel, items in (("aw", [aw for aw, _ in writes]), ("w", [w for _, w in writes]), ("ar", reads)):
        simulator.add_testbench(bench(hosted, send, channel, items))
    for channel, fields, count in (("b", ("resp",), len(writes)), ("r", ("data", "resp"), len(reads))):
        simulator.add_testbench(bench(hosted, receive, channel, fields, count, results=results, key=channel))
    simulator.run()
    check(registers, writes, reads, results["b"], results["r"])
