"""ControlRegisters: which writes of CONTROL are good, and which registers are locked when, and for whom."""

import pytest
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Op
from t3hdl.interface.words import WORD_BYTES

from tests.contract.registers.scene import ALL_ONES, ARMED, COMPLETE, Registers, word

ATTRIBUTES = regs.RANGE_ATTRIBUTES
UPDATES = (Op.STORE, Op.ADD, Op.MIN, Op.MAX)
LOCKABLE = (
    regs.ARBITER, regs.THRESHOLDS, regs.WATCHDOG, regs.TILE_MARKS, regs.RANGE, regs.QUOTA, regs.PROFILE,
    regs.DESCRIPTOR,
)  # fmt: skip

BUSY = {
    "init_done": 0, "maintenance": 1, "abort_busy": 1, "pending": 3, "context_0": ARMED | {"outstanding": 1},
}  # fmt: skip
"""Everything that refuses a disarm."""


def give_range(part: Registers, number: int, *, context: int, valid: int = 1) -> None:
    attributes = word(regs.RangeAttributes, valid=valid, context=context, op=1)
    assert part.writes(ATTRIBUTES + number * regs.RANGE_STRIDE, attributes)


@pytest.mark.parametrize(
    ("inputs", "fields", "good"),
    [
        ({}, {"arm": 1, "descriptors": 1}, True),
        ({}, {"arm": 1, "descriptors": 5, "first": 3, "context": 1}, True),
        ({}, {"arm": 1, "descriptors": 8, "context": 1}, True),
        ({}, {"arm": 1, "descriptors": 1, "first": 7, "context": 1}, True),
        ({}, {"arm": 1, "descriptors": 0}, False),
        ({}, {"arm": 1, "descriptors": 9}, False),
        ({}, {"arm": 1, "descriptors": 1, "first": 8}, False),
        ({}, {"arm": 1, "descriptors": 6, "first": 3}, False),
        ({}, {"arm": 1, "descriptors": 127, "first": 63}, False),
        ({}, {"arm": 1, "descriptors": 1, "context": 2}, False),
        ({"init_done": 0}, {"arm": 1, "descriptors": 1}, False),
        ({"maintenance": 1}, {"arm": 1, "descriptors": 1}, False),
        ({"abort_busy": 1}, {"arm": 1, "descriptors": 1}, False),
        ({"quiesced": 1}, {"arm": 1, "descriptors": 1}, False),
        ({"context_0": ARMED}, {"arm": 1, "descriptors": 1}, False),
        ({"context_1": ARMED}, {"arm": 1, "descriptors": 1, "context": 1}, False),
        ({"context_0": COMPLETE}, {"arm": 1, "descriptors": 1}, True),
        ({"context_1": ARMED}, {"arm": 1, "descriptors": 1}, True),
        ({}, {"abort": 1}, True),
        ({"context_1": ARMED, "quiesced": 1}, {"abort": 1, "context": 1, "descriptors": 127}, True),
        ({}, {"abort": 1, "context": 2}, False),
        ({"init_done": 0}, {"abort": 1}, False),
        ({"maintenance": 1}, {"abort": 1}, False),
        ({"abort_busy": 1}, {"abort": 1}, False),
        ({"pending": 0b01}, {"arm": 1, "descriptors": 1}, False),
        ({"pending": 0b10}, {"arm": 1, "descriptors": 1}, True),
        ({"pending": 0b100}, {"arm": 1, "descriptors": 1, "context": 2}, False),
        ({"context_0": {"outstanding": 1 << 15}}, {"arm": 1, "descriptors": 1}, True),
        ({"init_done": 0, "quiesced": 1}, {"disarm": 1, "context": 15}, True),
        ({"context_0": COMPLETE}, {"disarm": 1}, True),
        ({"maintenance": 1}, {"disarm": 1}, False),
        ({"abort_busy": 1}, {"disarm": 1}, False),
        ({"context_1": ARMED}, {"disarm": 1}, False),
        ({"pending": 0b10}, {"disarm": 1}, False),
        ({"context_1": COMPLETE | {"outstanding": 1 << 15}}, {"disarm": 1}, False),
        (BUSY, {"disarm": 1, "forced": 1, "context": 15}, True),
        (BUSY, {"disarm": 1, "forced": 1, "arm": 1, "descriptors": 1}, False),
        ({"init_done": 0, "maintenance": 1, "abort_busy": 1}, {"quiesce": 1, "context": 15}, True),
        ({"init_done": 0, "quiesced": 1}, {"resume": 1}, True),
        ({"init_done": 0}, {}, True),
        ({}, {"arm": 1, "disarm": 1, "descriptors": 1}, False),
        ({}, {"disarm": 1, "resume": 1}, False),
        ({}, {"quiesce": 1, "resume": 1}, False),
        ({}, {"abort": 1, "quiesce": 1}, False),
    ],
)
def test_control(backend, inputs, fields, good):
    part = Registers(backend, **inputs)
    assert part.controls(**fields) == good
    assert not part.locked_write()


