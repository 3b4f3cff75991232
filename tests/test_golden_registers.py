"""The golden ControlRegisters against scenarios worked out from docs/hardware.md: the bus, addresses, values."""

import numpy as np
import pytest
from golden_bench import pack, unpack
from golden_registers_bench import ALL_ONES, OWN, SMALL, access, control, is_written, make, read, sticky
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as registers
from t3hdl.interface.layouts import NEVER
from t3sim.hardware.golden.registers.state import S

RESET = {
    registers.ID: 0x5433_0003,
    registers.STATUS: 1,
    registers.ARBITER: pack(registers.Arbiter, threshold=127, starvation=64, burst=8),
    registers.THRESHOLDS: pack(registers.Thresholds, under_25=127, under_50=30, under_75=10, above=5),
    registers.VERSION: pack(registers.Version, **registers.HARDWARE_VERSION),
    registers.CAPABILITY: pack(
        registers.Capability,
        slices=4, ranges=2, contexts=3, descriptors=8, chunk_window=4, blocks=4, wavefronts=3, egress_ports=1,
        dtypes=15,
    ),
    registers.CAPABILITY_TRACKER: pack(
        registers.CapabilityTracker,
        sets=4, ways=2, banks=2, row_index_bits=1, tile_count_bits=8, chunk_count_bits=16, token_queue=8,
        event_queue=4, nmc_latency=3,
    ),
    **{registers.QUOTA + 8 * c: pack(registers.Quota, ways=16, slots=64, credits=255) for c in range(3)},
    **{registers.CONTEXT + 8 * c: 0 for c in range(3)},
    **dict.fromkeys(OWN, 0),
    **dict.fromkeys((
        registers.PEAK_ENTRIES, registers.OVERFLOWED, registers.THRESHOLD, registers.ERRORS, registers.VIOLATION,
        registers.VIOLATIONS, registers.WATCHDOG, registers.STUCK, registers.DEBUG_DATA, registers.UPDATES,
        registers.TILES, registers.TRIGGERS, registers.COMMAND_STALL, registers.PEAK_READY, registers.DONE_MASK,
        registers.POISONED,
    ), 0),
}  # fmt: skip
"""What can be read, and its value after reset, with ``init_done``."""
SHOWN = {
    registers.PEAK_ENTRIES: ("peak_entries", 16), registers.OVERFLOWED: ("overflowed", 7),
    registers.STUCK: ("stuck", 49), registers.DEBUG_DATA: ("debug_data", 64), registers.UPDATES: ("updates", 48),
    registers.TILES: ("tiles", 32), registers.TRIGGERS: ("triggers", 32),
    registers.COMMAND_STALL: ("command_stall", 48), registers.PEAK_READY: ("peak_ready", 13),
    registers.DONE_MASK: ("done_mask", 64), registers.POISONED: ("poisoned", 64),
    registers.CONTEXT + 16: ("context.2", 52),
}  # fmt: skip
"""Registers that show one input: its name and its bits."""


def writable(config: T3Config) -> set[int]:
    """All addresses that can be written, from the register map."""
    tables = {registers.RANGE + i * 32 + 8 * word for i in range(config.ranges) for word in range(3)}
    tables |= {registers.PROFILE + 8 * (edge * 16 + wf) for edge in range(4) for wf in range(config.wavefronts)}
    tables |= {registers.DESCRIPTOR + i * 64 + 8 * word for i in range(config.descriptors) for word in range(6)}
    tables |= {registers.QUOTA + 8 * c for c in range(config.contexts)}
    single = {registers.CONTROL, registers.ARBITER, registers.THRESHOLDS, registers.WATCHDOG, registers.DEBUG_SELECT}
    return tables | single | OWN


def readable(config: T3Config) -> set[int]:
    """All addresses that can be read."""
    fixed = {address for address in RESET if not registers.QUOTA <= address < registers.PROFILE}
    return fixed | {base + 8 * c for base in (registers.QUOTA, registers.CONTEXT) for c in range(config.contexts)}


def test_reset_state_is_complete():
    bench = make()
    fresh = bench.state.copy()
    first = S.arbiter  # before it parameters and the table of addresses
    bench.state[first:] = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, len(fresh) - first)
    bench.instance.reset()
    assert np.array_equal(bench.state, fresh)
    assert (bench.get("bus_ready"), bench.get("response_valid"), bench.get("config_valid")) == (1, 0, 0)
    assert (bench.get("interrupt"), bench.get("idle"), bench.get("wake_at")) == (0, 1, NEVER)
    assert {address: read(bench, address) for address in RESET} == RESET


