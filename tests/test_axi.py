"""AxiLitePort and AxiLiteCrossing: every access reaches the bus once, in order, with its answer, under any pressure."""

import random
from itertools import pairwise

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator
from t3hdl.config import preset
from t3hdl.interface.signatures import AXI
from t3hdl.registers.axi import OKAY, SLVERR, AxiLitePort
from t3hdl.registers.crossing import AxiLiteCrossing

CONFIG = preset("small")
BAD = 0x800
"""Addresses from here on are answered with an error."""

LATE = (0, 0, 1, 3)
"""By how many cycles an answer may be late."""


class Registers:
    """The side of the register file: notes what was asked; answers in the cycle after it, or ``late`` cycles later."""

    def __init__(self, rng=None, late=(0,)):
        self.seen = []
        self.memory = {}
        self.rng, self.late = rng or random.Random(0), late

    async def serve(self, ctx, dut):
        answer, waits = None, 0
        while True:
            due = answer is not None and not waits
            ctx.set(dut.response_valid, due)
            ctx.set(dut.bus_ready, answer is None)
            ctx.set(dut.response_error, due and answer[0])
            ctx.set(dut.response_data, answer[1] if due else 0xBAD)
            taken = ctx.get(dut.bus_valid) and answer is None
            names = ("bus_write", "bus_privileged", "bus_address", "bus_data")
            write, privileged, address, data = (ctx.get(getattr(dut, name)) for name in names)
            waits = max(0, waits - 1)
            if due:
                answer = None
            if taken:
                waits = self.rng.choice(self.late)
                self.seen.append((write, privileged, address, data if write else None))
                error = address >= BAD
                if write and not error:
                    self.memory[address] = data
                answer = (error, 0x5555 if error else 0 if write else self.memory.get(address, 0))
            await ctx.tick()


async def send(ctx, dut, rng, channel, items, *, prefix="", domain="sync"):
    """Offers items, each held until it is taken."""
    port = {name: getattr(dut, f"{prefix}axi_{channel}{name}") for name in (*items[0], "valid", "ready")}
    for item in items:
        while rng.random() < 0.4:
            await ctx.tick(domain)
        for name, value in item.items():
            ctx.set(port[name], value)
        ctx.set(port["valid"], 1)
        while not ctx.get(port["ready"]):
            await ctx.tick(domain)
        await ctx.tick(domain)
        ctx.set(port["valid"], 0)


async def receive(ctx, dut, rng, channel, fields, count, *, prefix="", domain="sync"):
    """Takes responses with random back-pressure; a waiting one must not change."""
    got, held = [], None
    port = {name: getattr(dut, f"{prefix}axi_{channel}{name}") for name in (*fields, "valid", "ready")}
    while len(got) < count:
        ready = rng.random() < 0.5
        ctx.set(port["ready"], ready)
        item = tuple(ctx.get(port[name]) for name in fields)
        valid = ctx.get(port["valid"])
        if held is not None:
            assert valid and item == held, f"{channel} changed while it waited"
        held = item if valid and not ready else None
        if valid and ready:
            got.append(item)
        await ctx.tick(domain)
    ctx.set(port["ready"], 0)
    return got


def bench(run, *arguments, results=None, key=None, **keywords):
    """``run(ctx, ...)`` as a testbench; what it returns becomes ``results[key]``."""

    async def testbench(ctx):
        value = await run(ctx, *arguments, **keywords)
        if results is not None:
            results[key] = value

    return testbench


def traffic(seed):
    rng = random.Random(seed)
    print(f"seed {seed}")

    def address():
        """Mostly one of a few, so that reads find what was written; sometimes any."""
        return rng.choice((0, 0x28, 0x7F8)) if rng.random() < 0.6 else rng.getrandbits(16)

    writes = [
        ({"addr": address(), "prot": rng.randrange(8)},
         {"data": rng.getrandbits(64), "strb": 0xFF if rng.random() < 0.8 else rng.randrange(255)})
        for _ in range(200)
    ]  # fmt: skip
    reads = [{"addr": address(), "prot": rng.randrange(8)} for _ in range(200)]
    return rng, writes, reads


def check(registers, writes, reads, b, r):
    expected = [(1, aw["prot"] & 1, aw["addr"], w["data"]) for aw, w in writes if w["strb"] == 0xFF]
    assert [item for item in registers.seen if item[0]] == expected
    assert [item for item in registers.seen if not item[0]] == [(0, ar["prot"] & 1, ar["addr"], None) for ar in reads]
    assert [resp for (resp,) in b] == [SLVERR if w["strb"] != 0xFF or aw["addr"] >= BAD else OKAY for aw, w in writes]
    # Replay: what each read should have seen, given the order in which the bus saw the accesses.
    memory, values = {}, []
    for write, _, address, data in registers.seen:
        if write and address < BAD:
            memory[address] = data
        elif not write:
            values.append((0, SLVERR) if address >= BAD else (memory.get(address, 0), OKAY))
    assert r == values


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
