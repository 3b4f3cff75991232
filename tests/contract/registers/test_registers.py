"""ControlRegisters: the bus, every address of the map, what each register shows and keeps."""

import numpy as np
import pytest
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import NEVER, Op
from t3sim.hardware.golden.registers.state import S

from tests.contract.registers.scene import ALL_ONES, COMPLETE, SMALL, Registers, control, word

READ_ONLY = {
    0x00,
    0x10,
    0x28,
    0x30,
    0x38,
    0x40,
    0x48,
    0x50,
    0x68,
    0x70,
    0x78,
    0x88,
    *range(0xA0, 0xE0, 8),
    *range(0xE8, 0x100, 8),
}
READ_WRITE = {0x08, 0x18, 0x20, 0x58, 0x60, 0x80, 0x90, 0xE0}
WRITE_ONLY = {0x98, 0x2000}
PATTERN = 0x9FED_CBA9_8765_4321
AFTER_RESET = dict.fromkeys(READ_ONLY | READ_WRITE, 0) | {
    0x00: 0x5433_0005,
    0x10: 1,
    0x18: 127 << 2 | 64 << 9 | 8 << 25,
    0x20: 127 | 30 << 8 | 10 << 16 | 5 << 24,
    0x40: 0x04_02_04,
    0x48: 4 | 2 << 7 | 2 << 10 | 8 << 15 | 4 << 22 | 4 << 29 | 2 << 36 | 1 << 41 | 15 << 45,
    0x50: 4 | 2 << 13 | 2 << 18 | 1 << 22 | 8 << 26 | 16 << 31 | 8 << 37 | 3 << 44 | 3 << 49 | 6 << 53,
    **{0x200 + 8 * c: 16 | 64 << 5 | 255 << 12 for c in range(2)},
    **{0x280 + 8 * c: 0 for c in range(2)},
}
"""What can be read, and its value after reset, with ``init_done``."""


def tables(config: T3Config) -> tuple[set[int], set[int]]:
    """Addresses of the tables, written out by hand: (writable, readable)."""
    ranges = {0x100 + 0x20 * i + word for i in range(config.ranges) for word in (0, 8, 16)}
    quotas = {0x200 + 8 * c for c in range(config.contexts)}
    contexts = {0x280 + 8 * c for c in range(config.contexts)}
    profile = {0x400 + 8 * (edge * 16 + wf) for edge in range(4) for wf in range(config.wavefronts)}
    descriptors = {0x1000 + 0x40 * i + 8 * word for i in range(config.descriptors) for word in range(6)}
    return ranges | quotas | profile | descriptors, quotas | contexts


def test_one_bit_of_the_address_tells_control_from_all_other_registers():
    """The parts decode no other (common/broadcast.py)."""
    bit = 1 << regs.CONTROL.bit_length() - 1
    every, _ = tables(preset("paper", contexts=16, ranges=4, wavefronts=16, descriptors=64))
    assert bit == regs.CONTROL
    assert [address for address in every | READ_WRITE | WRITE_ONLY if address & bit] == [regs.CONTROL]


def test_reset(backend):
    """Whatever was written and happened before."""
    part = Registers(backend)
    bench = part.bench
    fresh = bench.backend.state()
    for address in (*sorted(tables(SMALL)[0] | READ_WRITE - {regs.LOCK}), regs.LOCK):
        assert part.writes(address, legal(address, ALL_ONES))
    part.show(violations=3, stale_updates=4, nmc_flags=31, corrected=1, unmatched=1)
    bench.step()
    assert part.writes(regs.CONTROL, control(abort=1, context=1), privileged=1)
    bench.step()
    part.request(regs.CONTROL, control(arm=1, descriptors=3), privileged=1)
    bench.step()
    bench.reset()
    assert (bench["bus_ready"], bench["response_valid"], bench["config_valid"]) == (1, 0, 0)
    assert (bench["interrupt"], bench["idle"], bench["wake_at"]) == (0, 1, NEVER)
    part.show(init_done=1)
    assert bench.backend.state() == fresh
    assert {address: part.read(address) for address in AFTER_RESET} == AFTER_RESET


