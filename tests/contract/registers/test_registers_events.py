"""ControlRegisters: interrupts, refused writes and exception flags, and what a disarm clears of them."""

import pytest
from t3hdl.interface import register_map as regs

from tests.contract.registers.scene import ALL_ONES, ARMED, COMPLETE, Registers, control, word

REFUSALS = {
    "violation": (regs.VIOLATION, regs.VIOLATIONS),
    "stale_update": (regs.STALE_UPDATE, regs.STALE_UPDATES),
}
"""Each kind of refused writes, by its input: the register of the first, and that of their number."""


@pytest.mark.parametrize(
    ("name", "inputs", "before"),
    [
        ("complete", {"context_1": COMPLETE}, {}),
        ("complete", {"context_1": COMPLETE}, {"context_0": COMPLETE}),
        ("watchdog", {"stuck": {"valid": 1}}, {}),
        ("error", {"unmatched": 1}, {}),
        ("error", {"over_count": 1}, {"unmatched": 1}),
        ("error", {"over_total": 1}, {"over_count": 1}),
        ("error", {"too_large": 1}, {"over_count": 1}),
        ("tile_twice", {"tile_twice": {"valid": 1}}, {}),
        ("corrected", {"corrected": 1}, {}),
        ("uncorrectable", {"uncorrectable": 1}, {}),
    ],
)
def test_an_edge_is_an_event(backend, name, inputs, before):
    """It sets its bit one cycle later; a one clears it, though the level is still there."""
    part = Registers(backend, **before)
    bench = part.bench
    bench.step()
    assert part.writes(regs.IRQ_STATUS, ALL_ONES)
    assert part.writes(regs.IRQ_ENABLE, word(regs.Interrupts, **{name: 1}))
    assert not bench["interrupt"]
    part.show(**inputs)
    bench.step()
    assert bench["interrupt"]
    assert part.interrupts() == {name}
    assert part.writes(regs.IRQ_STATUS, ALL_ONES ^ word(regs.Interrupts, **{name: 1}))
    assert part.interrupts() == {name}
    assert part.writes(regs.IRQ_STATUS, word(regs.Interrupts, **{name: 1}))
    assert (bench["interrupt"], part.interrupts()) == (0, set())


def test_levels_in_the_first_cycle_are_events_and_the_begin_of_an_abort_is_none(backend):
    part = Registers(backend, unmatched=1, abort_busy=1, context_0=COMPLETE)
    part.bench.step()
    assert part.interrupts() == {"error", "complete"}


def test_a_disabled_interrupt_waits_and_an_event_wins_over_its_clearing(backend):
    part = Registers(backend, corrected=1)
    bench = part.bench
    bench.step()
    assert not bench["interrupt"]
    part.show(corrected=0)
    bench.step()
    part.show(corrected=1)
    assert part.writes(regs.IRQ_STATUS, ALL_ONES)
    assert part.interrupts() == {"corrected"}
    assert part.writes(regs.IRQ_ENABLE, ALL_ONES)
    assert bench["interrupt"]


@pytest.mark.parametrize("kind", REFUSALS)
def test_refused_writes_are_counted_and_the_first_is_kept(backend, kind):
    part = Registers(backend)
    bench, record, count = part.bench, *REFUSALS[kind]
    first = {"line": 0x52_3456_789A, "context": 2, "source": 0x82, "epoch": 0xC3}
    second = {"line": 6, "context": 1, "source": 1, "epoch": 1}
    for number, refusal in ((3, first), (255, second), (128, second)):
        part.show(**{f"{kind}s": number, kind: refusal})
        bench.step()
        assert not bench["idle"]
    part.show(**{f"{kind}s": 0})
    assert part.read(count) == 386
    assert part.read(record) == 0x52_3456_789A | 2 << 39 | 0x82 << 43 | 0xC3 << 51 | 1 << 59
    for other in REFUSALS.keys() - {kind}:
        assert [part.read(address) for address in REFUSALS[other]] == [0, 0]
    assert part.read(regs.ERRORS) == word(regs.Errors, **{kind: 1})
    assert part.interrupts() == {kind}


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_disarm_clears_refusals_up_to_its_own_cycle(backend, kind):
    part = Registers(backend)
    bench, record, count = part.bench, *REFUSALS[kind]
    part.show(**{f"{kind}s": 9, kind: {"line": 5}})
    bench.step()
    part.request(regs.CONTROL, control(disarm=1))
    bench.step()
    part.show(bus_valid=0, **{f"{kind}s": 2, kind: {"line": 6}})  # of the cycle of the pulse: counts
    bench.step()
    part.show(**{f"{kind}s": 0})
    assert part.read(count) == 2
    assert part.read(record) == word(regs.RefusalRecord, line=6, valid=1)
    assert part.interrupts() == {kind}, "a disarm keeps the events"
    assert part.controls(disarm=1)
    assert [part.read(address) for address in (record, count, regs.ERRORS)] == [0, 0, 0]


def test_nmc_flags_are_sticky(backend):
    part = Registers(backend)
    bench = part.bench
    for flags in (0b10010, 0b00001, 0b00100, 0):
        part.show(nmc_flags=flags)
        bench.step()
    assert part.read(regs.NMC_FLAGS) == 0b10111
    part.request(regs.NMC_FLAGS, 0b00011)
    part.show(nmc_flags=0b00001)
    bench.step()
    part.show(nmc_flags=0, bus_valid=0)
    bench.step()
    assert part.read(regs.NMC_FLAGS) == 0b10101, "a flag of the same cycle wins"


def test_a_wrong_bit_of_an_nmc_unit_is_remembered_until_a_disarm(backend):
    part = Registers(backend)
    bench = part.bench
    part.show(nmc_uncorrectable=1)
    bench.step()
    part.show(nmc_uncorrectable=0)
    assert bench["idle"] == 0, "the interrupt comes in the next cycle"
    bench.step()
    assert bench["idle"] == 1
    assert part.read(regs.ERRORS) == word(regs.Errors, uncorrectable=1)
    assert part.interrupts() == {"uncorrectable"}
    assert part.controls(disarm=1)
    assert part.read(regs.ERRORS) == 0
    part.request(regs.CONTROL, control(disarm=1))
    part.show(nmc_uncorrectable=1)
    bench.step()
    part.show(nmc_uncorrectable=0, bus_valid=0)
    bench.step()
    assert part.read(regs.ERRORS) == word(regs.Errors, uncorrectable=1), "that of the disarm's own cycle is kept"


def test_a_disarm_keeps_configuration_events_and_flags(backend):
    part = Registers(backend, nmc_flags=1, corrected=1)
    part.bench.step()
    part.show(nmc_flags=0)
    values = {
        regs.ARBITER: 5,
        regs.THRESHOLDS: 9,
        regs.WATCHDOG: 6,
        regs.TILE_MARKS: 2,
        regs.QUOTA + regs.QUOTA_STRIDE: 7,
        regs.IRQ_ENABLE: 0x3FF,
    }
    for address, value in values.items():
        assert part.writes(address, value)
    assert part.writes(regs.RANGE_ATTRIBUTES, word(regs.RangeAttributes, valid=1, op=1, context=1))
    assert part.controls(disarm=1)
    assert {address: part.read(address) for address in values} == values
    assert (part.read(regs.NMC_FLAGS), part.interrupts()) == (1, {"corrected"})
    part.show(context_1=ARMED)
    assert not part.writes(regs.RANGE), "the range is valid still"