def test_requests_every_second_cycle():
    bench = make()
    ready = []
    bench.tick(0, bus_valid=1, bus_address=registers.ID)
    for _ in range(6):
        ready.append((bench.get("bus_ready"), bench.get("response_valid")))
        bench.tick()
    assert ready == [(1, 0), (0, 1)] * 3


def test_request_during_an_answer_waits():
    bench = make()
    bench.tick(bus_valid=1, bus_address=registers.ID)
    bench.tick(bus_address=registers.CONTROL, bus_write=1, bus_data=control(disarm=1))  # not taken
    assert bench.get("config_valid") == 0
    bench.tick()  # taken here
    assert bench.get("config_valid") == 1


@pytest.mark.parametrize("config", [SMALL, T3Config(), preset("paper", ranges=4, contexts=16, wavefronts=16)])
def test_every_address_below_the_end_of_the_map(config):
    bench = make(config)
    can_write, can_read = writable(config), readable(config)
    for address in range(0, registers.CONTROL + 64, 8):
        value = control(disarm=1) if address == registers.CONTROL else 0xFEDC_BA98_7654_3210 ^ address
        value = 0 if address == registers.LOCK else value
        assert is_written(bench, address, value) == (address in can_write), hex(address)
        error, data, pulse = access(bench, address)
        assert (error, pulse) == (int(address not in can_read), None), hex(address)
        assert not error or data == 0


@pytest.mark.parametrize("low", range(1, 8))
def test_unaligned_addresses_are_errors(low):
    bench = make()
    for address in (registers.ID, registers.STATUS, registers.CONTROL, registers.RANGE, registers.DESCRIPTOR, 0xFFF8):
        assert access(bench, address + low) == (1, 0, None)
        assert not is_written(bench, address + low, control(disarm=1))
    assert sticky(bench) == 0


@pytest.mark.parametrize("address", SHOWN)
def test_status_is_shown_in_the_cycle_of_the_request(address):
    bench, (name, bits) = make(), SHOWN[address]
    value = 0x9FED_CBA9_8765_4321 & (1 << bits) - 1
    bench.tick(0, **{name: value})
    assert read(bench, address) == value
    bench.tick(bus_valid=1, bus_write=0, bus_address=address)
    bench.tick(0, **{name: 1})
    assert bench.get("response_data") == value


@pytest.mark.parametrize(
    ("address", "layout"), [(registers.STATUS, registers.Status), (registers.ERRORS, registers.Errors)]
)
def test_each_bit_of_status_and_errors(address, layout):
    own = {"locked_write", "violation"}
    for name, field in layout:
        if name not in own:
            bench = make(init_done=0)
            bench.tick(0, **{name: (1 << field.width) - 1})
            assert unpack(layout, read(bench, address)) == {other: 0 for other, _ in layout} | {
                name: (1 << field.width) - 1
            }


def test_threshold_shows_whether_it_was_chosen():
    bench = make()
    bench.tick(0, threshold=127)
    assert read(bench, registers.THRESHOLD) == 0x7F
    bench.tick(0, chosen=1, threshold=5)
    assert read(bench, registers.THRESHOLD) == 0x85


@pytest.mark.parametrize(
    ("address", "bits"),
    [
        (registers.ARBITER, 33), (registers.THRESHOLDS, 32), (registers.WATCHDOG, 32), (registers.QUOTA + 8, 20),
        (registers.IRQ_ENABLE, 8), (registers.LOCK, 2),
    ],
)  # fmt: skip
def test_named_bits_are_kept_and_the_pulse_has_the_data_as_written(address, bits):
    bench = make()
    assert is_written(bench, address, ALL_ONES)
    assert read(bench, address) == (1 << bits) - 1


def test_capability_of_other_configurations():
    bench = make(preset("fpga", count_on="performed", protect=True))
    capability = unpack(registers.Capability, read(bench, registers.CAPABILITY))
    assert {name: capability[name] for name in ("dtypes", "protect", "performed", "contexts", "blocks")} == {
        "dtypes": 1, "protect": 1, "performed": 1, "contexts": 2, "blocks": 16,
    }  # fmt: skip
    tracker = unpack(registers.CapabilityTracker, read(bench, registers.CAPABILITY_TRACKER))
    assert (tracker["sets"], tracker["ways"], tracker["nmc_latency"]) == (64, 4, 6)
