"""What the registers and tables of tracker and naive tracker have to do with each other, in every cycle.

Each function returns names and conditions of claims; together they are the invariant of an induction by one step.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.common.broadcast import control_pulses
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import COUNT_BITS, EventKind
from t3hdl.tracker.bank import EventStage, MatchedToken, row_layout
from t3hdl.tracker.chunk_counters import counted_layout
from t3hdl.tracker.entry_table import entry_layout, tile_of
from t3hdl.tracker.event_queue import Event as HeldEvent
from t3hdl.tracker.live_slots import compare_operand_of_slot
from t3hdl.tracker.tile_profile import TileLines

from ..prover.harness import Harness
from .naive_bank import KEY, NaiveBank
from .naive_tracker import NaiveTracker

Claims = Iterator[tuple[str, Value]]


def implies(premise: Any, conclusion: Any) -> Value:
    """Both of one bit."""
    return ~Value.cast(premise).bool() | Value.cast(conclusion).bool()


def conjunction(conditions: Any) -> Value:
    """Whether all are true."""
    return Cat(Value.cast(condition).bool() for condition in conditions).all()


def same_fields(one: Any, other: Any, names: Any) -> Value:
    """Whether two structures agree in fields."""
    return conjunction(one[name] == other[name] for name in names)


class Miter:
    """Pairs the state of the part in a harness with that of the naive tracker beside it."""

    def __init__(self, harness: Harness, naive: NaiveTracker, config: T3Config) -> None:
        self.harness, self.naive, self.config, self.dut = harness, naive, config, harness.dut
        self.loaded = Signal(config.chunk_window, name="loaded")
        control = control_pulses(harness.m, self.dut.config_valid, self.dut.config)
        lost = (control.arm | control.abort) & (self.dut.load.context == control.context)
        with harness.m.If(self.dut.load_valid & ~lost):
            harness.m.d.sync += self.loaded.eq(self.loaded | (1 << self.dut.load.slot))
        with harness.m.If(control.disarm):
            harness.m.d.sync += self.loaded.eq(0)

    def claims(self) -> Claims:
        """All of them."""
        for number, bank in enumerate(self.naive.banks):
            for name, condition in (*self._pipeline(number, bank), *self._table(number, bank)):
                yield f"bank {number}: {name}", condition
        for number in range(self.config.chunk_window):
            for name, condition in self._slot(number):
                yield f"slot {number}: {name}", condition
        yield from self._walk()
        yield from self._settings()

    def _in(self, name: str) -> Signal:
        return self.harness.inside[name]

    def _pipeline(self, number: int, bank: NaiveBank) -> Claims:
        """Input queue, M, R and event queue."""
        path, config = rf"bank_{number}\.", self.config
        head, full = self._in(path + "queue.o__valid"), self._in(path + "queue.full")
        payload, spare = (data.View(bank.head.shape(), self._in(path + f"queue.{n}")) for n in ("o__payload", "spare"))
        yield "input queues alike", conjunction((
            bank.waiting == head + full,
            implies(full, head),
            implies(head, payload == bank.queue[0]),
            implies(full, spare == bank.queue[1]),
        ))  # fmt: skip
        tokens = [(bank.waiting > 0, bank.queue[0]), (bank.waiting > 1, bank.queue[1])]
        tokens += [(bank.m_valid, bank.m_token), (bank.r_valid, bank.r_token)]
        low = config.tracker_banks - 1
        yield "tokens are its own", conjunction(implies(v, ((t.row ^ t.col ^ t.wf) & low) == number) for v, t in tokens)
        held = data.View(MatchedToken, self._in(path + "matched"))
        yield "M alike", self._stage(held, bank.m_valid, bank.m_token, bank.m_match, self._fetched(number, bank))
        held = data.View(row_layout(config), self._in(path + "row"))
        yield "nothing is damaged", ~(held.damaged | self._in(rf"profile\.damaged_{number}"))
        detail = bank.r_detail
        yield "R alike", self._stage(held, bank.r_valid, bank.r_token, bank.r_match, conjunction((
            detail.descriptor < config.descriptors,
            held.descriptor == detail.descriptor, held.threshold == detail.threshold,
        )))  # fmt: skip
        level, event_stage = self._in(path + "events.level"), data.View(EventStage, self._in(path + "event_stage"))
        yield "E alike", conjunction((
            event_stage.valid == bank.event_stage_valid,
            (event_stage.opens == bank.opened) & (event_stage.closes == bank.closed),
            implies(
                event_stage.opens | event_stage.closes,
                (event_stage.event.slot == bank.event_stage.slot) & self._known(bank.event_stage.slot),
            ),
            implies(
                event_stage.valid,
                same_fields(event_stage.event, bank.event_stage, HeldEvent.members)
                & (event_stage.kind == bank.event_stage.kind)
                & (bank.tile_in_e() | (event_stage.event.lines < 1 << COUNT_BITS))
                & self._known(bank.event_stage.slot),
            ),
        ))  # fmt: skip
        same = [level == bank.level, level + bank.tile_in_e() <= config.event_queue]
        for i, event in enumerate(bank.events):
            entry = data.View(HeldEvent, self._in(path + f"events.entry_{i}"))
            tile = (event.kind == EventKind.TILE) & self._known(event.slot)
            same.append(implies(level > i, same_fields(entry, event, HeldEvent.members) & tile))
        yield "event queues alike", conjunction(same)
        pending, inside = self._in(path + "overflow.pending"), self.harness.inside
        copies = [inside.table(path + rf"overflow\.{name}\.\w+\.rows") for name in ("added_to", "taken")]
        yield (
            "pending lines alike",
            conjunction(
                (pending[slot] == held.there)
                & implies(held.there, self.naive.slots[slot].valid)
                & conjunction(Mux(held.there, copy.stored(Const(slot, 6)), 0) == held.lines for copy in copies)
                for slot, held in enumerate(bank.sums)
            ),
        )

    def _known(self, slot: Value) -> Value:
        """Whether the slot has been loaded."""
        return (slot < self.config.chunk_window) & self.loaded.bit_select(slot, 1)

    def _fetched(self, number: int, bank: NaiveBank) -> Value:
        """Whether M gets the same lines from the profile, and its slot has a descriptor that exists."""
        lines = data.View(TileLines, self._in(rf"profile\.found__{number}"))
        slots = [(bank.m_match.slot == n, slot.descriptor) for n, slot in enumerate(self.naive.slots)]
        exists = conjunction(implies(here, descriptor < self.config.descriptors) for here, descriptor in slots)
        return exists & (lines.lines == bank.m_match.lines[: self.config.tile_count_bits])

    def _stage(self, held: Any, valid: Value, token: Any, match: Any, found: Value) -> Value:
        """Whether M or R hold the same token and the same of its slot; ``found`` : what else they have of a slot."""
        same = conjunction(
            (
                held.token == token,
                held.hit == match.matched,
                held.dropped == ~match.foreign,
                implies(match.matched, (held.slot == match.slot) & self._known(match.slot) & found),
            )
        )
        return (held.valid == valid) & implies(valid, same)

    def _table(self, number: int, bank: NaiveBank) -> Claims:
        """Every row that the walker after reset has written, and the row that was read."""
        path, config, dut = rf"bank_{number}\.table\.", self.config, self.dut
        inside = self.harness.inside
        maintenance = r"maintenance\."
        row = self._in(maintenance + "row")
        sweeping, reads_entry = self._in(maintenance + "sweeping"), self._in(maintenance + "reads_entry")
        selected_entry = data.View(regs.DebugSelect, self._in(maintenance + "selected_entry"))
        read = Signal(range(max(config.sets_per_bank, 2)), name=f"row_read_{number}")
        shows = Signal(name=f"row_shown_{number}")
        self.harness.m.d.comb += read.eq(Mux(bank.r_valid, bank.row_of(bank.r_token), row - 1))
        inside_table = selected_entry.row < config.sets_per_bank
        self.harness.m.d.comb += shows.eq(bank.r_valid | (sweeping & (row != 0) & (~reads_entry | inside_table)))
        with self.harness.m.If(~bank.r_valid & reads_entry):
            self.harness.m.d.comb += read.eq(selected_entry.row)
        for way in range(config.tracker_ways):
            column = inside.table(path + rf"way_{way}\.\w+\.rows")
            stored = [
                implies(
                    dut.init_done | (row > k), self._entry(column.stored(Const(k, 8)), bank.table[k][way], number, k)
                )
                for k in range(config.sets_per_bank)
            ]
            yield f"way {way} alike", conjunction(stored)
            seen = self._in(path + f"ways__{way}")
            shown = [
                implies(read == k, self._entry(seen, bank.table[k][way], number, k))
                for k in range(config.sets_per_bank)
            ]
            yield f"way {way} of the row that was read", implies(shows, conjunction(shown))
        for k, ways in enumerate(bank.table):
            twice = [a.valid & b.valid & same_fields(a, b, KEY) for a, b in combinations(ways, 2)]
            yield f"no tile has two entries in row {k}", ~Cat(twice).any()
        column = inside.table(path + r"mark_bits\.\w+\.rows")
        stored = [
            implies(dut.init_done | (row > k), column.stored(Const(k, 8)) == bank.marks[k])
            for k in range(config.sets_per_bank)
        ]
        yield "marks alike", conjunction(stored)
        yield "marks of the row that was read", implies(shows, self._in(path + "marks") == Array(bank.marks)[read])

    def _entry(self, word: Value, entry: Any, bank: int, row: int) -> Value:
        """Whether a word of the table is an entry of the naive table."""
        held = data.View(entry_layout(self.config), Value.cast(word))
        place = tile_of(self.config, held.tag, bank, Const(row, self.config.tracker_sets.bit_length()))
        same = conjunction(
            (
                same_fields(held.tag, entry, ("context", "epoch", "wf")),
                held["count"] == entry["count"],
                place[0] == entry.row,
                place[1] == entry.col,
            )
        )
        return (held.valid == entry.valid) & implies(entry.valid, same)

    def _slot(self, number: int) -> Claims:
        """The bounds of a slot while it is valid, its counts since it was loaded."""
        config, slot, inside = self.config, self.naive.slots[number], self.harness.inside
        loaded = self.loaded[number]
        yield "bounds alike", conjunction((
            self._in(r"slots\.valid")[number] == slot.valid,
            implies(slot.valid, loaded & (self._in(rf"bounds_{number}") == compare_operand_of_slot(slot))),
            implies(loaded, slot.descriptor < config.descriptors),
        ))  # fmt: skip
        details = []
        for bank in range(config.tracker_banks):
            word = inside.table(rf"details_{bank}\.\w+\.rows").stored(Const(number, 6))
            details.append(implies(loaded, word == Cat(slot.addends, slot.descriptor)))
        yield "details alike", conjunction(details)
        left, expected = (inside.table(rf"{n}\.\w+\.rows").stored(Const(number, 6)) for n in ("remaining", "expected"))
        fresh = self._in(r"counters\.fresh")[number]
        yield "counts alike", conjunction((
            implies(loaded, Mux(fresh, expected, left) == slot.left),
            self._in(r"counters\.overflow")[number] == slot.overflowed,
            self._in(r"counters\.complete")[number] == slot.complete,
            self._in(rf"open_tiles\.open_{number}") == slot.open[: config.open_tile_bits],
        ))  # fmt: skip

    def _walk(self) -> Claims:
        """The walker of reset, sweeps and debug reads."""
        naive, dut = self.naive, self.dut
        row, written, sweeping, reads_entry, selected_entry, purged, marks, until = (
            self._in(r"maintenance\." + n)
            for n in ("row", "written", "sweeping", "reads_entry", "selected_entry", "purged", "marks", "until")
        )
        resetting = (row == naive.walked) & (row < self.config.sets_per_bank) & ~sweeping & ~dut.maintenance
        yield "walkers after reset alike", Mux(dut.init_done, sweeping | (row == 0), resetting)
        there = [
            Cat(b.waiting, b.m_valid, b.r_valid, b.event_stage_valid, b.level, b.entries, *b.marks).any()
            for b in naive.banks
        ]
        yield "nothing is there while the walker of reset runs", dut.init_done | ~Cat(there).any()
        empty = ~Cat(bank.m_valid | bank.r_valid for bank in naive.banks).any()
        yield "walkers alike", conjunction((
            naive.step == Mux(sweeping, row + 1, 0),
            implies(sweeping, dut.maintenance & empty & (row <= Mux(reads_entry, 1, self.config.sets_per_bank))),
            implies(sweeping & (row != 0), written == row - 1),
        ))  # fmt: skip
        window = [naive.armed & (naive.first <= d) & (d < naive.end) for d in range(self.config.descriptors)]
        yield "requests alike", implies(dut.maintenance, conjunction((
            reads_entry == naive.looks,
            implies(reads_entry, (selected_entry == naive.place.as_value()) & (dut.debug_data == 0)),
            implies(~reads_entry, (purged == naive.swept) & (marks == Cat(window))),
        )))  # fmt: skip
        yield "aborts alike", implies(dut.abort_busy, (purged == naive.aborted_context) & (until == naive.until))
        valid, drained = self._in("drained_valid"), data.View(counted_layout(self.config), self._in("drained_event"))
        is_tile = naive.drained.kind == EventKind.TILE
        yield "drained events alike", (valid == naive.drained_valid) & implies(valid, conjunction((
            same_fields(drained, naive.drained, ("kind", "slot", "lines")), self._known(naive.drained.slot),
            implies(is_tile, same_fields(drained, naive.drained, ("row", "col", "wf"))),
            ~self._in("drained_damaged"),
        )))  # fmt: skip
        waiting = self._in(r"turns\.waiting")
        yield "chosen slots alike", (waiting == naive.chosen_valid) & implies(waiting, conjunction((
            self._in(r"turns\.slot") == naive.chosen, self._known(naive.chosen),
        )))  # fmt: skip
        begun, ended, present = self._in("begun"), self._in("ended"), [bank.entries for bank in naive.banks]
        change = sum(begun, start=Const(0)) - sum(ended, start=Const(0))
        yield "changes of entries alike", (dut.entries + change)[:16] == sum(present, start=Const(0))
        for name, turn, requesters in (
            ("turn", naive.turn, self.config.drain_turns),
            ("slots", naive.slots_turn, self.config.chunk_window),
        ):
            behind = self._in(rf"turns\.{name}\.behind")
            same = behind == Mux(turn == 0, 0, -(1 << turn))[:requesters]
            yield f"{name} alike", same & (turn < requesters)

    def _settings(self) -> Claims:
        """Profile and quotas."""
        tables = [
            self.harness.inside.table(rf"profile\.table_{b}\.\w+\.rows") for b in range(self.config.tracker_banks)
        ]
        known, same = self._in(r"profile\.written"), []
        for number in range(64):
            lines = self.naive.profile.get(number, Const(0))[: self.config.tile_count_bits]
            same += [
                Mux(known[number], table.stored(Const(number, 6)) == lines, lines == 0)
                if number in self.naive.profile
                else ~known[number]
                for table in tables
            ]
        yield "profiles alike", conjunction(same)
        ways = [self._in(rf"quotas\.ways_{c}") == most for c, most in enumerate(self.naive.ways)]
        yield "quotas alike", conjunction(ways)