def test_debug_select_waits_for_the_tables(backend):
    for inputs, good in (({"init_done": 0}, 0), ({"maintenance": 1}, 0), ({"abort_busy": 1}, 0), ({"quiesced": 1}, 1)):
        part = Registers(backend, **inputs)
        assert part.writes(regs.DEBUG_SELECT, ALL_ONES) == good


@pytest.mark.parametrize(("first", "count", "good"), [
    (0, 2, 1), (0, 3, 0), (3, 1, 0), (4, 1, 0), (4, 4, 0), (5, 3, 1), (0, 8, 0), (1, 6, 0), (2, 1, 0),
])  # fmt: skip
def test_windows_of_active_contexts_do_not_overlap(backend, first, count, good):
    """A context that is complete, and the own window of the last arm, are in nobody's way."""
    part = Registers(backend)
    assert part.arm(0, 2, 3)
    assert part.arm(1, first, count) == good
    part.show(context_0=COMPLETE, context_1={})
    assert part.arm(1, first, count)
    part.show(context_1={})
    assert part.arm(0, 2, 3)


def test_a_forced_disarm_forgets_windows_and_an_abort_does_not(backend):
    part = Registers(backend)
    assert part.arm(0, 2, 3)
    assert part.controls(abort=1, context=0)
    assert not part.arm(1, 4, 1), "by its status the context is active still"
    assert not part.controls(disarm=1)
    assert part.controls(disarm=1, forced=1)
    assert not part.arm(0, 4, 1), "likewise"
    assert part.arm(1, 4, 1)


def test_a_disarm_forgets_windows(backend):
    part = Registers(backend)
    assert part.arm(0, 2, 3)
    part.show(context_0=COMPLETE)
    assert part.controls(disarm=1)
    part.show(context_0=ARMED)
    assert part.arm(1, 4, 1)


def test_descriptors_of_active_windows_are_locked(backend):
    part = Registers(backend)
    assert part.arm(1, 2, 3)
    for number in range(8):
        for place in (0, regs.DESCRIPTOR_WORDS - 1):
            address = regs.DESCRIPTOR + number * regs.DESCRIPTOR_STRIDE + WORD_BYTES * place
            assert part.writes(address, number) == (number not in (2, 3, 4))
    part.show(context_1=COMPLETE)
    assert part.writes(regs.DESCRIPTOR + 3 * regs.DESCRIPTOR_STRIDE)
    assert part.locked_write()
    assert part.controls(disarm=1)
    assert not part.locked_write()


def test_ranges_quotas_and_profile_of_active_contexts_are_locked(backend):
    """Again after each disarm: it keeps whose the ranges are."""
    part = Registers(backend)
    give_range(part, 0, context=1)
    give_range(part, 1, context=1, valid=0)
    assert part.arm(1, 0, 1)
    for address in (ATTRIBUTES + regs.RANGE_STRIDE, regs.QUOTA, *LOCKABLE[:3]):
        assert part.writes(address)
    assert not part.locked_write()
    last = regs.PROFILE + 8 * (3 * 16 + 1)
    locked = [regs.RANGE, regs.RANGE_LIMIT, ATTRIBUTES, regs.QUOTA + regs.QUOTA_STRIDE, regs.PROFILE, last]
    locked.append(regs.TILE_MARKS)
    for address in locked:
        assert not part.writes(address)
        assert "locked_write" in part.interrupts()
        assert part.writes(regs.IRQ_STATUS, ALL_ONES)
        assert (part.interrupts(), part.locked_write()) == (set(), True), "both are cleared apart"
        part.show(context_1=COMPLETE)
        assert part.controls(disarm=1)
        part.show(context_1=ARMED)
        assert not part.locked_write()
    part.show(context_1=COMPLETE)
    for address in locked:
        assert part.writes(address)