def test_reset_clears_random_state():
    bench = Registers("golden").bench
    fresh = bench.backend.state()
    memory = bench.backend.memory
    # before S.arbiter: parameters and the table of addresses
    memory[S.arbiter :] = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, len(memory) - S.arbiter)
    bench.reset()
    assert bench.backend.state() == fresh


def test_a_held_bus_is_served_every_second_cycle(backend):
    """What is at the bus in the cycle of an answer waits."""
    part = Registers(backend)
    bench, handshakes, taken = part.bench, [], []
    for cycle in range(12):
        part.request(regs.ARBITER, cycle)
        handshakes.append((bench["bus_ready"], bench["response_valid"], bench["config_valid"]))
        taken += [bench.fields("config")["data"]] if bench["config_valid"] else []
        bench.step()
    assert handshakes == [(1, 0, 0), (0, 1, 1)] * 6
    assert taken == [0, 2, 4, 6, 8, 10]


def legal(address: int, value: int) -> int:
    """A value for a register: this one, unless the register refuses some."""
    ranges = range(regs.RANGE_ATTRIBUTES, regs.QUOTA, regs.RANGE_STRIDE)
    attributes = dict.fromkeys(ranges, word(regs.RangeAttributes, valid=1, op=Op.ADD) | value & ~0 << 16)
    return ({regs.CONTROL: control(disarm=1), regs.LOCK: 0} | attributes).get(address, value)


def check_addresses(part: Registers, config: T3Config, addresses: list[int]) -> None:
    """Writes and reads each address."""
    written, shown = tables(config)
    for address in addresses:
        assert part.writes(address, legal(address, PATTERN ^ address)) == (
            address in written | READ_WRITE | WRITE_ONLY
        ), hex(address)
        error, data, pulse = part.access(address)
        assert (error, pulse) == (address not in READ_ONLY | READ_WRITE | shown, None), hex(address)
        assert not error or data == 0, hex(address)


def test_every_address(backend):
    """All aligned addresses of the map; unaligned ones and some beyond it are errors, and no locked writes."""
    part = Registers(backend)
    check_addresses(part, SMALL, [*range(0, 0x610, 8), *range(0xFF8, 0x1210, 8), *range(0x1FE8, 0x2040, 8)])
    check_addresses(part, SMALL, [0x2400, 0x3000, 0x4000, 0x4100, 0x8008, 0x9000, 0xFFF8])
    for address in (0x00, 0x10, 0x100, 0x200, 0x280, 0x400, 0x1000, 0x2000, 0xFFF8):
        for low in range(1, 8):
            assert part.access(address + low) == (1, 0, None)
            assert not part.writes(address + low, control(disarm=1))
    assert not part.locked_write()


@pytest.mark.own_size
@pytest.mark.parametrize("config", [
    preset("small", contexts=3, wavefronts=3), T3Config(), preset("paper", ranges=4, contexts=16, wavefronts=16),
], ids=["odd", "paper", "largest"])  # fmt: skip
def test_other_sizes(backend, config):
    """Every address (in Amaranth's simulator some of them), and what concerns the last context."""
    part = Registers(backend, config)
    low, high = range(0, 0x610, 8), range(0xFF8, 0x2040, 8)
    some = [*part.bench.random.sample(high, 150), 0x1000, 0x1FE8, 0x2000] if backend == "amaranth" else high
    check_addresses(part, config, [*low, *some])
    last = config.contexts - 1
    attributes = regs.RANGE + (config.ranges - 1) * regs.RANGE_STRIDE + 16
    owned = (
        attributes,
        regs.QUOTA + regs.QUOTA_STRIDE * last,
        regs.DESCRIPTOR + (config.descriptors - 1) * regs.DESCRIPTOR_STRIDE,
    )
    assert part.writes(attributes, word(regs.RangeAttributes, valid=1, op=Op.MAX, context=last))
    for context in range(config.contexts, 16):
        assert not part.controls(arm=1, context=context, descriptors=1)
    assert part.arm(last, 1, config.descriptors - 1)
    assert not part.controls(arm=1, context=0, descriptors=2)
    for address in owned:
        assert not part.writes(address)
    assert part.writes(regs.IRQ_STATUS, ALL_ONES)
    part.show(**{f"context_{last}": COMPLETE})
    part.bench.step()
    assert part.interrupts() == {"complete"}
    for address in owned:
        assert part.writes(address)


