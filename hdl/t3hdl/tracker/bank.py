"""One bank of the tracker: set-associative tile counters, one token per cycle."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..common.choose import lowest_bit, popcount, sum_equals, sum_exceeds
from ..common.queues import InputQueue
from ..config import T3Config
from ..interface.layouts import COUNT_BITS, EventKind, Token
from .entry_table import EntryTable, entry_layout, table_row, tag_of
from .event_queue import Event, EventQueue
from .live_slots import SlotDetail, SlotMatch
from .pending_lines import PendingLines
from .tile_profile import TileLines

TableSweep = data.StructLayout({"clear": 1, "purge": 1, "context": 4, "read": 1})
"""What the owner does with the table while no token is in the pipeline: ``clear`` writes a row of zeros; ``read`` reads
a row; ``purge`` writes the row that was read a cycle before, without entries of ``context``."""

MatchedToken = data.StructLayout({"valid": 1, "token": Token, "hit": 1, "dropped": 1, "slot": 6})
"""Register M: a token and its live chunk; ``dropped``: it has none because of an abort."""


def row_layout(config: T3Config) -> data.StructLayout:
    """Register R: what M held, and what was read meanwhile."""
    read = {"descriptor": 6, "threshold": config.tile_count_bits, "damaged": 1}
    return data.StructLayout({**MatchedToken.members, **read})


EventStage = data.StructLayout({"valid": 1, "kind": 1, "event": Event, "opens": 1, "closes": 1})
"""Register E, the event stage: the event of the token that was in R, a finished tile or lines without an entry; whether
an entry began with the token, or its tile, which had one, was finished."""


_TO_PENDING = ("live", "ends", "done", "complete", "collect", "collected")
"""Ports of the pending lines that are the bank's."""