def test_a_forced_disarm_frees_every_range(backend):
    part = Registers(backend)
    for number in range(2):
        give_range(part, number, context=number)
    part.show(context_0=ARMED, context_1=ARMED)
    assert not any(part.writes(regs.RANGE + number * regs.RANGE_STRIDE) for number in range(2))
    assert part.controls(disarm=1, forced=1)
    assert all(part.writes(regs.RANGE + number * regs.RANGE_STRIDE) for number in range(2))


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("op", range(8))
def test_a_range_in_use_has_the_operation_of_an_update(backend, number, op):
    part = Registers(backend)
    address = ATTRIBUTES + number * regs.RANGE_STRIDE
    attributes = {"op": op, "context": 1, "epoch": 255, "dtype": 3}
    assert part.writes(address, word(regs.RangeAttributes, valid=1, **attributes)) == (op in UPDATES)
    assert part.writes(address, word(regs.RangeAttributes, valid=0, **attributes))
    assert part.writes(address - WORD_BYTES, word(regs.RangeAttributes, valid=1, **attributes)), "it is the limit"
    assert not part.writes(address, word(regs.RangeAttributes, valid=1, op=Op.ADD, context=2)), "there is none"
    assert not part.locked_write()


def test_an_abort_frees_the_ranges_of_its_context(backend):
    part = Registers(backend)
    give_range(part, 0, context=1)
    give_range(part, 1, context=0)
    assert part.controls(abort=1, context=1)
    part.show(context_0=ARMED, context_1=ARMED)
    assert part.writes(regs.RANGE)
    assert not part.writes(regs.RANGE + regs.RANGE_STRIDE)


def test_unknown_addresses_are_no_locked_writes(backend):
    part = Registers(backend)
    assert part.arm(0, 0, 8)
    for address in (regs.RANGE + 24, regs.QUOTA + 16, regs.DESCRIPTOR + 48, regs.PROFILE + 16):
        assert not part.writes(address)
    assert not part.locked_write()


def test_lock_of_the_configuration(backend):
    """Until reset, whoever is active; CONTROL and what is of events stay free."""
    part = Registers(backend)
    assert part.writes(regs.LOCK, word(regs.Lock, configuration=1))
    assert part.writes(regs.LOCK, 0) and part.read(regs.LOCK) == 1
    for address in (
        *LOCKABLE,
        ATTRIBUTES + regs.RANGE_STRIDE,
        regs.QUOTA + regs.QUOTA_STRIDE,
        regs.DESCRIPTOR_LAST + 7 * regs.DESCRIPTOR_STRIDE,
    ):
        assert part.controls(disarm=1) and not part.locked_write()
        assert not part.writes(address) and part.locked_write()
    for address in (regs.IRQ_ENABLE, regs.IRQ_STATUS, regs.NMC_FLAGS, regs.DEBUG_SELECT, regs.CONTROL):
        assert part.writes(address)
    assert part.arm(0, 0, 1)


def test_lock_for_privileged_writes(backend):
    part = Registers(backend)
    assert part.writes(regs.LOCK, word(regs.Lock, privileged=1))
    for address in (*LOCKABLE, regs.CONTROL, regs.LOCK, regs.IRQ_STATUS, regs.IRQ_ENABLE, regs.NMC_FLAGS):
        assert not part.writes(address, 0)
        assert part.writes(address, 0, privileged=1)
    assert part.writes(regs.WATCHDOG, 7, privileged=1) and not part.writes(regs.WATCHDOG, 6)
    assert (part.read(regs.WATCHDOG), part.read(regs.LOCK)) == (7, 2)
    assert part.writes(regs.LOCK, 1, privileged=1)
    assert not part.writes(regs.ARBITER), "privilege comes first"
    assert not part.locked_write()
    assert not part.writes(regs.ARBITER, privileged=1) and part.locked_write()
