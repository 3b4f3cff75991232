"""What the registers hold and show: values that were written, status of other parts, events that software clears."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Refusal
from t3hdl.registers.registers import ControlRegisters

from ...prover.harness import Harness
from ...prover.proof import Proof

_STORED = {
    regs.TILE_MARKS: 3, regs.ARBITER: regs.Arbiter, regs.THRESHOLDS: regs.Thresholds, regs.WATCHDOG: 32,
    regs.IRQ_ENABLE: regs.Interrupts.size, regs.LOCK: regs.Lock, regs.QUOTA: regs.Quota, regs.QUOTA + 8: regs.Quota,
}  # fmt: skip
"""Registers that software writes and reads back, and their layout or width; of the quotas those of two contexts."""
_SHOWN = {
    regs.PEAK_ENTRIES: "peak_entries", regs.OVERFLOWED: "overflowed", regs.STUCK: "stuck", regs.UPDATES: "updates",
    regs.DEBUG_DATA: "debug_data", regs.TILES: "tiles", regs.TRIGGERS: "triggers", regs.PEAK_READY: "peak_ready",
    regs.COMMAND_STALL: "command_stall", regs.DONE_MASK: "done_mask", regs.POISONED: "poisoned",
    regs.TILE_TWICE: "tile_twice",
}  # fmt: skip
"""Registers that show an input."""
_REFUSALS = {
    regs.VIOLATION: "first_violation", regs.VIOLATIONS: "violation_count",
    regs.STALE_UPDATE: "first_stale", regs.STALE_UPDATES: "stale_count",
}  # fmt: skip
"""Registers that show what was refused, of which :func:`_refusals` speaks."""
_REFUSED_MAX = (1 << 32) - 1


class _Bus:
    """The last request on the bus, in the cycle of its answer."""

    def __init__(self, harness: Harness, registers: ControlRegisters) -> None:
        taken = registers.bus_valid & registers.bus_ready
        self._address = harness.past(registers.bus_address)
        self.data = harness.past(registers.bus_data)
        good = registers.response_valid & ~registers.response_error
        self.writes, self.reads = Signal(name="good_write"), Signal(name="good_read")
        harness.m.d.comb += [
            self.writes.eq(good & harness.past(taken & registers.bus_write)),
            self.reads.eq(good & harness.past(taken & ~registers.bus_write)),
        ]

    def writes_to(self, address: int) -> Value:
        """Whether it was a good write there."""
        return self.writes & (self._address == address)

    def reads_from(self, address: int) -> Value:
        """Whether it was a good read there."""
        return self.reads & (self._address == address)


@dataclass(frozen=True)
class _Refused:
    """A kind of refused writes: the names of the ports ``number`` and ``word``, and of what is kept of them."""

    number: str
    word: str
    count: str
    first: str


def _reads(config: T3Config) -> Harness:
    """The model of a stored register is what the last good write left; of the others, the input a cycle ago."""
    registers = ControlRegisters(config=config)
    harness = Harness(registers)
    bus, answer = _Bus(harness, registers), registers.response_data
    expected: dict[int, Any] = {}
    for address, layout in list(_STORED.items())[: len(_STORED) - 2 + config.contexts]:
        width = layout if isinstance(layout, int) else layout.size
        reset = regs.RESET.get(min(address, regs.QUOTA), 0)
        stored, kept = Signal(width, name=f"stored_{address:x}"), Signal(width, init=_word(layout, reset))
        new = bus.data | (kept if address == regs.LOCK else 0)
        harness.m.d.comb += stored.eq(Mux(bus.writes_to(address), new, kept))
        harness.m.d.sync += kept.eq(stored)
        expected[address] = kept  # no write is answered in the cycle before that of a read's answer
    expected |= {address: harness.past(getattr(registers, name)) for address, name in _SHOWN.items()}
    inside = harness.inside
    aborting = inside[r"aborts\.aborting"]
    expected |= {
        regs.CONTEXT + 8 * c: harness.past(Cat(each, registers.pending[c], aborting[c]))
        for c, each in enumerate(registers.context)
    }
    expected |= {address: harness.past(inside[rf"events\.{name}"]) for address, name in _REFUSALS.items()}
    for address, value in expected.items():
        harness.claim(f"{address:#06x} reads as it is", ~bus.reads_from(address) | (answer == Value.cast(value)))
    (locked,) = (register for path, register in inside.registers.items() if path.startswith("locked_write"))
    valid = regs.RefusalRecord["valid"].offset
    own = {
        "violation": inside[r"events\.first_violation"][valid], "stale_update": inside[r"events\.first_stale"][valid],
        "locked_write": locked, "abort_busy": registers.abort_busy | aborting.any(),
        "tile_twice": registers.tile_twice.valid,
        "uncorrectable": registers.uncorrectable | inside[r"events\.damage"],
    }  # fmt: skip
    for layout, address in ((regs.Status, regs.STATUS), (regs.Errors, regs.ERRORS)):
        for name, field in layout:
            bits = answer[field.offset : field.offset + field.width]
            shown = bits == harness.past(own[name] if name in own else getattr(registers, name))
            harness.claim(f"{address:#06x} shows {name}", ~bus.reads_from(address) | shown)
    quiet = registers.response_error | harness.past(registers.bus_write)
    harness.claim("no data beside an error or a write", ~registers.response_valid | ~quiet | (answer == 0))
    harness.cover("a quota that was written is read", bus.reads_from(regs.QUOTA) & (answer == 0x55))
    harness.cover("a lock is read", bus.reads_from(regs.LOCK) & (answer == 1))
    return harness


def _word(layout: Any, fields: Any) -> int:
    """The register with these fields."""
    if isinstance(layout, data.Layout) and fields:
        word: Any = layout.const(fields)
        return int(Const.cast(word).value)
    return 0


def _interrupts(config: T3Config) -> Harness:
    """One bit of each sticky register is chosen: what sets it, what clears it, what leaves it."""
    registers = ControlRegisters(config=config)
    harness = Harness(registers)
    bus = _Bus(harness, registers)
    events = _events(harness, registers)
    status, flags = harness.inside[r"events\.irq"], harness.inside[r"events\.flags"]
    for name, field in regs.Interrupts:
        _sticky(harness, name, status[field.offset], events.get(name), bus, (regs.IRQ_STATUS, field.offset))
    for bit in range(len(registers.nmc_flags)):
        _sticky(harness, f"NMC flag {bit}", flags[bit], registers.nmc_flags[bit], bus, (regs.NMC_FLAGS, bit))
    damage = harness.inside[r"events\.damage"]
    disarmed = bus.writes_to(regs.CONTROL) & bus.data[regs.Control["disarm"].offset]
    expected = harness.past(registers.nmc_uncorrectable) | (harness.past(damage) & ~disarmed)
    harness.claim("damage is that of NMC units since the last disarm, and in its cycle", damage == expected)
    harness.cover("damage is forgotten", harness.past(damage) & ~damage)
    locked = status[regs.Interrupts["locked_write"].offset]
    harness.claim(
        "locked_write rises beside an error alone",
        ~locked | harness.past(locked) | (registers.response_valid & registers.response_error),
    )
    enabled, kept = Signal(regs.Interrupts.size), Signal(regs.Interrupts.size)
    harness.m.d.comb += enabled.eq(Mux(bus.writes_to(regs.IRQ_ENABLE), bus.data, kept))
    harness.m.d.sync += kept.eq(enabled)
    harness.claim("IRQ_ENABLE is what was written", harness.inside["irq_enable"] == enabled)
    harness.claim("the interrupt is an enabled bit", registers.interrupt == (status & enabled).any())
    harness.cover("an interrupt", registers.interrupt)
    return harness


def _events(harness: Harness, registers: ControlRegisters) -> dict[str, Value]:
    """What sets the bits of IRQ_STATUS in this cycle, by docs/hardware/registers.md."""

    def rises(level: Value) -> Value:
        return level & ~harness.past(level)

    errors = (registers.unmatched, registers.over_count, registers.over_total, registers.too_large)
    return {
        "complete": Cat(rises(context.complete) for context in registers.context).any(),
        "watchdog": rises(registers.stuck.valid),
        "corrected": rises(registers.corrected),
        "uncorrectable": rises(registers.uncorrectable | harness.inside[r"events\.damage"]),
        "tile_twice": rises(registers.tile_twice.valid),
        "error": Cat(rises(each) for each in errors).any(),
        "violation": registers.violations != 0,
        "stale_update": registers.stale_updates != 0,
        "aborted": (harness.past(harness.inside[r"aborts\.aborting"]) & ~harness.inside[r"aborts\.aborting"]).any(),
    }


def _sticky(harness: Harness, name: str, bit: Value, event: Value | None, bus: _Bus, place: tuple[int, int]) -> None:
    """``bit`` is 1 after an event, else 0 after it was cleared, else as before. ``place`` : its address and number."""
    address, number = place
    cleared = bus.writes_to(address) & bus.data[number]
    if event is None:
        harness.claim(f"{name} stays until it is cleared", ~harness.past(bit) | cleared | bit)
        return
    happened = harness.past(event)
    harness.claim(f"{name}: an event wins", ~happened | bit)
    harness.claim(f"{name}: without one, cleared or as before", happened | (bit == (harness.past(bit) & ~cleared)))
    if name == "error":
        harness.cover("an event in the cycle in which its bit is cleared", happened & cleared & harness.past(bit))


def _refusals(kind: _Refused, config: T3Config) -> Harness:
    """The count of one kind of refused writes, and the first of them."""
    registers = ControlRegisters(config=config)
    harness = Harness(registers)
    bus = _Bus(harness, registers)
    control = Signal(regs.Control)
    harness.m.d.comb += control.eq(bus.data)
    disarmed = bus.writes_to(regs.CONTROL) & control.disarm
    number, refusal = getattr(registers, kind.number), getattr(registers, kind.word)
    total, kept = harness.inside[rf"events\.{kind.count}"], Signal(regs.RefusalRecord)
    harness.m.d.comb += kept.eq(harness.inside[rf"events\.{kind.first}"])
    grown = harness.past(total) + harness.past(number)
    harness.claim(
        "the count is of refused writes and stays at its maximum",
        disarmed | (total == Mux(grown > _REFUSED_MAX, _REFUSED_MAX, grown)),
    )
    harness.claim("a disarm forgets them", ~disarmed | ((total == 0) & ~kept.as_value().any()))
    was, came = harness.past(kept.valid), harness.past(number != 0)
    harness.claim("there is a first one after the first one", disarmed | (kept.valid == (was | came)))
    same = Cat(kept[name] == harness.past(kept[name]) for name, _ in Refusal).all()
    new = Cat(kept[name] == harness.past(refusal[name]) for name, _ in Refusal).all()
    harness.claim("the first one stays", disarmed | ~was | same)
    harness.claim("the first one is what was refused", disarmed | was | ~came | new)
    harness.cover("a second one", (total == 3) & kept.valid & harness.past(came))
    harness.cover("a disarm with a refused write", disarmed & came)
    return harness


_VIOLATIONS = _Refused("violations", "violation", "violation_count", "first_violation")
_STALE_UPDATES = _Refused("stale_updates", "stale_update", "stale_count", "first_stale")
_SIZES = {"small": preset("small"), "one context": preset("small", contexts=1, ranges=1)}

PROOFS = (
    Proof(
        name="registers.reads",
        invariants=(8,),
        says="What was written is read back, and what other parts show is read as it is.",
        harness=_reads,
        sizes=_SIZES,
        depth=8,
    ),
    Proof(
        name="registers.interrupts",
        invariants=(8,),
        says="An event sets its bit, also in the cycle in which software clears it; nothing else sets or clears one.",
        harness=_interrupts,
        sizes=_SIZES,
        method="induction",
        depth=2,
        cover_depth=8,
    ),
    *(
        Proof(
            name=f"registers.{name}",
            invariants=(4, 8),
            says=f"{what} are counted up to the maximum, and the first of them is kept until a disarm.",
            harness=partial(_refusals, kind),
            sizes=_SIZES,
            method="induction",
            depth=2,
            cover_depth=8,
        )
        for name, what, kind in (
            ("violations", "Writes that were refused as another context's", _VIOLATIONS),
            ("stale-updates", "Updates that were refused for their epoch", _STALE_UPDATES),
        )
    ),
)
