"""The golden ControlRegisters against scenarios worked out from docs/hardware.md: who may write what, events."""

import pytest
from golden_bench import pack, unpack
from golden_registers_bench import (
    ALL_ONES,
    ARMED,
    COMPLETE,
    access,
    arm,
    control,
    is_written,
    make,
    read,
    sticky,
)
from t3hdl.interface import register_map as registers
from t3hdl.interface.layouts import Stuck, Violation

DESCRIPTOR_3 = registers.DESCRIPTOR + 3 * registers.DESCRIPTOR_STRIDE
ATTRIBUTES = registers.RANGE + 16
LOCKABLE = (
    registers.ARBITER, registers.THRESHOLDS, registers.WATCHDOG, registers.RANGE, registers.QUOTA,
    registers.PROFILE, registers.DESCRIPTOR,
)  # fmt: skip


def interrupts(bench) -> set[str]:
    """The bits of IRQ_STATUS that are set."""
    return {name for name, bit in unpack(registers.Interrupts, read(bench, registers.IRQ_STATUS)).items() if bit}


@pytest.mark.parametrize(
    ("inputs", "fields", "good"),
    [
        ({}, {"arm": 1, "descriptors": 1}, True),
        ({}, {"arm": 1, "descriptors": 5, "first": 3, "context": 2}, True),
        ({}, {"arm": 1, "descriptors": 0}, False),
        ({}, {"arm": 1, "descriptors": 6, "first": 3}, False),
        ({}, {"arm": 1, "descriptors": 127, "first": 63}, False),
        ({}, {"arm": 1, "descriptors": 1, "context": 3}, False),
        ({"init_done": 0}, {"arm": 1, "descriptors": 1}, False),
        ({"maintenance": 1}, {"arm": 1, "descriptors": 1}, False),
        ({"abort_busy": 1}, {"arm": 1, "descriptors": 1}, False),
        ({"quiesced": 1}, {"arm": 1, "descriptors": 1}, False),
        ({"context.0": ARMED}, {"arm": 1, "descriptors": 1}, False),
        ({"context.0": COMPLETE}, {"arm": 1, "descriptors": 1}, True),
        ({"context.1": ARMED}, {"arm": 1, "descriptors": 1}, True),
        ({}, {"abort": 1}, True),
        ({"context.2": ARMED, "quiesced": 1}, {"abort": 1, "context": 2, "descriptors": 127}, True),
        ({}, {"abort": 1, "context": 3}, False),
        ({"init_done": 0}, {"abort": 1}, False),
        ({"maintenance": 1}, {"abort": 1}, False),
        ({"abort_busy": 1}, {"abort": 1}, False),
        ({"init_done": 0, "maintenance": 1, "abort_busy": 1}, {"disarm": 1, "context": 15}, True),
        ({"init_done": 0, "maintenance": 1, "abort_busy": 1}, {"quiesce": 1, "context": 15}, True),
        ({"init_done": 0, "quiesced": 1}, {"resume": 1}, True),
        ({"init_done": 0}, {}, True),
        ({}, {"arm": 1, "disarm": 1, "descriptors": 1}, False),
        ({}, {"quiesce": 1, "resume": 1}, False),
        ({}, {"abort": 1, "quiesce": 1}, False),
    ],
)
def test_control(inputs, fields, good):
    bench = make()
    bench.tick(0, **inputs)
    assert is_written(bench, registers.CONTROL, control(**fields)) == good
    assert sticky(bench) == 0


@pytest.mark.parametrize(("status", "good"), [("init_done", 0), ("maintenance", 0), ("abort_busy", 0), (None, 1)])
def test_debug_select_waits_for_the_tables(status, good):
    bench = make()
    if status:
        bench.tick(0, **{status: int(status != "init_done")})
    assert is_written(bench, registers.DEBUG_SELECT, ALL_ONES) == good


@pytest.mark.parametrize(
    ("first", "count", "good"), [(0, 2, 1), (0, 3, 0), (3, 1, 0), (4, 4, 0), (5, 3, 1), (0, 8, 0), (2, 1, 0)]
)
def test_windows_of_active_contexts_do_not_overlap(first, count, good):
    bench = make()
    assert arm(bench, 0, 2, 3)
    assert arm(bench, 1, first, count) == good
    bench.tick(0, **{"context.0": COMPLETE, "context.1": 0})
    assert arm(bench, 1, first, count)


def test_a_disarm_forgets_windows_and_an_abort_does_not():
    bench = make()
    assert arm(bench, 0, 2, 3)
    assert is_written(bench, registers.CONTROL, control(abort=1, context=0))
    assert not arm(bench, 1, 4, 1), "by its status the context is active still"
    assert is_written(bench, registers.CONTROL, control(disarm=1))
    assert arm(bench, 1, 4, 1)


