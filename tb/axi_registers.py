"""A register file behind an AXI4-Lite port, a host before it, and what each access must have given."""

import random

from t3hdl.registers.axi import OKAY, SLVERR

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


def traffic(seed):
    """A random generator, and 200 writes and reads: the fields of AW, W and AR."""
    rng = random.Random(seed)
    print(f"seed {seed}")

    def address():
        """Mostly one of a few, so that reads find what was written; sometimes any."""
        return rng.choice((0, 0x28, 0x7F8)) if rng.random() < 0.6 else rng.getrandbits(16)

    writes = [
        (
            {"addr": address(), "prot": rng.randrange(8)},
            {"data": rng.getrandbits(64), "strb": 0xFF if rng.random() < 0.8 else rng.randrange(255)},
        )
        for _ in range(200)
    ]
    reads = [{"addr": address(), "prot": rng.randrange(8)} for _ in range(200)]
    return rng, writes, reads


def check(registers, writes, reads, b, r):
    """Every access reached the registers once and in order, and had its answer. Raises AssertionError."""
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
