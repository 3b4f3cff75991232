"""One bank of the naive tracker: docs/hardware/tracker.md, word for word, with registers for tables."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.config import T3Config
from t3hdl.interface.layouts import EPOCH_BITS, EventKind, Token

Match = data.StructLayout({"matched": 1, "foreign": 1, "slot": 6, "lines": 16})
"""What the live slots say of a token; ``foreign``: it is of no slot, and that is an error."""

Detail = data.StructLayout({"descriptor": 6, "threshold": 16})
"""What the slot says of a matched token one step later."""

Pending = data.StructLayout({"there": 1, "lines": 32})
"""Lines of a slot that wait."""

Event = data.StructLayout({"kind": 1, "slot": 6, "row": 12, "col": 12, "wf": 4, "lines": 16})
"""What a bank reports."""

Entry = data.StructLayout({"valid": 1, "context": 4, "epoch": EPOCH_BITS, "row": 12, "col": 12, "wf": 4, "count": 16})
"""A counter and the tile that it counts for."""

KEY = ("context", "epoch", "row", "col", "wf")
"""What names a tile."""


def state(cleared: list[Signal], name: str, shape: Any) -> Any:
    """A register that a disarm clears."""
    made = Signal(shape, name=name)
    cleared.append(Value.cast(made))
    return made


def states(cleared: list[Signal], prefix: str, number: int, shape: Any) -> list[Any]:
    """As many of them as ``number``."""
    return [state(cleared, f"{prefix}_{i}", shape) for i in range(number)]


class NaiveBank:
    """Input queue, M, R, table, marks, E, event queue and pending lines of one bank; a part of the tracker's module.

    ``pop`` : the oldest tile is drained in this cycle. ``collects`` : of each slot, whether what is pending is.
    ``valid``, ``complete``, ``ends`` : of each slot, whether it has a chunk, that is complete, it ends. ``hold`` : no
    token is taken out of the input queue.
    ``match`` : what the slots say of ``head``. ``detail`` : what its slot says of the token in M.
    ``ways`` : how many ways the context of the token in R may use. ``opened``, ``closed`` : an entry began, or its tile
    was complete, in the cycle before, of the slot in E.
    """

    def __init__(self, config: T3Config, number: int, token: Any, cleared: list[Signal]) -> None:
        self.config, self.token, self.name = config, token, f"bank{number}"
        rows, name = config.sets_per_bank, self.name
        self.queue = states(cleared, f"{name}_token", 2, Token)
        self.waiting = state(cleared, f"{name}_waiting", range(3))
        self.m_valid, self.r_valid = states(cleared, f"{name}_valid", 2, 1)
        self.m_token, self.r_token = states(cleared, f"{name}_stage", 2, Token)
        self.m_match, self.r_match = states(cleared, f"{name}_match", 2, Match)
        self.r_detail = state(cleared, f"{name}_detail", Detail)
        self.event_stage_valid, self.event_stage = (
            state(cleared, f"{name}_event_stage_valid", 1),
            state(cleared, f"{name}_event_stage", Event),
        )
        self.table = [states(cleared, f"{name}_row{row}", config.tracker_ways, Entry) for row in range(rows)]
        self.marks = states(cleared, f"{name}_marks", rows, config.descriptors)
        self.events = states(cleared, f"{name}_event", config.event_queue, Event)
        self.level = state(cleared, f"{name}_level", range(config.event_queue + 1))
        self.sums = states(cleared, f"{name}_pending", config.chunk_window, Pending)
        self.pop, self.hold = Signal(name=f"{name}_pop"), Signal(name=f"{name}_hold")
        self.collects, self.valid, self.complete, self.ends = (
            Signal(config.chunk_window, name=f"{name}_{of_slots}")
            for of_slots in ("collects", "valid_slots", "complete_slots", "ending_slots")
        )
        self.adds, self.late = Signal(config.chunk_window, name=f"{name}_adds"), Signal(name=f"{name}_late")
        self.detail = Signal(Detail, name=f"{name}_found")
        self.match, self.ways = Signal(Match, name=f"{name}_match"), Signal(5, name=f"{name}_ways")
        self.head = self.queue[0]
        self.counted = Signal(10, name=f"{name}_counted")
        self.unmatched, self.over_count = Signal(name=f"{name}_unmatched"), Signal(name=f"{name}_over_count")
        self.opens, self.closes = Signal(name=f"{name}_opens"), Signal(name=f"{name}_closes")
        self.opened, self.closed = states(cleared, f"{name}_changed", 2, 1)
        self.entries = sum((entry.valid for row in self.table for entry in row), start=Const(0))

    def step(self, m: Module) -> None:
        """Describes a cycle of the bank."""
        self.m, config = m, self.config
        advance, take = Signal(name=f"{self.name}_advance"), Signal(name=f"{self.name}_take")
        m.d.comb += [
            advance.eq(~self.r_valid | (self.level + self.tile_in_e() < config.event_queue)),
            take.eq(advance & ~self.hold & (self.waiting > 0)),
        ]
        self._queue(take)
        with m.If(advance):
            m.d.sync += [self.r_valid.eq(self.m_valid), self.r_token.eq(self.m_token), self.r_match.eq(self.m_match)]
            m.d.sync += self.r_detail.eq(self.detail)
            m.d.sync += [self.m_valid.eq(take), self.m_token.eq(self.head), self.m_match.eq(self.match)]
        event, raises_event = Signal(Event, name=f"{self.name}_new"), Signal(name=f"{self.name}_tells")
        with m.If(self.r_valid & advance):
            with m.If(self.r_match.matched):
                m.d.comb += self.counted.eq(self.r_token.n)
                self._update(event, raises_event)
            with m.Else():
                m.d.comb += self.unmatched.eq(self.r_match.foreign)
        m.d.sync += [self.event_stage_valid.eq(raises_event), self.event_stage.eq(event)]
        m.d.sync += [self.opened.eq(self.opens), self.closed.eq(self.closes)]
        self._events(self.event_stage, self.tile_in_e())
        self._pend(self.event_stage, self.event_stage_valid & (self.event_stage.kind == EventKind.OVERFLOW))

    def tile_in_e(self) -> Value:
        """Whether E has a finished tile."""
        return self.event_stage_valid & (self.event_stage.kind == EventKind.TILE)

    def free(self, m: Module, row: int, context: Value, marks: Value, first: Value, end: Value) -> None:
        """Frees a row's entries of a context; with ``marks`` clears the marks of descriptors from first to end, too."""
        for entry in self.table[row]:
            with m.If(entry.context == context):
                m.d.sync += entry.valid.eq(0)
        for descriptor in range(self.config.descriptors):
            with m.If(marks & (first <= descriptor) & (descriptor < end)):
                m.d.sync += self.marks[row][descriptor].eq(0)

    def _queue(self, take: Value) -> None:
        """Pop, then push."""
        m = self.m
        left = Signal(range(3), name=f"{self.name}_left")
        m.d.comb += left.eq(self.waiting - take)
        with m.If(take):
            m.d.sync += self.queue[0].eq(self.queue[1])
        arrives = self.token.valid & self.token.ready
        with m.If(arrives):
            m.d.sync += Array(self.queue)[left].eq(self.token.payload)
        m.d.sync += self.waiting.eq(left + arrives)

    def _update(self, event: Any, raises_event: Signal) -> None:
        """What the token in R does to the table; at most one event."""
        m, config, token, match, detail = self.m, self.config, self.r_token, self.r_match, self.r_detail
        row = Signal(range(config.tracker_sets), name=f"{self.name}_index")
        m.d.comb += row.eq(self.row_of(token))
        entries = [Signal(Entry, name=f"{self.name}_way{way}") for way in range(config.tracker_ways)]
        hits, free, used = [], [], []
        for way, entry in enumerate(entries):
            m.d.comb += entry.eq(Array(entries_of[way] for entries_of in self.table)[row])
            same = Cat(entry[field] == token[field] for field in KEY).all()
            hits.append(entry.valid & same)
            free.append(~entry.valid)
            used.append(entry.valid & (entry.context == token.context))
        marked = Array(self.marks)[row].bit_select(detail.descriptor, 1)
        room = (sum(used, start=Const(0)) < self.ways) & Cat(free).any()
        m.d.comb += [event.slot.eq(match.slot), event.kind.eq(EventKind.TILE), event.lines.eq(detail.threshold)]
        m.d.comb += [event[field].eq(token[field]) for field in ("row", "col", "wf")]
        with m.If(Cat(hits).any()):
            self._count(row, entries, hits, raises_event)
        with m.Elif(marked):
            self._overflow(event, raises_event)
        with m.Elif(token.n == detail.threshold):
            m.d.comb += raises_event.eq(1)
        with m.Elif(token.n > detail.threshold):
            m.d.comb += self.over_count.eq(1)
        with m.Elif(room):
            for way, fresh in lowest(m, free):
                with fresh:
                    entry = {"valid": 1, "count": token.n, **{field: token[field] for field in KEY}}
                    m.d.comb += self.opens.eq(1)
                    for field, value in entry.items():
                        m.d.sync += self._written(row, way)[field].eq(value)
        with m.Else():
            self._overflow(event, raises_event)
            m.d.sync += Array(self.marks)[row].bit_select(detail.descriptor, 1).eq(1)

    def _count(self, row: Value, entries: list[Any], hits: list[Value], raises_event: Signal) -> None:
        """Adds to the entry that counts for the tile."""
        m, most = self.m, (1 << self.config.tile_count_bits) - 1
        for way, hit in lowest(m, hits):
            with hit:
                count = entries[way].count + self.r_token.n
                with m.If(count == self.r_detail.threshold):
                    m.d.sync += self._written(row, way).valid.eq(0)
                    m.d.comb += [raises_event.eq(1), self.closes.eq(1)]
                with m.Else():
                    m.d.sync += self._written(row, way)["count"].eq(Mux(count > most, most, count))
                    m.d.comb += self.over_count.eq(count > self.r_detail.threshold)

    def _overflow(self, event: Any, raises_event: Signal) -> None:
        self.m.d.comb += [event.kind.eq(EventKind.OVERFLOW), event.lines.eq(self.r_token.n), raises_event.eq(1)]

    def _written(self, row: Value, way: int) -> Any:
        return Array(entries[way] for entries in self.table)[row]

    def row_of(self, token: Any) -> Value:
        """Row of the bank's table in which a tile is counted."""
        config = self.config
        column = token.col[: config.column_index_bits]
        return column | ((token.row[: config.row_index_bits] >> config.bank_bits) << config.column_index_bits)

    def _events(self, event: Any, push: Value) -> None:
        """Drains the oldest, then appends."""
        m, depth = self.m, self.config.event_queue
        left = Signal(range(depth + 1), name=f"{self.name}_kept")
        m.d.comb += left.eq(self.level - self.pop)
        with m.If(self.pop):
            m.d.sync += [old.eq(young) for old, young in zip(self.events, self.events[1:], strict=False)]
        m.d.sync += self.level.eq(left + push)
        with m.If(push):
            m.d.sync += Array(self.events)[left].eq(event)

    def _pend(self, event: Any, overflow: Value) -> None:
        """What is collected goes, then what comes is added, then what has ended is nothing."""
        m, bits = self.m, self.config.pending_bits
        for slot, pending in enumerate(self.sums):
            kept = Signal(Pending, name=f"{self.name}_sum{slot}")
            m.d.comb += kept.eq(pending)
            with m.If(self.collects[slot]):
                m.d.comb += kept.eq(0)
            m.d.sync += pending.eq(kept)
            here = overflow & (event.slot == slot)
            with m.If(here & self.valid[slot]):
                m.d.comb += self.adds[slot].eq(1)
                m.d.sync += [pending.there.eq(1), pending.lines.eq((kept.lines + event.lines)[:bits])]
            with m.If(here & ~self.valid[slot] & self.complete[slot]):
                m.d.comb += self.late.eq(1)
            with m.If(self.ends[slot]):
                m.d.sync += pending.eq(0)


def lowest(m: Module, conditions: list[Any]) -> Any:
    """Pairs of a number and a context that describes what happens if its condition is the first true one."""
    for i, condition in enumerate(conditions):
        others = Cat(conditions[:i]).any() if i else Const(0)
        yield i, m.If(condition & ~others)
