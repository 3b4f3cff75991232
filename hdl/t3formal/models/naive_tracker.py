"""The tracker once more, written from docs/hardware/tracker.md alone: what the hardware's tracker is compared with."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from t3hdl.common.broadcast import ControlPulses, control_pulses, written
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import EPOCH_BITS, TIME_BITS, EventKind
from t3hdl.interface.signatures import tracker_signature

from .naive_bank import Event, NaiveBank, lowest, state, states

Slot = data.StructLayout({
    "valid": 1, "row0": 12, "row1": 12, "col0": 12, "col1": 12, "addends": 8, "context": 4, "epoch": EPOCH_BITS,
    "descriptor": 6, "left": 32, "overflowed": 1, "complete": 1, "open": 16,
})  # fmt: skip
"""A live chunk and what is counted of it."""

Drained = data.StructLayout({**Event.members, "lines": 40})
"""What is counted for a chunk: a finished tile, or all lines that were pending."""

_LOADED = ("valid", "row0", "row1", "col0", "col1", "addends", "context", "epoch", "descriptor")
_REGISTERS = (
    "tile_done_valid", "chunk_done_valid", "entries", "peak_entries", "overflowed", "unmatched", "over_count",
    "over_total", "maintenance", "abort_busy", "debug_data", "updates", "tiles",
)  # fmt: skip
_MAX_WAYS = 16


class NaiveTracker(wiring.Component):
    """The ports of the tracker (without ``protect``), and the contract's sentences about them.

    Tables are registers that a disarm clears at once, sums are made when they are needed, nothing is shared with the
    hardware's tracker. ``idle`` is always 0. As the contract leaves open what a part does that is configured against
    the rules of ControlRegisters, so does this.

    Parameters
    ----------
    config : ``protect`` is taken as false.
    """

    def __init__(self, config: T3Config) -> None:
        super().__init__(tracker_signature(config))
        self._config = config
        self._cleared = cleared = [Value.cast(getattr(self, name)) for name in _REGISTERS]
        rows, corners = config.sets_per_bank, [bottom + right for bottom in (0, 32) for right in (0, 16)]
        self.profile = {
            corner + wf: Signal(16, name=f"profile_{corner + wf}")
            for corner in corners
            for wf in range(config.wavefronts)
        }
        self.ways = [Signal(5, init=_MAX_WAYS, name=f"ways_{i}") for i in range(config.contexts)]
        self.slots = states(cleared, "slot", config.chunk_window, Slot)
        self.banks = [NaiveBank(config, i, self.token[i], cleared) for i in range(config.tracker_banks)]
        self.drained_valid, self.drained = state(cleared, "drained_valid", 1), state(cleared, "drained", Drained)
        self.turn = state(cleared, "turn", range(config.tracker_banks + 1))
        self.chosen_valid, self.chosen = state(cleared, "chosen_valid", 1), state(cleared, "chosen", 6)
        self.slots_turn = state(cleared, "slots_turn", range(config.chunk_window))
        self.walked = state(cleared, "walked", range(rows + 1))
        # Cycles since the drained one, 0 up to it; then what was asked for.
        self.step = state(cleared, "step", range(rows + 2))
        self.armed, self.looks = states(cleared, "request", 2, 1)
        self.swept, self.aborted_context = states(cleared, "context", 2, 4)
        self.first, self.end = states(cleared, "window", 2, 8)
        self.place = state(cleared, "place", regs.DebugSelect)
        self.until = state(cleared, "until", TIME_BITS + 1)

    def elaborate(self, platform: Any) -> Module:
        """Configuration, slots, banks, events, maintenance, status; a disarm wins over all of them."""
        m = Module()
        control = control_pulses(m, self.config_valid, self.config)
        self._settings(m)
        self._initialize(m)
        ends = self._ending(m, control)
        for bank in self.banks:
            self._match(m, bank, control)
            m.d.comb += bank.ends.eq(ends)
            for number, slot in enumerate(self.slots):
                m.d.comb += [bank.valid[number].eq(slot.valid), bank.complete[number].eq(slot.complete)]
            m.d.comb += bank.ways.eq(_MAX_WAYS)
            for context, most in enumerate(self.ways):
                with m.If(bank.r_token.context == context):
                    m.d.comb += bank.ways.eq(most)
            bank.step(m)
        self._drain(m)
        self._choose(m, ends)
        self._too_many(m)
        self._count_open(m)
        self._load(m, control)
        self._maintain(m, control)
        self._abort(m, control)
        self._status(m)
        with m.If(control.disarm):
            m.d.sync += [register.eq(register.init) for register in self._cleared]
        return m

    def _settings(self, m: Module) -> None:
        """The profile by register number, and the ways that each context may use; a disarm keeps them."""
        quota = data.View(regs.Quota, self.config.data[: regs.Quota.size])
        for number, lines in self.profile.items():
            with m.If(written(self.config_valid, self.config, regs.PROFILE + 8 * number)):
                m.d.sync += lines.eq(self.config.data)
        for context, most in enumerate(self.ways):
            with m.If(written(self.config_valid, self.config, regs.QUOTA + 8 * context)):
                m.d.sync += most.eq(quota.ways)

    def _initialize(self, m: Module) -> None:
        """Counts the cycles of the walker."""
        rows = self._config.sets_per_bank
        m.d.comb += self.init_done.eq(self.walked == rows)
        with m.If(self.walked < rows):
            m.d.sync += self.walked.eq(self.walked + 1)
        for bank in self.banks:
            m.d.comb += bank.token.ready.eq(self.init_done & (bank.waiting < 2))

    def _match(self, m: Module, bank: NaiveBank, control: ControlPulses) -> None:
        """What the slots say now of the oldest token of a bank."""
        token, match = bank.head, bank.match
        lines = Signal(16, name=f"{bank.name}_lines")
        for number, value in self.profile.items():
            place = token.bottom * 32 + token.right * 16 + token.wf
            with m.If(place == number):
                m.d.comb += lines.eq(value)
        inside = [
            slot.valid
            & (slot.row0 <= token.row)
            & (token.row < slot.row1)
            & (slot.col0 <= token.col)
            & (token.col < slot.col1)
            & (slot.context == token.context)
            & (slot.epoch == token.epoch)
            for slot in self.slots
        ]
        aborted = (self.abort_busy & (token.context == self.aborted_context)) | (
            control.abort & (token.context == control.context)
        )
        m.d.comb += match.foreign.eq(~aborted)
        for number, hit in lowest(m, inside):
            with hit:
                m.d.comb += [match.slot.eq(number), match.matched.eq(~aborted), match.lines.eq(lines)]
        product = Signal(self._config.tile_count_bits, name=f"{bank.name}_product")
        m.d.comb += bank.detail.threshold.eq(product)
        for number, slot in enumerate(self.slots):
            with m.If(bank.m_match.slot == number):
                m.d.comb += [product.eq(bank.m_match.lines * slot.addends), bank.detail.descriptor.eq(slot.descriptor)]

    def _ending(self, m: Module, control: ControlPulses) -> Signal:
        """The slots that end in this cycle."""
        ends = Signal(self._config.chunk_window, name="ends")
        gone = control.arm | control.abort
        lost = gone & (self.load.context == control.context)
        for number, slot in enumerate(self.slots):
            done = self.chunk_done_valid & (self.chunk_done.slot == number)
            invalid = slot.valid & (done | (gone & (slot.context == control.context)))
            m.d.comb += ends[number].eq(invalid | (self.load_valid & ~lost & (self.load.slot == number)))
        return ends

    def _drain(self, m: Module) -> None:
        """Takes the oldest tile of a bank or what is pending for the chosen slot; and what the one of the cycle before
        does to the count of its chunk."""
        banks, event = self.banks, self.drained
        m.d.sync += self.drained_valid.eq(0)
        requesters = len(banks) + 1
        for start in range(requesters):
            order = [(start + i) % requesters for i in range(requesters)]
            there = [self.chosen_valid if who == len(banks) else banks[who].level > 0 for who in order]
            with m.If(self.turn == start):
                for place, first in lowest(m, there):
                    with first:
                        m.d.sync += [self.turn.eq((order[place] + 1) % requesters), self.drained_valid.eq(1)]
                        self._take(m, order[place])
        m.d.sync += [self.tile_done_valid.eq(0), self.chunk_done_valid.eq(0)]
        m.d.sync += [self.tile_done[field].eq(event[field]) for field in ("slot", "row", "col", "wf")]
        with m.If(self.drained_valid & (event.kind == EventKind.TILE)):
            m.d.sync += [self.tile_done_valid.eq(1), self.tiles.eq(self.tiles + 1)]
        for number, slot in enumerate(self.slots):
            with m.If(self.drained_valid & (event.slot == number)):
                self._add(m, number, slot, event)
            with m.If(self.chunk_done_valid & (self.chunk_done.slot == number)):
                m.d.sync += slot.valid.eq(0)

    def _take(self, m: Module, who: int) -> None:
        if who < len(self.banks):
            m.d.comb += self.banks[who].pop.eq(1)
            m.d.sync += [self.drained[name].eq(self.banks[who].events[0][name]) for name in Event.members]
            return
        for number in range(self._config.chunk_window):
            with m.If(self.chosen == number):
                for bank in self.banks:
                    m.d.comb += bank.collects[number].eq(1)
                lines = sum((bank.sums[number].lines for bank in self.banks), start=Const(0))
                m.d.sync += [self.drained.kind.eq(EventKind.OVERFLOW), self.drained.slot.eq(number)]
                m.d.sync += self.drained.lines.eq(lines)

    def _choose(self, m: Module, ends: Signal) -> None:
        """The slot that is collected next, of those that are pending."""
        window, free = self._config.chunk_window, Signal(name="nothing_chosen")
        collects = Cat(Cat(bank.collects[number] for bank in self.banks).any() for number in range(window))
        m.d.comb += free.eq(~self.chosen_valid | collects.any())
        with m.If(free):
            m.d.sync += self.chosen_valid.eq(0)
        with m.Elif(ends.bit_select(self.chosen, 1)):
            m.d.sync += self.chosen_valid.eq(0)
        there = [
            Cat(bank.sums[number].there for bank in self.banks).any() & ~collects[number] & ~ends[number]
            for number in range(window)
        ]
        for start in range(window):
            order = [(start + i) % window for i in range(window)]
            with m.If(free & (self.slots_turn == start)):
                for place, first in lowest(m, [there[number] for number in order]):
                    with first:
                        m.d.sync += [self.chosen_valid.eq(1), self.chosen.eq(order[place])]
                        m.d.sync += self.slots_turn.eq((order[place] + 1) % window)

    def _too_many(self, m: Module) -> None:
        """Lines that are pending, or come, for a chunk that is done."""
        for bank in self.banks:
            with m.If(bank.late):
                m.d.sync += self.over_total.eq(1)
            for number in range(self._config.chunk_window):
                done = self.chunk_done_valid & (self.chunk_done.slot == number)
                with m.If(done & (bank.sums[number].there | bank.adds[number])):
                    m.d.sync += self.over_total.eq(1)

    def _count_open(self, m: Module) -> None:
        """The open tiles of each slot; a complete chunk has none, and none of it opens."""
        for number, slot in enumerate(self.slots):
            opened, closed = (
                sum(((bank.event_stage.slot == number) & there for bank, there in changes), start=Const(0))
                for changes in (
                    [(bank, bank.opened) for bank in self.banks],
                    [(bank, bank.closed) for bank in self.banks],
                )
            )
            m.d.sync += slot.open.eq(slot.open + opened - closed)
            done = self.chunk_done_valid & (self.chunk_done.slot == number) & slot.valid
            left = slot.open[: self._config.open_tile_bits] != 0
            with m.If((done & left) | (slot.complete & (opened != 0))):
                m.d.sync += self.over_total.eq(1)

    def _add(self, m: Module, number: int, slot: Any, event: Any) -> None:
        bits = self._config.chunk_count_bits
        overflowed = Signal(name=f"overflows_{number}")
        m.d.comb += overflowed.eq(slot.overflowed | (event.kind == EventKind.OVERFLOW))
        m.d.sync += [slot.left.eq((slot.left - event.lines)[:bits]), slot.overflowed.eq(overflowed)]
        m.d.sync += self.overflowed.eq(self.overflowed + (overflowed & ~slot.overflowed))
        with m.If(slot.complete | (event.lines > slot.left)):
            m.d.sync += self.over_total.eq(1)
        with m.Elif(event.lines == slot.left):
            m.d.sync += [slot.complete.eq(1), self.chunk_done_valid.eq(1)]
            m.d.sync += [self.chunk_done.slot.eq(number), self.chunk_done.overflowed.eq(overflowed)]

    def _load(self, m: Module, control: ControlPulses) -> None:
        """Slots lose their chunk with their context, and get one by a load."""
        gone = control.arm | control.abort
        for number, slot in enumerate(self.slots):
            with m.If(gone & (slot.context == control.context)):
                m.d.sync += slot.valid.eq(0)
            lost = gone & (self.load.context == control.context)
            with m.If(self.load_valid & (self.load.slot == number) & ~lost):
                m.d.sync += [slot[field].eq(self.load[field]) for field in _LOADED]
                m.d.sync += slot.left.eq(self.load.expected[: self._config.chunk_count_bits])
                m.d.sync += [slot.overflowed.eq(0), slot.complete.eq(0), slot.open.eq(0)]

    def _maintain(self, m: Module, control: ControlPulses) -> None:
        """Sweeps through the rows, and looks at one entry."""
        rows, step, looks = self._config.sets_per_bank, self.step, self.looks
        drained = Signal()
        m.d.comb += [bank.hold.eq(self.maintenance) for bank in self.banks]
        m.d.comb += drained.eq(~Cat(bank.m_valid | bank.r_valid for bank in self.banks).any())
        with m.If(self.maintenance & (drained | (step > 0))):
            m.d.sync += step.eq(step + 1)
        with m.If(self.maintenance & (step == Mux(looks, 2, rows + 1))):
            m.d.sync += [self.maintenance.eq(0), step.eq(0)]
        with m.If(self.maintenance & looks & (step == 2)):
            m.d.sync += self.debug_data.eq(self._entry(m))
        for row in range(rows):
            with m.If(self.maintenance & ~looks & (step == row + 2)):
                for bank in self.banks:
                    bank.free(m, row, self.swept, self.armed, self.first, self.end)
        looking = written(self.config_valid, self.config, regs.DEBUG_SELECT)
        with m.If(control.arm | control.abort | looking):
            m.d.sync += [self.maintenance.eq(1), self.armed.eq(control.arm), looks.eq(looking)]
            m.d.sync += [self.swept.eq(control.context), self.place.eq(self.config.data)]
            m.d.sync += [self.first.eq(control.first), self.end.eq(control.first + control.descriptors)]
        with m.If(looking):
            m.d.sync += self.debug_data.eq(0)

    def _abort(self, m: Module, control: ControlPulses) -> None:
        """``abort_busy``, for the context that is aborted and until a token of it has certainly arrived."""
        with m.If(~self.maintenance & (self.now >= self.until)):
            m.d.sync += self.abort_busy.eq(0)
        with m.If(control.abort):
            m.d.sync += [self.abort_busy.eq(1), self.aborted_context.eq(control.context)]
            m.d.sync += self.until.eq(self.now + self._config.drain_cycles)

    def _entry(self, m: Module) -> Value:
        """The word of DEBUG_DATA for a place in the tables."""
        shown, place, banks = Signal(regs.DebugData), self.place, self.banks
        m.d.comb += shown.ready.eq(1)
        for number, bank in enumerate(banks):
            for row, entries in enumerate(bank.table):
                for way, entry in enumerate(entries):
                    here = (place.bank % len(banks) == number) & (place.row == row) & (place.way == way)
                    with m.If(here & entry.valid):
                        m.d.comb += [shown[name].eq(entry[name]) for name in entry.shape().members]
        return shown.as_value()

    def _status(self, m: Module) -> None:
        """Sums over all banks."""
        m.d.sync += self.entries.eq(sum((bank.entries for bank in self.banks), start=Const(0)))
        with m.If(self.entries > self.peak_entries):
            m.d.sync += self.peak_entries.eq(self.entries)
        m.d.sync += self.updates.eq(self.updates + sum((bank.counted for bank in self.banks), start=Const(0)))
        for bank in self.banks:
            with m.If(bank.unmatched):
                m.d.sync += self.unmatched.eq(1)
            with m.If(bank.over_count):
                m.d.sync += self.over_count.eq(1)
