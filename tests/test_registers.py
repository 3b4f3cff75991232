"""ControlRegisters: every address of the map, every error rule, timing of response and broadcast."""

import random

import pytest
from amaranth.sim import Simulator
from t3hdl import register_map as regs
from t3hdl.config import T3Config, preset
from t3hdl.registers import ControlRegisters

WRITE, READ = 1, 0


def simulate(dut, testbench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


async def request(ctx, dut, write, address, value=0):
    """One request; returns (error, data, configuration write or None) and checks the cycle of each."""
    assert ctx.get(dut.bus_ready) == 1
    assert ctx.get(dut.idle) == 1
    for port, item in (("valid", 1), ("write", write), ("address", address), ("data", value)):
        ctx.set(getattr(dut, f"bus_{port}"), item)
    await ctx.tick()
    assert ctx.get(dut.response_valid) == 1 and ctx.get(dut.bus_ready) == 0 and ctx.get(dut.idle) == 0
    error, answer = ctx.get(dut.response_error), ctx.get(dut.response_data)
    broadcast = None
    if ctx.get(dut.config_valid):
        broadcast = (ctx.get(dut.config.address), ctx.get(dut.config.data))
    await ctx.tick()  # the request stays on the bus, but bus_ready was 0: it is not taken again
    assert ctx.get(dut.response_valid) == 0 and ctx.get(dut.config_valid) == 0 and ctx.get(dut.bus_ready) == 1
    ctx.set(dut.bus_valid, 0)
    await ctx.tick()
    assert ctx.get(dut.response_valid) == 0
    return error, answer, broadcast


def writable_addresses(config: T3Config) -> set[int]:
    """The table part of the register map, written out by hand."""
    ranges = {0x100 + 0x20 * i + word for i in range(config.ranges) for word in (0, 8, 16)}
    profile = {
        0x400 + 8 * (bottom * 32 + right * 16 + wf)
        for bottom in (0, 1)
        for right in (0, 1)
        for wf in range(config.wavefronts)
    }
    descriptors = {0x1000 + 0x40 * i + 8 * word for i in range(config.descriptors) for word in range(6)}
    return ranges | profile | descriptors


@pytest.mark.parametrize("name", ["paper", "small"])
def test_every_address(name):
    """All aligned addresses up to 0x2400, some unaligned, and high ones, for reading and writing."""
    config = preset(name)
    dut = ControlRegisters(config=config)
    tables = writable_addresses(config)
    seed = 11
    print(f"seed {seed}")
    rng = random.Random(seed)
    addresses = [*range(0, 0x200, 8), *range(0x3F0, 0x610, 8), *rng.sample(range(0xFF8, 0x2400, 8), 200)]
    addresses += [0x1000, 0x1028, 0x1030, 0x11C0, 0x11E8, 0x1200, 0x1FE8, 0x1FF0, 0x2000]
    addresses += [0x009, 0x101, 0x404, 0x1004, 0x8008, 0x9000, 0xFFF8, 0x4100]

    async def testbench(ctx):
        ctx.set(dut.init_done, 1)
        for address in addresses:
            value = rng.getrandbits(64) & ~3 if address == regs.CONTROL else rng.getrandbits(64)
            error, answer, broadcast = await request(ctx, dut, WRITE, address, value)
            legal = address in tables or address in (regs.CONTROL, regs.ARBITER, regs.THRESHOLDS)
            assert (error, answer) == (not legal, 0), hex(address)
            assert broadcast == ((address, value) if legal else None), hex(address)
            error, _, broadcast = await request(ctx, dut, READ, address)
            legal = address in (regs.ID, regs.STATUS, regs.PEAK_ENTRIES, regs.OVERFLOWED, regs.THRESHOLD)
            assert (error, broadcast) == (not legal, None), hex(address)

    simulate(dut, testbench)


def test_reads():
    """Each readable register shows its fields in their places."""
    dut = ControlRegisters(config=preset("small"))

    async def testbench(ctx):
        inputs = {
            "init_done": 1, "armed": 0, "live": 0x55, "chunks_done": 0x2A, "unmatched": 1, "over_count": 0,
            "over_total": 1, "peak_entries": 0xBEEF, "overflowed": 0x43, "threshold": 0x1E, "chosen": 1,
        }  # fmt: skip
        for name, value in inputs.items():
            ctx.set(getattr(dut, name), value)
        assert await request(ctx, dut, READ, regs.ID) == (0, 0x5433_0001, None)
        status = 1 | 0x55 << 2 | 0x2A << 9 | 1 << 16 | 0 << 17 | 1 << 18
        assert await request(ctx, dut, READ, regs.STATUS) == (0, status, None)
        assert await request(ctx, dut, READ, regs.PEAK_ENTRIES) == (0, 0xBEEF, None)
        assert await request(ctx, dut, READ, regs.OVERFLOWED) == (0, 0x43, None)
        assert await request(ctx, dut, READ, regs.THRESHOLD) == (0, 0x9E, None)

    simulate(dut, testbench)


def test_lock_and_arm_rules():
    """Tables are locked while armed, with a sticky error; arm is refused when the contract says so."""
    config = preset("small")
    dut = ControlRegisters(config=config)
    arm, disarm = 1, 2
    locked_bit = 1 << 19

    async def expect(ctx, address, value, legal):
        error, _, broadcast = await request(ctx, dut, WRITE, address, value)
        assert error == (not legal) and broadcast == ((address, value) if legal else None), (hex(address), value)

    async def locked_write(ctx):
        error, status, _ = await request(ctx, dut, READ, regs.STATUS)
        assert error == 0
        return bool(status & locked_bit)

    async def testbench(ctx):
        await expect(ctx, regs.CONTROL, arm | 1 << 2, legal=False)  # before init_done
        ctx.set(dut.init_done, 1)
        for count in (0, config.descriptors + 1, 127):
            await expect(ctx, regs.CONTROL, arm | count << 2, legal=False)
        for count in (1, config.descriptors):
            await expect(ctx, regs.CONTROL, arm | count << 2, legal=True)
        await expect(ctx, regs.CONTROL, arm | disarm | 1 << 2, legal=False)
        await expect(ctx, regs.CONTROL, 0, legal=True)

        ctx.set(dut.armed, 1)
        await expect(ctx, regs.CONTROL, arm | 1 << 2, legal=False)
        await expect(ctx, regs.ARBITER, 1, legal=True)
        await expect(ctx, regs.THRESHOLDS, 1, legal=True)
        await expect(ctx, 0x118, 1, legal=False)  # no register: not a locked one
        assert not await locked_write(ctx)
        for address in (0x100, 0x110, 0x400, 0x588, 0x1000, 0x11E8):
            await expect(ctx, address, 1, legal=False)
            assert await locked_write(ctx)
            await expect(ctx, regs.CONTROL, disarm, legal=True)
            assert not await locked_write(ctx)
        assert (await request(ctx, dut, READ, 0x100))[0] == 1  # a refused read locks nothing
        assert not await locked_write(ctx)

    simulate(dut, testbench)


def test_back_to_back_requests():
    """A held bus is served every second cycle, in order."""
    dut = ControlRegisters(config=preset("small"))

    async def testbench(ctx):
        ctx.set(dut.bus_valid, 1)
        ctx.set(dut.bus_write, 1)
        ctx.set(dut.bus_address, regs.ARBITER)
        taken = []
        for cycle in range(12):
            ctx.set(dut.bus_data, cycle)
            await ctx.tick()
            if ctx.get(dut.config_valid):
                taken.append(ctx.get(dut.config.data))
        assert taken == [0, 2, 4, 6, 8, 10]

    simulate(dut, testbench)