def test_descriptors_of_active_windows_are_locked():
    bench = make()
    assert arm(bench, 1, 2, 3)
    for number in range(8):
        address = registers.DESCRIPTOR + number * registers.DESCRIPTOR_STRIDE + 8
        assert is_written(bench, address, number) == (number not in (2, 3, 4))
    assert sticky(bench) == 1
    bench.tick(0, **{"context.1": COMPLETE})
    assert is_written(bench, DESCRIPTOR_3)
    assert sticky(bench) == 1
    assert is_written(bench, registers.CONTROL, control(disarm=1))
    assert sticky(bench) == 0


def test_ranges_quotas_and_profile_of_active_contexts_are_locked():
    bench = make()
    attributes = pack(registers.RangeAttributes, valid=1, context=2, op=1)
    assert is_written(bench, ATTRIBUTES, attributes)
    assert is_written(bench, ATTRIBUTES + registers.RANGE_STRIDE, attributes & ~1)  # not valid
    assert arm(bench, 2, 0, 1)
    locked = [registers.RANGE, registers.RANGE + 8, ATTRIBUTES, registers.QUOTA + 16, registers.PROFILE + 8 * 16]
    for address in locked:
        assert not is_written(bench, address, 0)
    for address in (ATTRIBUTES + registers.RANGE_STRIDE, registers.QUOTA + 8, registers.ARBITER, registers.WATCHDOG):
        assert is_written(bench, address, 0)
    bench.tick(0, **{"context.2": COMPLETE})
    for address in locked:
        assert is_written(bench, address, 0)


def test_an_abort_frees_the_ranges_of_its_context():
    bench = make()
    for number, context in ((0, 1), (1, 2)):
        attributes = pack(registers.RangeAttributes, valid=1, context=context)
        assert is_written(bench, ATTRIBUTES + number * registers.RANGE_STRIDE, attributes)
    assert is_written(bench, registers.CONTROL, control(abort=1, context=1))
    bench.tick(0, **{"context.1": ARMED, "context.2": ARMED})
    assert is_written(bench, registers.RANGE)
    assert not is_written(bench, registers.RANGE + registers.RANGE_STRIDE)


def test_unknown_addresses_are_no_locked_writes():
    bench = make()
    assert arm(bench, 0, 0, 8)
    for address in (registers.RANGE + 24, registers.QUOTA + 24, registers.DESCRIPTOR + 48, registers.PROFILE + 24):
        assert not is_written(bench, address)
    assert sticky(bench) == 0


def test_lock_of_the_configuration():
    bench = make()
    assert is_written(bench, registers.LOCK, pack(registers.Lock, configuration=1))
    assert is_written(bench, registers.LOCK, 0) and read(bench, registers.LOCK) == 1
    for address in LOCKABLE:
        assert is_written(bench, registers.CONTROL, control(disarm=1)) and sticky(bench) == 0
        assert not is_written(bench, address) and sticky(bench) == 1
    for address in (registers.IRQ_ENABLE, registers.IRQ_STATUS, registers.NMC_FLAGS, registers.DEBUG_SELECT):
        assert is_written(bench, address)
    assert arm(bench, 0, 0, 1)


def test_lock_for_privileged_writes():
    bench = make()
    assert is_written(bench, registers.LOCK, pack(registers.Lock, privileged=1))
    addresses = (*LOCKABLE, registers.CONTROL, registers.LOCK, registers.IRQ_STATUS, registers.IRQ_ENABLE)
    for address in addresses:
        assert not is_written(bench, address)
        assert is_written(bench, address, privileged=1)
    assert read(bench, registers.LOCK) == 2
    assert is_written(bench, registers.LOCK, 1, privileged=1)
    assert not is_written(bench, registers.ARBITER), "privilege comes first"
    assert sticky(bench) == 0
    assert not is_written(bench, registers.ARBITER, privileged=1) and sticky(bench) == 1


