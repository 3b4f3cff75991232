"""One bank of the tracker: set-associative tile counters, one token per cycle."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .choose import index_of, lowest_bit
from .chunk_counters import event_layout
from .config import T3Config
from .entry_table import EntryTable, table_row, tag_of
from .layouts import EventKind, Token
from .live_slots import SlotDetail, SlotMatch
from .queues import Fifo, InputQueue


class TrackerBank(wiring.Component):
    """Counts the tokens of its share of the tiles: queue, match (M), table row (R), event queue.

    Parameters
    ----------
    config : the hardware configuration.

    Members
    -------
    token : In(stream(Token)) : ready is 0 while ``clear``.
    tile : Out(Token) : the tile that enters M next, to be matched by the owner in the same cycle.
    match : In : its live chunk.
    read : Out(1) : it enters M in this cycle.
    detail, lines : In : of the tile in M: addends and descriptor of its chunk, lines per addend.
    event : Out(stream) : finished tiles, and lines counted without an entry.
    clear, clear_row : In : the init walker writes zeros to this row.
    allocated, freed : Out(1) : pulses; an entry begins or ends to be used.
    unmatched, over_count : Out(1) : pulses; a token without a live chunk, a count above its threshold.
    busy : Out(1) : something is in the pipeline.

    Latency: 3 cycles from ``token`` to ``event``. Throughput: one token per cycle. Reset: empty.
    """

    def __init__(self, *, config: T3Config) -> None:
        self._event = event_layout(config)
        super().__init__({
            "token": In(stream.Signature(Token)), "tile": Out(Token),
            "match": In(SlotMatch), "read": Out(1), "detail": In(SlotDetail), "lines": In(config.tile_count_bits),
            "event": Out(stream.Signature(self._event)),
            "clear": In(1), "clear_row": In(range(config.sets_per_bank)),
            "allocated": Out(1), "freed": Out(1), "unmatched": Out(1), "over_count": Out(1), "busy": Out(1),
        })  # fmt: skip
        self._parameters = config
        stage = {"valid": 1, "token": Token, "hit": 1, "slot": 6}
        self._m_stage = data.StructLayout(stage)
        self._r_stage = data.StructLayout(stage | {"descriptor": 6, "threshold": config.tile_count_bits})

    def elaborate(self, platform: Any) -> Module:
        """The pipeline: either every stage moves, or (event queue full) every stage and the row that was read hold."""
        m = Module()
        m.submodules.queue = queue = InputQueue(Token)
        m.submodules.table = table = EntryTable(config=self._parameters)
        m.submodules.events = events = Fifo(self._event, depth=self._parameters.event_queue)
        wiring.connect(m, events.o, wiring.flipped(self.event))
        matched, row = Signal(self._m_stage), Signal(self._r_stage)
        advance = Signal()

        m.d.comb += [
            queue.i.payload.eq(self.token.payload),
            queue.i.valid.eq(self.token.valid & ~self.clear),
            self.token.ready.eq(queue.i.ready & ~self.clear),
            self.tile.eq(queue.o.payload),
            self.read.eq(queue.o.valid & advance),
            advance.eq(~row.valid | events.i.ready),
            queue.o.ready.eq(advance),
            table.read.eq(advance & matched.valid),
            table.read_row.eq(table_row(self._parameters, matched.token)),
            self.busy.eq(queue.o.valid | matched.valid | row.valid | events.o.valid),
        ]
        with m.If(advance):
            m.d.sync += [matched.valid.eq(queue.o.valid), row.valid.eq(matched.valid)]
            with m.If(queue.o.valid):
                m.d.sync += [
                    matched.token.eq(queue.o.payload),
                    matched.hit.eq(self.match.hit),
                    matched.slot.eq(self.match.slot),
                ]
            with m.If(matched.valid):
                m.d.sync += [
                    *(row[field].eq(matched[field]) for field in ("token", "hit", "slot")),
                    row.descriptor.eq(self.detail.descriptor),
                    row.threshold.eq(self.lines * self.detail.addends),
                ]
        self._update(m, row, row.valid & advance, table, events)
        return m

    def _update(self, m: Module, row: Any, update: Value, table: Any, events: Any) -> None:
        """Counts the token in R: against its entry, else in a new one, else (set full or marked) for its chunk."""
        config, token, ways = self._parameters, row.token, table.ways
        hits, free, way = Signal(config.tracker_ways), Signal(config.tracker_ways), Signal(config.tracker_ways)
        found, marked, reached, over, counted = Signal(), Signal(), Signal(), Signal(), Signal()
        unentered, spill = Signal(), Signal()
        old, count = Signal(config.tile_count_bits), Signal(len(events.i.payload.lines) + 1)
        mark = (1 << row.descriptor)[: config.descriptors]
        m.d.comb += [
            hits.eq(Cat(entry.valid & (entry.tag.as_value() == tag_of(config, token)) for entry in ways)),
            free.eq(~Cat(entry.valid for entry in ways)),
            found.eq(hits.any()),
            marked.eq((table.marks & mark).any()),
            way.eq(lowest_bit(Mux(found, hits, free))),
            old.eq(Array(entry.count for entry in ways)[index_of(way)]),
            count.eq(Mux(found, old, 0) + token.n),
            reached.eq(count == row.threshold),
            over.eq(count > row.threshold),
            counted.eq(update & row.hit),
            unentered.eq(~found & ~reached & ~over),
            spill.eq(~found & (marked | (unentered & ~free.any()))),
        ]
        self._write(m, table, row, Mux(counted & (found | (unentered & ~spill)), way, 0), counted & spill)
        m.d.comb += [
            table.entry.valid.eq(~self.clear & ~reached),
            table.entry.count.eq(Mux(count > (1 << config.tile_count_bits) - 1, -1, count)),
            table.new_marks.eq(Mux(self.clear, 0, table.marks | mark)),
            events.i.valid.eq(counted & (spill | reached)),
            events.i.payload.kind.eq(Mux(spill, EventKind.OVERFLOW, EventKind.TILE)),
            events.i.payload.lines.eq(Mux(spill, token.n, row.threshold)),
            *(events.i.payload[field].eq(token[field]) for field in ("row", "col", "wf")),
            events.i.payload.slot.eq(row.slot),
            self.unmatched.eq(update & ~row.hit),
            self.over_count.eq(counted & over & ~spill),
            self.freed.eq(counted & found & reached),
            self.allocated.eq(counted & unentered & ~spill),
        ]

    def _write(self, m: Module, table: Any, row: Any, ways: Value, marks: Value) -> None:
        """The write port of the table: the walker's while ``clear``, else the token's in R."""
        m.d.comb += [
            table.write_row.eq(Mux(self.clear, self.clear_row, table_row(self._parameters, row.token))),
            table.write_ways.eq(Mux(self.clear, -1, ways)),
            table.write_marks.eq(self.clear | marks),
            table.entry.tag.eq(tag_of(self._parameters, row.token)),
        ]