class TrackerBank(wiring.Component):
    """Counts the tokens of its share of the tiles: queue, match (M), table row (R), event (E). Then finished tiles go
    to the event queue, lines without an entry to the pending lines of their slot.

    Parameters
    ----------
    config : the hardware configuration.

    Members
    -------
    token : In(stream(Token)) : ready is 0 while ``walk.clear``.
    tile : Out(Token) : the tile that enters M next, to be matched by the owner in the same cycle.
    match : In : its live chunk.
    read : Out(1) : it enters M in this cycle.
    slot : Out(6) : the live chunk of the tile in M.
    detail, lines : In : of the tile in M: addends and descriptor of its chunk, lines per addend.
    event_valid, event : Out : a finished tile.
    event_taken : In(1) : it leaves.
    live, ends, done, complete : In : slots, as :class:`~.pending_lines.PendingLines` has them.
    collect, collected : In : the lines of a slot are taken.
    pending, total, total_damaged : Out : slots with lines; those of slot ``collected``; while ``collect``: are wrong.
    excess : Out(1) : lines came for a chunk that is complete.
    quotas : In : ways of a row that each context may use.
    halt : In(1) : no token enters M.
    dropping, dropped : In : tokens of context ``dropped`` that enter M in this cycle are not counted.
    drained : Out(1) : no token is in M or R.
    walk, write_row, read_row, cleared_marks : In : see :data:`TableSweep`; a purge also clears these mark bits.
    way, entry : In, Out : an entry of the row that was read last; zeros if it is not valid.
    allocated, freed : Out : an entry is allocated; ways whose entries are freed.
    opens, closes, slot_in_e : Out : an entry of this slot began, or its tile was finished, in the cycle before.
    counts, amount : Out : a token is counted, and its ``n``.
    unmatched, over_count : Out(1) : pulses; a token without a live chunk, a count above its threshold.
    poison : Out(1) : pulse; a token of slot ``poison_slot`` had an uncorrectable error and was not counted.
    corrected, uncorrectable : Out(1) : a stored word was corrected, was uncorrectable.
    busy : Out(1) : something is in the pipeline.

    Latency: 4 cycles from ``token`` to ``event``. Throughput: one token per cycle. Reset: empty.
    """

    def __init__(self, *, config: T3Config) -> None:
        row, window = range(config.sets_per_bank), config.chunk_window
        super().__init__({
            "token": In(stream.Signature(Token)), "tile": Out(Token),
            "match": In(SlotMatch), "read": Out(1), "slot": Out(6), "detail": In(SlotDetail), "lines": In(TileLines),
            "event_valid": Out(1), "event": Out(Event), "event_taken": In(1),
            "live": In(window), "ends": In(window), "done": In(window), "complete": In(window),
            "collect": In(1), "collected": In(6),
            "pending": Out(window), "total": Out(config.pending_bits), "total_damaged": Out(1), "excess": Out(1),
            "quotas": In(5).array(16), "halt": In(1), "dropping": In(1), "dropped": In(4), "drained": Out(1),
            "walk": In(TableSweep), "write_row": In(row), "read_row": In(row), "cleared_marks": In(config.descriptors),
            "way": In(4), "entry": Out(entry_layout(config)),
            "allocated": Out(1), "freed": Out(config.tracker_ways), "counts": Out(1), "amount": Out(10),
            "opens": Out(1), "closes": Out(1), "slot_in_e": Out(6),
            "unmatched": Out(1), "over_count": Out(1),
            "poison": Out(1), "poison_slot": Out(6), "corrected": Out(1), "uncorrectable": Out(1), "busy": Out(1),
        })  # fmt: skip
        self._parameters = config

    def elaborate(self, platform: Any) -> Module:
        """The pipeline: either every stage moves, or (event queue full) every stage and the row that was read hold."""
        m = Module()
        config, walk = self._parameters, self.walk
        m.submodules.queue = queue = InputQueue(Token)
        m.submodules.table = table = EntryTable(config=config)
        m.submodules.events = events = EventQueue(config=config)
        m.submodules.overflow = overflow = PendingLines(config=config)
        matched, row = Signal(MatchedToken, name="matched"), Signal(row_layout(config), name="row")
        event_stage = Signal(EventStage, name="event_stage")
        advance, accepts_token, full, tile_told = Signal(), Signal(), Signal(), Signal()

        m.d.comb += [
            queue.i.payload.eq(self.token.payload),
            queue.i.valid.eq(self.token.valid & ~walk.clear),
            self.token.ready.eq(queue.i.ready & ~walk.clear),
            self.tile.eq(queue.o.payload),
            tile_told.eq(event_stage.valid & (event_stage.kind == EventKind.TILE)),
            # A tile in E has its place in the queue already. No sum: its carries would be in front of everything.
            full.eq((events.level == config.event_queue) | ((events.level == config.event_queue - 1) & tile_told)),
            advance.eq(~row.valid | ~full),
            self.event_valid.eq(events.valid),
            self.event.eq(events.head),
            events.push.eq(tile_told),
            events.event.eq(event_stage.event),
            events.pop.eq(self.event_taken),
            queue.o.ready.eq(advance & ~self.halt),
            accepts_token.eq(queue.o.valid & queue.o.ready),
            self.read.eq(accepts_token),
            self.slot.eq(matched.slot),
            table.read.eq((advance & matched.valid) | walk.read),
            # By a register of the bank: `walk.read` comes late.
            table.read_row.eq(Mux(matched.valid, table_row(config, matched.token), self.read_row)),
            self.drained.eq(~matched.valid & ~row.valid),
            # Also for the clock gates of the simulation: `opens` needs a clock to fall again.
            self.busy.eq(
                Cat(queue.o.valid, matched.valid, row.valid, event_stage.valid, event_stage.opens, events.level).any()
            ),
            overflow.add.eq(event_stage.valid & (event_stage.kind == EventKind.OVERFLOW)),
            overflow.slot.eq(event_stage.event.slot),
            overflow.lines.eq(event_stage.event.lines),
            *(getattr(overflow, name).eq(getattr(self, name)) for name in _TO_PENDING),
            *(getattr(self, name).eq(getattr(overflow, name)) for name in ("pending", "total", "excess")),
            self.total_damaged.eq(overflow.damaged),
            self.opens.eq(event_stage.opens),
            self.closes.eq(event_stage.closes),
            self.slot_in_e.eq(event_stage.event.slot),
        ]
        self._move(m, queue, matched, row, advance, accepts_token)
        self._report_damage(m, matched, table, events, overflow)
        self._update(m, row, row.valid & advance, table, event_stage)
        return m

    def _move(self, m: Module, queue: Any, matched: Any, row: Any, advance: Signal, accepts_token: Signal) -> None:
        """The stages before the count: the token with what the matcher says of it, then with the slot's detail."""
        dropped = self.dropping & (queue.o.payload.context == self.dropped)
        with m.If(advance):
            m.d.sync += [matched.valid.eq(accepts_token), row.valid.eq(matched.valid)]
            with m.If(accepts_token):
                m.d.sync += [
                    matched.token.eq(queue.o.payload),
                    matched.hit.eq(self.match.hit & ~dropped),
                    matched.dropped.eq(dropped),
                    matched.slot.eq(self.match.slot),
                ]
            with m.If(matched.valid):
                m.d.sync += [
                    *(row[field].eq(matched[field]) for field in ("token", "hit", "dropped", "slot")),
                    row.descriptor.eq(self.detail.descriptor),
                    row.threshold.eq(self.lines.lines * self.detail.addends),
                    row.damaged.eq(self.detail.uncorrectable | self.lines.uncorrectable),
                ]

    def _report_damage(self, m: Module, matched: Any, table: Any, events: Any, overflow: Any) -> None:
        """Wrong bits in what is read: of the slot, and of the bank's own memories."""
        slot_read = matched.valid & matched.hit
        m.d.comb += [
            self.corrected.eq(
                (slot_read & (self.detail.corrected | self.lines.corrected))
                | table.corrected
                | events.corrected
                | overflow.corrected
            ),
            self.uncorrectable.eq(
                (slot_read & (self.detail.uncorrectable | self.lines.uncorrectable))
                | table.bad_ways.any()
                | table.bad_marks
                | events.uncorrectable
                | overflow.uncorrectable
            ),
        ]

    def _update(self, m: Module, row: Any, update: Value, table: Any, event_stage: Any) -> None:
        """Counts the token in R: against its entry, else in a new one, else (no way left, or marked) for its chunk.

        What would happen with each way, and without one, is worked out while the tags are compared.
        """
        config, token = self._parameters, row.token
        found, marked, counted = Signal(), Signal(), Signal()
        overflow, damaged, raises_event = Signal(), Signal(), Signal(name="raises_event")
        event, kind = Signal(Event, name="new_event"), Signal(name="new_kind")
        hits, free, completed_ways, allocated_ways = (Signal(config.tracker_ways) for _ in range(4))
        counts, reaches_threshold, exceeds_threshold = self._incremented(m, row, table.ways)
        way_available = free.any() & self._below_quota(token, table.ways)
        completes_alone, over = token.n == row.threshold, token.n > row.threshold
        overflows = marked | ~(completes_alone | over | way_available)
        m.d.comb += [
            # `valid` is one bit more of the comparison, not a gate behind it.
            hits.eq(
                Cat(Cat(entry.valid, entry.tag) == Cat(Const(1, 1), tag_of(config, token)) for entry in table.ways)
            ),
            free.eq(~Cat(entry.valid for entry in table.ways)),
            found.eq(hits.any()),
            marked.eq((table.marks & self._mark(row)).any()),
            completed_ways.eq(hits & Cat(reaches_threshold)),
            damaged.eq(row.damaged | table.bad_ways.any() | table.bad_marks),
            counted.eq(update & row.hit & ~damaged),
            self.poison.eq(update & row.hit & damaged),
            allocated_ways.eq(Mux(~marked & ~completes_alone & ~over & way_available, lowest_bit(free), 0)),
            overflow.eq(~found & overflows),
        ]
        written = Mux(counted, hits | Mux(found, 0, allocated_ways), 0)
        self._write(m, table, row, written, counted & overflow, Mux(counted, completed_ways, 0))
        self._entries(m, row, table, counts, reaches_threshold)
        m.d.sync += [
            event_stage.valid.eq(raises_event),
            event_stage.opens.eq(self.allocated),
            event_stage.closes.eq(counted & completed_ways.any()),
        ]
        with m.If(row.valid):
            m.d.sync += [event_stage.event.eq(event), event_stage.kind.eq(kind)]
        m.d.comb += [
            raises_event.eq(counted & (completed_ways.any() | (~found & (completes_alone | overflows)))),
            kind.eq(Mux(overflow, EventKind.OVERFLOW, EventKind.TILE)),
            event.lines.eq(Mux(overflow, token.n, row.threshold)),
            *(event[field].eq(token[field]) for field in ("row", "col", "wf")),
            event.slot.eq(row.slot),
            self.unmatched.eq(update & ~row.hit & ~row.dropped),
            self.over_count.eq(counted & Mux(found, (hits & Cat(exceeds_threshold)).any(), over & ~marked)),
            self.allocated.eq(counted & ~found & allocated_ways.any()),
            self.counts.eq(counted),
            self.amount.eq(token.n),
            self.poison_slot.eq(row.slot),
        ]

    def _entries(self, m: Module, row: Any, table: Any, counts: list[Value], reaches_threshold: list[Value]) -> None:
        """What each way becomes if it is written: a valid one because the token is of its tile, any other to become
        that, so this does not wait for the tags.

        An entry written without a token in R, or because of damage, becomes invalid; without a token it is 0, so that
        no bit is undefined.
        """
        token = row.token
        for entry, new, grown, ended in zip(table.ways, table.entries, counts, reaches_threshold, strict=True):
            m.d.comb += [
                new.valid.eq(row.valid & ~self.poison & ~(entry.valid & ended)),
                new.tag.eq(Mux(row.valid, tag_of(self._parameters, token), 0)),
                new.count.eq(Mux(row.valid, Mux(entry.valid, grown, token.n), 0)),
            ]

    def _incremented(self, m: Module, row: Any, ways: Any) -> tuple[list[Value], list[Value], list[Value]]:
        """For each way: its count with the token (at most all ones); whether that is the threshold; or above it."""
        counts, reaches_threshold, exceeds_threshold = [], [], []
        bits = self._parameters.tile_count_bits
        for w, entry in enumerate(ways):
            grown = Signal(max(bits, COUNT_BITS) + 1, name=f"grown_{w}")
            m.d.comb += grown.eq(entry.count + row.token.n)
            counts.append(Mux(grown[bits:].any(), -1, grown)[:bits])
            reaches_threshold.append(sum_equals(entry.count, row.token.n, row.threshold))
            exceeds_threshold.append(sum_exceeds(entry.count, row.token.n, row.threshold))
        return counts, reaches_threshold, exceeds_threshold

    def _below_quota(self, token: Any, ways: Any) -> Value:
        """Whether the token's context has fewer ways of the row than its quota: one term for every number of ways."""
        used = popcount(Cat(entry.valid & (entry.tag.context == token.context) for entry in ways))
        above = [Cat(quota > n for n in range(len(ways))) for quota in self.quotas]
        return (Cat(used == n for n in range(len(ways))) & Array(above)[token.context]).any()

    def _mark(self, row: Any) -> Value:
        return (1 << row.descriptor)[: self._parameters.descriptors]

    def _write(self, m: Module, table: Any, row: Any, ways: Value, marks: Value, completed_ways: Value) -> None:
        """The write port of the table: the owner's walk, or the token in R with its ``ways`` and its mark.

        Those in ``completed_ways`` become free. `row.valid` selects sweep or token: it arrives before ``walk``.
        Damaged words of the row are written in any case but a clean one. A tile whose entry is lost never completes.
        Lost mark bits become ones: lines are then counted for the chunk, which is right for every chunk.
        """
        config, walk = self._parameters, self.walk
        rewrites_damaged, walks = Signal(), Signal()
        invalidated = Signal(config.tracker_ways)
        valid = Cat(entry.valid for entry in table.ways)
        purged = Cat(entry.valid & (entry.tag.context == walk.context) for entry in table.ways)
        kept = table.marks | table.bad_marks.replicate(config.descriptors)
        m.d.comb += [
            walks.eq(walk.clear | walk.purge),
            rewrites_damaged.eq(walk.purge | self.poison),
            invalidated.eq(Mux(rewrites_damaged, table.bad_ways, 0) | Mux(walk.purge, purged, 0)),
            table.write_row.eq(Mux(row.valid, table_row(config, row.token), self.write_row)),
            table.write_ways.eq(Mux(walk.clear, -1, invalidated | ways)),
            table.write_marks.eq(walks | marks | (rewrites_damaged & table.bad_marks)),
            table.new_marks.eq(
                Mux(walk.clear, 0, Mux(walk.purge, kept & ~self.cleared_marks, kept | Mux(marks, self._mark(row), 0)))
            ),
            self.freed.eq((valid & invalidated) | completed_ways),
        ]
        selected = Array(table.ways)[self.way]
        with m.If((self.way < config.tracker_ways) & selected.valid & ~(table.bad_ways >> self.way)[0]):
            m.d.comb += self.entry.eq(selected)