@pytest.mark.parametrize(
    ("name", "inputs", "before"),
    [
        ("complete", {"context.2": COMPLETE}, {}),
        ("complete", {"context.2": COMPLETE}, {"context.0": COMPLETE}),
        ("watchdog", {"stuck": pack(Stuck, valid=1)}, {}),
        ("error", {"unmatched": 1}, {}),
        ("error", {"over_count": 1}, {"unmatched": 1}),
        ("error", {"over_total": 1}, {"over_count": 1}),
        ("aborted", {"abort_busy": 0}, {"abort_busy": 1}),
        ("corrected", {"corrected": 1}, {}),
        ("uncorrectable", {"uncorrectable": 1}, {}),
    ],
)
def test_an_edge_is_an_event(name, inputs, before):
    bench = make()
    bench.tick(**before)
    assert is_written(bench, registers.IRQ_STATUS, ALL_ONES)
    assert is_written(bench, registers.IRQ_ENABLE, pack(registers.Interrupts, **{name: 1}))
    assert bench.get("interrupt") == 0
    bench.tick(**inputs)
    assert bench.get("interrupt") == 1
    assert interrupts(bench) == {name}
    assert is_written(bench, registers.IRQ_STATUS, ALL_ONES)
    assert (bench.get("interrupt"), interrupts(bench)) == (0, set()), "a level is no event"


def test_levels_in_the_first_cycle_are_events():
    bench = make()
    bench.tick(unmatched=1, **{"context.0": COMPLETE})
    assert interrupts(bench) == {"error", "complete"}


def test_a_disabled_interrupt_waits_and_an_event_wins_over_its_clearing():
    bench = make()
    bench.tick(corrected=1)
    assert bench.get("interrupt") == 0
    bench.tick(corrected=0)
    clear = {"bus_valid": 1, "bus_write": 1, "bus_address": registers.IRQ_STATUS, "bus_data": ALL_ONES}
    bench.tick(corrected=1, **clear)
    bench.tick(bus_valid=0)
    assert interrupts(bench) == {"corrected"}
    assert is_written(bench, registers.IRQ_ENABLE, ALL_ONES)
    assert bench.get("interrupt") == 1


def test_a_locked_write_is_an_event():
    bench = make()
    assert is_written(bench, registers.LOCK, 1)
    assert not is_written(bench, registers.PROFILE)
    assert interrupts(bench) == {"locked_write"}
    assert is_written(bench, registers.IRQ_STATUS, ALL_ONES)
    assert (interrupts(bench), sticky(bench)) == (set(), 1)


def test_violations_are_counted_and_the_first_is_kept():
    bench = make()
    first, second = pack(Violation, line=5, context=2, source=9), pack(Violation, line=6)
    for number, record in ((3, first), (255, second)):
        bench.tick(violations=number, violation=record)
    bench.tick(violations=0)
    assert read(bench, registers.VIOLATIONS) == 258
    record = pack(registers.ViolationRecord, line=5, context=2, source=9, valid=1)
    assert read(bench, registers.VIOLATION) == record
    assert unpack(registers.Errors, read(bench, registers.ERRORS))["violation"] == 1
    assert interrupts(bench) == {"violation"}
    bench.tick(bus_valid=1, bus_write=1, bus_address=registers.CONTROL, bus_data=control(disarm=1), violations=7)
    bench.tick(bus_valid=0, violations=2, violation=second)  # of the cycle of the pulse: counts
    bench.tick(violations=0)
    assert read(bench, registers.VIOLATIONS) == 2
    assert unpack(registers.ViolationRecord, read(bench, registers.VIOLATION))["line"] == 6
    assert interrupts(bench) == {"violation"}, "a disarm keeps the events"


def test_nmc_flags_are_sticky():
    bench = make()
    bench.tick(nmc_flags=0b10010)
    bench.tick(nmc_flags=0b00001)
    bench.tick(nmc_flags=0)
    assert read(bench, registers.NMC_FLAGS) == 0b10011
    write = {"bus_valid": 1, "bus_write": 1, "bus_address": registers.NMC_FLAGS, "bus_data": 0b00011}
    bench.tick(nmc_flags=0b00001, **write)
    bench.tick(nmc_flags=0, bus_valid=0)
    assert read(bench, registers.NMC_FLAGS) == 0b10001


def test_a_disarm_keeps_configuration_events_and_flags():
    bench = make()
    values = {registers.ARBITER: 5, registers.WATCHDOG: 6, registers.QUOTA + 8: 7, registers.IRQ_ENABLE: 255}
    for address, value in values.items():
        assert is_written(bench, address, value)
    assert is_written(bench, ATTRIBUTES, pack(registers.RangeAttributes, valid=1, context=1))
    bench.tick(nmc_flags=1, corrected=1)
    bench.tick(nmc_flags=0)
    assert is_written(bench, registers.CONTROL, control(disarm=1))
    assert {address: read(bench, address) for address in values} == values
    assert (read(bench, registers.NMC_FLAGS), interrupts(bench)) == (1, {"corrected"})
    bench.tick(0, **{"context.1": ARMED})
    assert access(bench, registers.RANGE, 0)[0] == 1, "the range is valid still"