def test_a_read_shows_an_input_as_in_the_cycle_of_the_request(backend):
    shown = {
        0x28: ("peak_entries", 16), 0x30: ("overflowed", 7), 0x88: ("stuck", 49), 0xA0: ("debug_data", 64),
        0xA8: ("updates", 48), 0xB0: ("tiles", 32), 0xB8: ("triggers", 32), 0xC0: ("command_stall", 48),
        0xC8: ("peak_ready", 13), 0xD0: ("done_mask", 64), 0xD8: ("poisoned", 64),
        0xF8: ("tile_twice", 39), 0x280: ("context_0", 52), 0x288: ("context_1", 52),
    }  # fmt: skip
    part = Registers(backend)
    for value in (PATTERN, ALL_ONES ^ PATTERN):
        part.show(**{name: value >> shift & (1 << bits) - 1 for shift, (name, bits) in zip(range(14), shown.values())})
        for shift, (address, (_, bits)) in enumerate(shown.items()):
            assert part.read(address) == value >> shift & (1 << bits) - 1, hex(address)
    for address, (name, _) in shown.items():
        part.show(**{name: 2})
        part.request(address)
        part.bench.step()
        part.show(bus_valid=0, **{name: 1})
        assert part.bench["response_data"] == 2
        part.bench.step()


@pytest.mark.parametrize(("address", "layout"), [(regs.STATUS, regs.Status), (regs.ERRORS, regs.Errors)])
def test_each_field_of_status_and_errors(backend, address, layout):
    part = Registers(backend, init_done=0)
    for name, field in layout:
        if name not in ("locked_write", "violation", "stale_update"):
            ones = (1 << field.width) - 1
            part.show(**{name: ones})
            assert part.read(address) == ones << field.offset, name
            part.show(**{name: 0})


def test_threshold_shows_whether_it_was_chosen(backend):
    part = Registers(backend, threshold=127)
    assert part.read(regs.THRESHOLD) == 0x7F
    part.show(chosen=1, threshold=5)
    assert part.read(regs.THRESHOLD) == 0x85


def test_named_bits_are_kept_and_the_pulse_has_the_data_as_written(backend):
    part = Registers(backend)
    bits = {regs.ARBITER: 41, regs.THRESHOLDS: 64, regs.WATCHDOG: 32, regs.IRQ_ENABLE: 10, regs.TILE_MARKS: 3} | {
        regs.QUOTA + regs.QUOTA_STRIDE * c: 20 for c in range(2)
    }
    for value in (ALL_ONES, PATTERN, 0):
        for address in bits:
            assert part.writes(address, value ^ address)
        for address, width in bits.items():
            assert part.read(address) == (value ^ address) & (1 << width) - 1, hex(address)
    assert part.writes(regs.LOCK, ALL_ONES)
    assert part.read(regs.LOCK) == 3


@pytest.mark.own_size
def test_capability_of_another_configuration(backend):
    config = preset("fpga", count_on="performed", protect=True)
    part = Registers(backend, config)
    names = ("slices", "ranges", "contexts", "descriptors", "chunk_window", "blocks", "wavefronts", "egress_ports")
    assert part.read(regs.CAPABILITY) == word(
        regs.Capability, **{name: getattr(config, name) for name in names}, dtypes=1, protect=1, performed=1
    )
    names = ("row_index_bits", "tile_count_bits", "chunk_count_bits", "token_queue", "event_queue")
    assert part.read(regs.CAPABILITY_TRACKER) == word(
        regs.CapabilityTracker,
        **{name: getattr(config, name) for name in names},
        sets=64,
        ways=4,
        banks=config.tracker_banks,
        nmc_latency=6,
        tile_marks_log=10,
    )
