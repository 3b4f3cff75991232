"""One bank of the tracker: set-associative tile counters, one token per cycle."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..blocks.choose import index_of, lowest_bit
from ..blocks.queues import InputQueue
from ..config import T3Config
from ..layouts import COUNT_BITS, EventKind, Token
from .entry_table import EntryTable, entry_layout, table_row, tag_of
from .event_queue import Event, EventQueue
from .live_slots import SlotDetail, SlotMatch
from .tile_profile import TileLines

TableWalk = data.StructLayout({"clear": 1, "purge": 1, "context": 4, "read": 1})
"""What the owner does with the table while no token is in the pipeline: ``clear`` writes a row of zeros; ``read`` reads
a row; ``purge`` writes the row that was read a cycle before, without entries of ``context``."""

MatchedToken = data.StructLayout({"valid": 1, "token": Token, "hit": 1, "dropped": 1, "slot": 6})
"""Register M: a token and its live chunk; ``dropped``: it has none because of an abort."""


def row_layout(config: T3Config) -> data.StructLayout:
    """Register R: what M held, and what was read meanwhile."""
    read = {"descriptor": 6, "threshold": config.tile_count_bits, "damaged": 1}
    return data.StructLayout({**MatchedToken.members, **read})


class TrackerBank(wiring.Component):
    """Counts the tokens of its share of the tiles: queue, match (M), table row (R), event queue.

    Parameters
    ----------
    config : the hardware configuration.

    Members
    -------
    token : In(stream(Token)) : ready is 0 while ``walk.clear``.
    tile : Out(Token) : the tile that enters M next, to be matched by the owner in the same cycle.
    match : In : its live chunk.
    read : Out(1) : it enters M in this cycle.
    detail, lines : In : of the tile in M: addends and descriptor of its chunk, lines per addend.
    event_valid, event : Out : a finished tile, or lines counted without an entry; these may grow while they wait.
    event_taken : In(1) : the event leaves.
    quotas : In : ways of a row that each context may use.
    halt : In(1) : no token enters M.
    dropping, dropped : In : tokens of context ``dropped`` that enter M in this cycle are not counted.
    drained : Out(1) : no token is in M or R.
    walk, write_row, read_row, cleared_marks : In : see :data:`TableWalk`; a purge also clears these mark bits.
    way, entry : In, Out : an entry of the row that was read last; zeros if it is not valid.
    allocated, freed : Out : entries that begin and end to be used.
    counted : Out : ``n`` of the token that is counted.
    unmatched, over_count : Out(1) : pulses; a token without a live chunk, a count above its threshold.
    poison : Out(1) : pulse; a token of slot ``poison_slot`` met something damaged and was not counted.
    corrected, uncorrectable : Out(1) : a stored word was put right, could not be.
    busy : Out(1) : something is in the pipeline.

    Latency: 3 cycles from ``token`` to ``event``. Throughput: one token per cycle. Reset: empty.
    """

    def __init__(self, *, config: T3Config) -> None:
        row = range(config.sets_per_bank)
        super().__init__({
            "token": In(stream.Signature(Token)), "tile": Out(Token),
            "match": In(SlotMatch), "read": Out(1), "detail": In(SlotDetail), "lines": In(TileLines),
            "event_valid": Out(1), "event": Out(Event), "event_taken": In(1),
            "quotas": In(5).array(16), "halt": In(1), "dropping": In(1), "dropped": In(4), "drained": Out(1),
            "walk": In(TableWalk), "write_row": In(row), "read_row": In(row), "cleared_marks": In(config.descriptors),
            "way": In(4), "entry": Out(entry_layout(config)),
            "allocated": Out(1), "freed": Out(5), "counted": Out(10), "unmatched": Out(1), "over_count": Out(1),
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
        matched, row = Signal(MatchedToken, name="matched"), Signal(row_layout(config), name="row")
        advance, takes = Signal(), Signal()

        m.d.comb += [
            queue.i.payload.eq(self.token.payload),
            queue.i.valid.eq(self.token.valid & ~walk.clear),
            self.token.ready.eq(queue.i.ready & ~walk.clear),
            self.tile.eq(queue.o.payload),
            advance.eq(~row.valid | (events.level != config.event_queue)),
            self.event_valid.eq(events.valid),
            self.event.eq(events.head),
            events.pop.eq(self.event_taken),
            queue.o.ready.eq(advance & ~self.halt),
            takes.eq(queue.o.valid & queue.o.ready),
            self.read.eq(takes),
            table.read.eq((advance & matched.valid) | walk.read),
            table.read_row.eq(Mux(walk.read, self.read_row, table_row(config, matched.token))),
            self.drained.eq(~matched.valid & ~row.valid),
            self.busy.eq(queue.o.valid | matched.valid | row.valid | events.level.any()),
        ]
        dropped = self.dropping & (queue.o.payload.context == self.dropped)
        with m.If(advance):
            m.d.sync += [matched.valid.eq(takes), row.valid.eq(matched.valid)]
            with m.If(takes):
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
        looked_up = matched.valid & matched.hit
        m.d.comb += [
            self.corrected.eq(
                (looked_up & (self.detail.corrected | self.lines.corrected)) | table.corrected | events.corrected
            ),
            self.uncorrectable.eq(
                (looked_up & (self.detail.uncorrectable | self.lines.uncorrectable))
                | table.bad_ways.any() | table.bad_marks | events.uncorrectable
            ),
        ]  # fmt: skip
        self._update(m, row, row.valid & advance, table, events)
        return m

    def _update(self, m: Module, row: Any, update: Value, table: Any, events: Any) -> None:
        """Counts the token in R: against its entry, else in a new one, else (no way left, or marked) for its chunk."""
        config, token, ways = self._parameters, row.token, table.ways
        hits, free, way = Signal(config.tracker_ways), Signal(config.tracker_ways), Signal(config.tracker_ways)
        found, marked, reached, over, counted = Signal(), Signal(), Signal(), Signal(), Signal()
        unentered, spill, room, damaged = Signal(), Signal(), Signal(), Signal()
        old, count = Signal(config.tile_count_bits), Signal(max(config.tile_count_bits, COUNT_BITS) + 1)
        mark = (1 << row.descriptor)[: config.descriptors]
        used = sum(entry.valid & (entry.tag.context == token.context) for entry in ways)
        m.d.comb += [
            hits.eq(Cat(entry.valid & (entry.tag.as_value() == tag_of(config, token)) for entry in ways)),
            free.eq(~Cat(entry.valid for entry in ways)),
            found.eq(hits.any()),
            marked.eq((table.marks & mark).any()),
            room.eq(free.any() & (used < Array(self.quotas)[token.context])),
            way.eq(lowest_bit(Mux(found, hits, free))),
            old.eq(Array(entry.count for entry in ways)[index_of(way)]),
            count.eq(Mux(found, old, 0) + token.n),
            reached.eq(count == row.threshold),
            over.eq(count > row.threshold),
            damaged.eq(row.damaged | table.bad_ways.any() | table.bad_marks),
            counted.eq(update & row.hit & ~damaged),
            self.poison.eq(update & row.hit & damaged),
            unentered.eq(~found & ~reached & ~over),
            spill.eq(~found & (marked | (unentered & ~room))),
        ]
        written = Mux(counted & (found | (unentered & ~spill)), way, 0)
        kept_count = Mux(count > (1 << config.tile_count_bits) - 1, -1, count)
        self._write(m, table, row, written, counted & spill, reached, kept_count)
        m.d.comb += [
            events.push.eq(counted & (spill | reached)),
            events.event.kind.eq(Mux(spill, EventKind.OVERFLOW, EventKind.TILE)),
            events.event.lines.eq(Mux(spill, token.n, row.threshold)),
            *(events.event[field].eq(token[field]) for field in ("row", "col", "wf")),
            events.event.slot.eq(row.slot),
            events.n.eq(token.n),
            self.unmatched.eq(update & ~row.hit & ~row.dropped),
            self.over_count.eq(counted & over & ~spill),
            self.allocated.eq(counted & unentered & ~spill),
            self.counted.eq(Mux(counted, token.n, 0)),
            self.poison_slot.eq(row.slot),
        ]

    def _write(self, m: Module, table: Any, row: Any, ways: Value, marks: Value, reached: Value, count: Value) -> None:
        """The write port of the table: the owner's walk, or the token in R with its ``ways`` and its mark.

        An entry that is not in use is stored as zeros, so that the walk after reset writes what is known.
        Damaged words of the row are written in any case but a clean one. A lost entry makes its tile late for ever.
        Lost mark bits become ones: lines are then counted for the chunk, which is right for every chunk.
        """
        config, walk = self._parameters, self.walk
        mends, walks, live = Signal(), Signal(), Signal()
        dying = Signal(config.tracker_ways)
        valid = Cat(entry.valid for entry in table.ways)
        purged = Cat(entry.valid & (entry.tag.context == walk.context) for entry in table.ways)
        mark = (1 << row.descriptor)[: config.descriptors]
        kept = table.marks | table.bad_marks.replicate(config.descriptors)
        m.d.comb += [
            walks.eq(walk.clear | walk.purge),
            mends.eq(walk.purge | self.poison),
            dying.eq(Mux(mends, table.bad_ways, 0) | Mux(walk.purge, purged, 0)),
            table.write_row.eq(Mux(walks, self.write_row, table_row(config, row.token))),
            table.write_ways.eq(Mux(walk.clear, -1, dying | ways)),
            live.eq(~walks & ~self.poison & ~reached),
            table.entry.valid.eq(live),
            table.entry.tag.eq(Mux(live, tag_of(config, row.token), 0)),
            table.entry.count.eq(Mux(live, count, 0)),
            table.write_marks.eq(walks | marks | (mends & table.bad_marks)),
            table.new_marks.eq(
                Mux(walk.clear, 0, Mux(walk.purge, kept & ~self.cleared_marks, kept | Mux(marks, mark, 0)))
            ),
            self.freed.eq(sum((valid & (dying | Mux(reached, ways, 0)))[w] for w in range(config.tracker_ways))),
        ]
        looked = Array(table.ways)[self.way]
        with m.If((self.way < config.tracker_ways) & looked.valid & ~(table.bad_ways >> self.way)[0]):
            m.d.comb += self.entry.eq(looked)
