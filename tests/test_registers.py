"""ControlRegisters: every address of the map, every error rule, sticky bits, timing of response and broadcast."""

import random

import pytest
from amaranth.sim import Simulator
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.registers.registers import ControlRegisters

WRITE, READ = 1, 0
ARM, DISARM, ABORT, QUIESCE = 1, 2, 1 << 19, 1 << 20
READ_ONLY = {0x00, 0x10, 0x28, 0x30, 0x38, 0x40, 0x48, 0x50, 0x68, 0x70, 0x78, 0x88, *range(0xA0, 0xE0, 8)}
READ_WRITE = {0x18, 0x20, 0x58, 0x60, 0x80, 0x90, 0xE0}
WRITE_ONLY = {0x98, 0x2000}
SILENT = {0x58, 0x60, 0x90, 0xE0}
"""Written here, no configuration of other parts."""


def simulate(dut, testbench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


async def request(ctx, dut, write, address, value=0, *, privileged=1):
    """One request; returns (error, data, configuration write or None) and checks the cycle of each."""
    assert ctx.get(dut.bus_ready) == 1
    assert ctx.get(dut.idle) == 1
    fields = {"valid": 1, "write": write, "address": address, "data": value, "privileged": privileged}
    for port, item in fields.items():
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


async def read(ctx, dut, address):
    error, answer, broadcast = await request(ctx, dut, READ, address)
    assert (error, broadcast) == (0, None), hex(address)
    return answer


async def expect(ctx, dut, address, value, *, legal, privileged=1):
    """A write that must be good and broadcast, or refused without effect."""
    error, answer, broadcast = await request(ctx, dut, WRITE, address, value, privileged=privileged)
    assert (error, answer) == (not legal, 0), (hex(address), hex(value))
    assert broadcast == ((address, value) if legal and address not in SILENT else None), (hex(address), hex(value))


def arm(context, first, count):
    return ARM | count << 2 | first << 9 | context << 15


def activate(ctx, dut, context, *, armed=1, complete=0):
    ctx.set(dut.context[context], {"armed": armed, "complete": complete})


def tables(config: T3Config) -> tuple[set[int], set[int]]:
    """Addresses of the tables, written out by hand: (writable, readable)."""
    ranges = {0x100 + 0x20 * i + word for i in range(config.ranges) for word in (0, 8, 16)}
    quotas = {0x200 + 8 * c for c in range(config.contexts)}
    contexts = {0x280 + 8 * c for c in range(config.contexts)}
    profile = {
        0x400 + 8 * (bottom * 32 + right * 16 + wf)
        for bottom in (0, 1)
        for right in (0, 1)
        for wf in range(config.wavefronts)
    }
    descriptors = {0x1000 + 0x40 * i + 8 * word for i in range(config.descriptors) for word in range(6)}
    return ranges | quotas | profile | descriptors, quotas | contexts


def test_one_bit_of_the_address_tells_control_from_all_other_registers():
    """The parts decode no other (blocks/broadcast.py)."""
    bit = 1 << regs.CONTROL.bit_length() - 1
    every, _ = tables(preset("paper", contexts=16, ranges=4, wavefronts=16, descriptors=64))
    assert bit == regs.CONTROL
    assert [address for address in every | READ_WRITE | WRITE_ONLY if address & bit] == [regs.CONTROL]


@pytest.mark.parametrize("name", ["paper", "small"])
def test_every_address(name):
    """All aligned addresses up to 0x610, many up to 0x2400, some unaligned and high ones, for reading and writing."""
    config = preset(name)
    dut = ControlRegisters(config=config)
    written, shown = tables(config)
    seed = 11
    print(f"seed {seed}")
    rng = random.Random(seed)
    addresses = [*range(0, 0x610, 8), *rng.sample(range(0xFF8, 0x2400, 8), 200)]
    addresses += [0x1000, 0x1028, 0x1030, 0x11C0, 0x11E8, 0x1200, 0x1FE8, 0x1FF0, 0x2000]
    addresses += [0x009, 0x101, 0x204, 0x283, 0x404, 0x1004, 0x8008, 0x9000, 0xFFF8, 0x4100]

    async def testbench(ctx):
        ctx.set(dut.init_done, 1)
        for address in addresses:
            value = rng.getrandbits(64)
            if address in (regs.CONTROL, regs.LOCK):
                value = 0
            writable = address in written | READ_WRITE | WRITE_ONLY
            await expect(ctx, dut, address, value, legal=writable)
            error, _, broadcast = await request(ctx, dut, READ, address)
            assert (error, broadcast) == (address not in READ_ONLY | READ_WRITE | shown, None), hex(address)

    simulate(dut, testbench)


def test_reads():
    """Each readable register shows its fields in their places."""
    config = preset("small")
    dut = ControlRegisters(config=config)

    async def testbench(ctx):
        inputs = {
            "init_done": 1, "armed": 0, "live": 0x55, "chunks_done": 0x2A, "unmatched": 1, "over_count": 0,
            "over_total": 1, "peak_entries": 0xBEEF, "overflowed": 0x43, "threshold": 0x1E, "chosen": 1,
            "maintenance": 1, "abort_busy": 0, "quiesced": 1, "quiet": 0, "corrected": 1, "uncorrectable": 0,
            "debug_data": 0x8123_4567_89AB_CDEF, "updates": 0xFEDC_BA98_7654, "tiles": 0x1234_5678,
            "triggers": 0x9ABC_DEF0, "command_stall": 0x1111_2222_3333, "peak_ready": 0x1ABC,
            "done_mask": 0xF00F_0000_0000_0001, "poisoned": 0x0FF0_0000_0000_0002,
        }  # fmt: skip
        for name, value in inputs.items():
            ctx.set(getattr(dut, name), value)
        stuck = {"valid": 1, "descriptor": 5, "block": 3, "context": 1, "expected": 0xABCD, "seen": 0x1234}
        ctx.set(dut.stuck, stuck)
        ctx.set(dut.context[1], {"armed": 1, "complete": 0, "following": 3, "end": 9, "slots": 2, "ready": 77,
                                 "outstanding": 0x8001})  # fmt: skip
        expected = {
            0x00: 0x5433_0003, 0x40: 0x02_00_00, 0x28: 0xBEEF, 0x30: 0x43, 0x38: 0x9E, 0xA0: inputs["debug_data"],
            0x10: 1 | 0x55 << 2 | 0x2A << 9 | 1 << 16 | 1 << 18 | 1 << 20 | 1 << 22, 0x68: 1 | 1 << 2 | 1 << 5,
            0x88: 1 | 5 << 1 | 3 << 7 | 1 << 13 | 0xABCD << 17 | 0x1234 << 33,
            0xA8: inputs["updates"], 0xB0: inputs["tiles"], 0xB8: inputs["triggers"], 0xC0: inputs["command_stall"],
            0xC8: inputs["peak_ready"], 0xD0: inputs["done_mask"], 0xD8: inputs["poisoned"],
            0x288: 1 | 3 << 2 | 9 << 9 | 2 << 16 | 77 << 23 | 0x8001 << 36,
            # after reset
            0x18: 127 << 2 | 64 << 9 | 8 << 25, 0x20: 127 | 30 << 8 | 10 << 16 | 5 << 24,
            0x200: 16 | 64 << 5 | 255 << 12,
            0x70: 0, 0x78: 0, 0x80: 0, 0x60: 0, 0x90: 0, 0xE0: 0,
            # the configuration
            0x48: 4 | 2 << 7 | 2 << 10 | 8 << 15 | 4 << 22 | 4 << 29 | 2 << 36 | 1 << 41 | 15 << 45,
            0x50: 4 | 2 << 13 | 2 << 18 | 1 << 22 | 8 << 26 | 16 << 31 | 8 << 37 | 4 << 44 | 3 << 49,
        }  # fmt: skip
        for address, value in expected.items():
            assert await read(ctx, dut, address) == value, hex(address)

    simulate(dut, testbench)


def test_written_registers_read_back():
    """Only the named bits; a lock bit stays."""
    dut = ControlRegisters(config=preset("small"))
    masks = {0x18: (1 << 33) - 1, 0x20: (1 << 32) - 1, 0x80: (1 << 32) - 1, 0x60: 0xFF, 0x208: (1 << 20) - 1}

    async def testbench(ctx):
        for value in (0xDEAD_BEEF_F00D_CAFE, (1 << 64) - 1, 0):
            for address, mask in masks.items():
                await expect(ctx, dut, address, value, legal=True)
                assert await read(ctx, dut, address) == value & mask, hex(address)
        await expect(ctx, dut, regs.LOCK, 1, legal=True)
        await expect(ctx, dut, regs.LOCK, 0, legal=True)
        assert await read(ctx, dut, regs.LOCK) == 1

    simulate(dut, testbench)


def test_control_rules():
    """One action per write; an arm needs a legal, free window and a context and unit that are at rest."""
    config = preset("small")
    dut = ControlRegisters(config=config)

    async def testbench(ctx):
        async def control(value, *, legal):
            await expect(ctx, dut, regs.CONTROL, value, legal=legal)

        await control(arm(0, 0, 1), legal=False)  # before init_done
        await control(ABORT, legal=False)
        ctx.set(dut.init_done, 1)
        for first, count in ((0, 0), (0, 9), (8, 1), (1, 8), (63, 127)):
            await control(arm(0, first, count), legal=False)
        for first, count in ((0, 1), (0, 8), (7, 1)):
            await control(arm(1, first, count), legal=True)
        for value in (arm(2, 0, 1), ABORT | 2 << 15, arm(0, 0, 1) | DISARM, ABORT | QUIESCE, DISARM | 1 << 21):
            await control(value, legal=False)
        for value in (0, ABORT | 1 << 15, QUIESCE, 1 << 21, DISARM):
            await control(value, legal=True)
        for name in ("maintenance", "abort_busy", "quiesced"):
            ctx.set(getattr(dut, name), 1)
            await control(arm(0, 0, 1), legal=False)
            await control(ABORT, legal=name == "quiesced")
            await expect(ctx, dut, regs.DEBUG_SELECT, 0, legal=name == "quiesced")
            ctx.set(getattr(dut, name), 0)
        # A second context beside an active one: only outside its window.
        await control(arm(0, 2, 3), legal=True)
        activate(ctx, dut, 0)
        await control(arm(0, 5, 1), legal=False)
        for first, count, legal in ((0, 2, True), (0, 3, False), (4, 1, False), (5, 3, True), (1, 6, False)):
            await control(arm(1, first, count), legal=legal)
        activate(ctx, dut, 0, complete=1)
        await control(arm(1, 1, 6), legal=True)
        await control(arm(0, 2, 3), legal=True)

    simulate(dut, testbench)


def test_locked_tables():
    """What an active context uses cannot be written; the sticky bit and the interrupt say that it was tried."""
    dut = ControlRegisters(config=preset("small"))
    valid_for_1 = 1 | 1 << 1

    async def testbench(ctx):
        ctx.set(dut.init_done, 1)
        await expect(ctx, dut, 0x110, valid_for_1, legal=True)
        await expect(ctx, dut, regs.CONTROL, arm(1, 2, 3), legal=True)
        activate(ctx, dut, 1)
        free = (0x120, 0x130, 0x200, 0x1000, 0x1068, 0x1140, regs.ARBITER, regs.THRESHOLDS, regs.WATCHDOG)
        for address in free:
            await expect(ctx, dut, address, 0, legal=True)
        await expect(ctx, dut, 0x118, 1, legal=False)  # no register: not a locked one
        assert await read(ctx, dut, regs.ERRORS) == 0
        for address in (0x100, 0x110, 0x208, 0x400, 0x1080, 0x1128):
            await expect(ctx, dut, address, 1, legal=False)
            assert await read(ctx, dut, regs.ERRORS) == 8
            assert await read(ctx, dut, regs.IRQ_STATUS) & 1 << 7
            await expect(ctx, dut, regs.IRQ_STATUS, 1 << 7, legal=True)
            assert not await read(ctx, dut, regs.IRQ_STATUS) & 1 << 7
            await expect(ctx, dut, regs.CONTROL, DISARM, legal=True)
            assert await read(ctx, dut, regs.ERRORS) == 0
            await expect(ctx, dut, regs.CONTROL, arm(1, 2, 3), legal=False)  # still active, says the trigger
            activate(ctx, dut, 1, armed=0)
            await expect(ctx, dut, regs.CONTROL, arm(1, 2, 3), legal=True)
            activate(ctx, dut, 1)
        await expect(ctx, dut, regs.CONTROL, ABORT | 1 << 15, legal=True)  # its range is nobody's now
        await expect(ctx, dut, 0x100, 1, legal=True)
        await expect(ctx, dut, regs.LOCK, 1, legal=True)
        activate(ctx, dut, 1, armed=0)
        for address in (*free, 0x100, 0x110, 0x208, 0x400, 0x1080):
            await expect(ctx, dut, address, 0, legal=False)
        await expect(ctx, dut, regs.CONTROL, 0, legal=True)

    simulate(dut, testbench)


def test_privilege():
    """Once LOCK.privileged is set, unprivileged accesses read and do not write."""
    dut = ControlRegisters(config=preset("small"))

    async def testbench(ctx):
        await expect(ctx, dut, regs.WATCHDOG, 5, legal=True, privileged=0)
        await expect(ctx, dut, regs.LOCK, 2, legal=True, privileged=0)
        await expect(ctx, dut, regs.WATCHDOG, 6, legal=False, privileged=0)
        await expect(ctx, dut, regs.IRQ_ENABLE, 6, legal=False, privileged=0)
        await expect(ctx, dut, regs.WATCHDOG, 7, legal=True)
        error, answer, _ = await request(ctx, dut, READ, regs.WATCHDOG, privileged=0)
        assert (error, answer) == (0, 7)

    simulate(dut, testbench)


def test_interrupts():
    """An edge sets a bit, a one clears it, an edge of the same cycle wins, the line follows the enabled bits."""
    dut = ControlRegisters(config=preset("small"))

    async def testbench(ctx):
        levels = {1: dut.stuck.valid, 5: dut.corrected, 6: dut.uncorrectable}
        for bit, level in levels.items():
            ctx.set(level, 1)
            await ctx.tick()
            assert await read(ctx, dut, regs.IRQ_STATUS) == 1 << bit
            assert ctx.get(dut.interrupt) == 0
            await expect(ctx, dut, regs.IRQ_ENABLE, 1 << bit, legal=True)
            assert ctx.get(dut.interrupt) == 1
            await expect(ctx, dut, regs.IRQ_STATUS, 1 << bit, legal=True)  # the level is still there, the edge is not
            assert ctx.get(dut.interrupt) == 0
            ctx.set(level, 0)
        for name in ("unmatched", "over_count", "over_total"):
            ctx.set(getattr(dut, name), 1)
            await ctx.tick()
            ctx.set(getattr(dut, name), 0)
            await ctx.tick()
            assert await read(ctx, dut, regs.IRQ_STATUS) == 1 << 2
            await expect(ctx, dut, regs.IRQ_STATUS, 0xFF, legal=True)
        activate(ctx, dut, 1, complete=1)
        await ctx.tick()
        assert await read(ctx, dut, regs.IRQ_STATUS) == 1
        await expect(ctx, dut, regs.IRQ_STATUS, 1, legal=True)
        ctx.set(dut.abort_busy, 1)
        await ctx.tick()
        assert await read(ctx, dut, regs.IRQ_STATUS) == 0
        ctx.set(dut.abort_busy, 0)
        await ctx.tick()
        assert await read(ctx, dut, regs.IRQ_STATUS) == 1 << 4
        # The clearing write is taken in the cycle in which the next edge is seen.
        ctx.set(dut.corrected, 1)
        await expect(ctx, dut, regs.IRQ_STATUS, 0xFF, legal=True)
        assert await read(ctx, dut, regs.IRQ_STATUS) == 1 << 5

    simulate(dut, testbench)


def test_violations_and_flags():
    """The first refused write in full, the number of all; exception flags stick until they are cleared."""
    dut = ControlRegisters(config=preset("small"))

    async def testbench(ctx):
        first = {"line": 0x12_3456_789A, "context": 3, "source": 0x42}
        for violation, count in ((first, 3), ({"line": 1, "context": 1, "source": 1}, 128)):
            ctx.set(dut.violation, violation)
            ctx.set(dut.violations, count)
            await ctx.tick()
            ctx.set(dut.violations, 0)
            assert ctx.get(dut.idle) == 0
            await ctx.tick()
        assert await read(ctx, dut, regs.VIOLATION) == 0x12_3456_789A | 3 << 39 | 0x42 << 43 | 1 << 51
        assert await read(ctx, dut, regs.VIOLATIONS) == 131
        assert await read(ctx, dut, regs.ERRORS) == 1 << 4
        assert await read(ctx, dut, regs.IRQ_STATUS) == 1 << 3
        for flags in (1, 16, 4):
            ctx.set(dut.nmc_flags, flags)
            await ctx.tick()
        ctx.set(dut.nmc_flags, 0)
        assert await read(ctx, dut, regs.NMC_FLAGS) == 21
        await expect(ctx, dut, regs.NMC_FLAGS, 5, legal=True)
        assert await read(ctx, dut, regs.NMC_FLAGS) == 16
        await expect(ctx, dut, regs.CONTROL, DISARM, legal=True)
        assert (await read(ctx, dut, regs.VIOLATION), await read(ctx, dut, regs.VIOLATIONS)) == (0, 0)
        assert await read(ctx, dut, regs.NMC_FLAGS) == 16

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
