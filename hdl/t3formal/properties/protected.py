"""``protect`` beyond idle and reset: a part whose stored bits are hit does what the unprotected part does, or says so.

The part has two more ports that invert a bit of a stored word (:mod:`t3hdl.export.single_event_upsets`). Which word and
which bit is chosen, and the cycle is free: what is shown holds for every place and time within the bound.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value
from amaranth.lib.wiring import Component, Out
from t3hdl.common.ram import Ram
from t3hdl.config import T3Config, preset
from t3hdl.export.single_event_upsets import Upsettable, stored_words
from t3hdl.slice.token_queue import TileKey, TokenQueue
from t3hdl.tracker.event_queue import EventQueue
from t3hdl.tracker.pending_lines import PendingLines
from t3hdl.trigger.block_table import BlockOp, BlockTable

from ..prover.harness import Harness
from ..prover.proof import Proof
from .trigger.block_table import narrow

_BITS = 6
"""Width of the sums that are compared."""


class _Hit:
    """A part that is hit up to ``hits`` times in words whose path ends in ``pattern``.

    ``harness``, ``dut`` : as ever. ``struck`` : how often a bit was inverted. ``same`` : the hits are in one word.
    """

    def __init__(self, make: Callable[[], Component], pattern: str, hits: int) -> None:
        words = [word.number for word in stored_words(make()) if re.search(rf"{pattern}$", word.path)]
        bits = max(word.bits for word in stored_words(make()) if word.number in words)
        self.part: Any = make()
        self.dut = Upsettable(self.part)
        self.harness = harness = Harness(self.dut)
        m = harness.m
        self.struck = Signal(range(hits + 1), name="struck")
        strikes = harness.free("strike") & (self.struck != hits)
        m.d.sync += self.struck.eq(self.struck + strikes)
        places = [harness.chosen(f"word_{i}", range(len(words))) for i in range(hits)]
        looked_at = Array((0, bits // 2, bits - 10, bits - 1)) if bits > 16 else Array(range(bits))
        chosen_bits = [looked_at[harness.chosen(f"bit_{i}", range(len(looked_at)))] for i in range(hits)]
        word = Array(Array(words)[place] for place in places)[self.struck]
        harness.drive(self.dut.upset_word, Mux(strikes, word, 0))
        harness.drive(self.dut.upset_bit, Array(chosen_bits)[self.struck])

    def beside(self, plain: Component) -> dict[str, tuple[Value, Value]]:
        """Puts the unprotected part beside, with the same inputs; the outputs of both by name."""
        self.harness.m.submodules.plain = plain
        outputs = {}
        for path, member, value in plain.signature.flatten(plain):
            twin: Any = self.part
            for step in path:
                twin = getattr(twin, step) if isinstance(step, str) else twin[step]
            if member.flow == Out:
                outputs["__".join(map(str, path))] = (Value.cast(twin), Value.cast(value))
            else:
                self.harness.m.d.comb += Value.cast(value).eq(Value.cast(twin))
        return outputs


def _ram(config: T3Config, *, hits: int) -> Harness:
    """One row is chosen and written; the hits of it since then are counted."""
    hit = _Hit(lambda: Ram(4, depth=2, write_through=True, protect=True), r"rows\.row_\d+", hits)
    harness, ram, m = hit.harness, hit.part, hit.harness.m
    written, word = Signal(2), Array(Signal(4, name=f"written_{row}") for row in range(2))
    with m.If(ram.write):
        m.d.sync += [written.eq(written | (1 << ram.write_row)), word[ram.write_row].eq(ram.write_data)]
    known, expected = Signal(), Signal(4)
    with m.If(ram.read):
        same = ram.write & (ram.write_row == ram.read_row)
        m.d.sync += known.eq(same | written.bit_select(ram.read_row, 1))
        m.d.sync += expected.eq(Mux(same, ram.write_data, word[ram.read_row]))
    right = ram.data == expected
    if hits == 1:
        harness.claim("one wrong bit is corrected", ~known | right)
        harness.claim("and is not called uncorrectable", ~known | ~ram.uncorrectable)
        harness.cover("a row with a wrong bit is read", known & ram.corrected)
    else:
        harness.claim("a word is right, or called uncorrectable", ~known | right | ram.uncorrectable)
        harness.cover("a row with two wrong bits is read", known & ram.uncorrectable)
    return harness


def _token_queue(config: T3Config, *, hits: int) -> Harness:
    """Lines of one tile, as in ``token-queue.conserves``; tiles have two names."""
    depth = config.token_queue
    hit = _Hit(lambda: TokenQueue(depth=depth, protect=True), r"entry_\d+", hits)
    harness, queue, m = hit.harness, hit.part, hit.harness.m
    harness.drive(queue.tile, Cat(harness.free("row"), Const(0, TileKey.size - 1)))
    harness.drive(queue.length, Cat(harness.free("two"), Const(0, 2)))
    harness.assume("a token queue is pushed only with room", ~queue.push | (queue.level != depth))
    mine = queue.o.payload.as_value()[: TileKey.size] == 1
    entered, left, other = Signal(_BITS), Signal(_BITS), Signal()
    leaves = queue.o.valid & queue.o.ready
    m.d.sync += [
        entered.eq(entered + Mux(queue.push & (queue.tile.as_value() == 1), queue.length + 1, 0)),
        left.eq(left + Mux(leaves & mine, queue.o.payload.n, 0)),
        other.eq(other | (leaves & (queue.o.payload.as_value()[1 : TileKey.size] != 0))),
    ]
    _lines_claims(hit, entered, left, queue.level == 0, queue.uncorrectable, hits)
    harness.claim("no token of a tile that was never pushed", ~other)
    return harness


def _lines_claims(
    hit: _Hit, entered: Signal, left: Signal, empty: Value, reports: Value, hits: int, lost: Signal | None = None
) -> None:
    """Every line leaves, or with two wrong bits in an entry a report comes; never more than came. ``lost`` : what left
    was said to be wrong."""
    harness, reported = hit.harness, Signal()
    harness.m.d.sync += reported.eq(reported | reports)
    if hits == 1:
        harness.claim("one wrong bit loses no line", ~empty | (entered == left))
        harness.claim("and is not called uncorrectable", ~reports)
        harness.cover("an entry with a wrong bit leaves", hit.part.corrected & (entered > 2))
    else:
        right = entered == left
        harness.claim("lines are lost only with a report", ~empty | reported | right)
        if lost is not None:
            harness.claim("what leaves is right, or said to be wrong", ~empty | lost | right)
        harness.cover("an entry is lost", empty & reported & (entered != left))
    harness.claim("no line leaves that did not come", (left <= entered) | (Const(0) if lost is None else lost))


def _event_queue(config: T3Config, *, hits: int) -> Harness:
    """Lines of the tiles of one slot."""
    depth = config.event_queue
    hit = _Hit(lambda: EventQueue(config=config), r"entry_\d+", hits)
    harness, queue, m = hit.harness, hit.part, hit.harness.m
    harness.assume("tiles are pushed only with room", ~queue.push | (queue.level != depth))
    harness.assume("only events that are there are taken", ~queue.pop | queue.valid)
    event = Signal(queue.event.shape(), name="event_in")
    m.d.comb += [
        event.slot.eq(harness.free("slot")),
        event.lines.eq(harness.free("two") + 1),
    ]
    harness.drive(queue.event, event)
    entered, left, other = Signal(_BITS), Signal(_BITS), Signal()
    m.d.sync += [
        entered.eq(entered + Mux(queue.push & (queue.event.slot == 1), queue.event.lines, 0)),
        left.eq(left + Mux(queue.pop & (queue.head.slot == 1), queue.head.lines, 0)),
        other.eq(other | (queue.pop & (queue.head.slot > 1))),
    ]
    _lines_claims(hit, entered, left, queue.level == 0, queue.uncorrectable, hits)
    harness.claim("no tile of a slot that was never pushed", ~other)
    return harness


def _pending_lines(config: T3Config, *, hits: int) -> Harness:
    """Lines of one slot, as in ``pending-lines.conserve``; both copies of a sum are hit."""
    hit = _Hit(lambda: PendingLines(config=config), r"rows\.row_\d+", hits)
    harness, sums, m = hit.harness, hit.part, hit.harness.m
    harness.drive(sums.slot, harness.free("slot_added"))
    harness.drive(sums.lines, harness.free("two") + 1)
    harness.drive(sums.collected, harness.free("slot_collected"))
    harness.drive(sums.ends, 0)
    harness.drive(sums.live, -1)
    entered, left = Signal(_BITS), Signal(_BITS)
    takes = sums.collect & (sums.collected == 1)
    wrong = Signal()
    m.d.sync += [
        entered.eq(entered + Mux(sums.add & (sums.slot == 1), sums.lines, 0)),
        left.eq(left + Mux(takes, sums.total, 0)),
        wrong.eq(wrong | (takes & sums.damaged)),
    ]
    _lines_claims(hit, entered, left, ~sums.pending[1], sums.uncorrectable, hits, lost=wrong)
    return harness


_VALID = {"ready": "ready_valid", "ready_context": "ready_valid", "scanned": "scanned_valid",
          "twice_slot": "twice", "twice_tile": "twice"}  # fmt: skip
"""Without which an output of the block table means nothing."""


def _block_table(config: T3Config, *, hits: int) -> Harness:
    """Every output beside the unprotected table's, in runs that clear and load slots before they use them."""
    hit = _Hit(lambda: BlockTable(config=config), r"rows\.row_\d+", hits)
    harness, table, m = hit.harness, hit.part, hit.harness.m
    op, slot = narrow(harness, table, config)
    pairs = hit.beside(BlockTable(config=replace(config, protect=False)))
    in_order: dict[str, list[Value]] = {
        "a block is cleared before its slot is loaded": [],
        "a slot is loaded before its blocks are looked at": [],
        "a slot is not looked at while it is loaded": [],
    }
    for mine in range(config.chunk_window):
        loads = table.load & (table.load_slot == mine)
        loaded, cleared = Signal(name=f"loaded_{mine}"), Signal(config.blocks, name=f"cleared_{mine}")
        with m.If(loads):
            m.d.sync += loaded.eq(1)
        clears = (slot == mine) & (op == BlockOp.CLEAR)
        with m.If(clears):
            m.d.sync += cleared.eq(cleared | (1 << (table.walk_number % config.blocks)))
        looks = (slot == mine) & (op != BlockOp.NONE) & (op != BlockOp.CLEAR)
        kept = (~loads | cleared.all(), ~looks | loaded, ~looks | ~loads)
        for conditions, condition in zip(in_order.values(), kept, strict=True):
            conditions.append(condition)
    for name, conditions in in_order.items():
        harness.assume(name, Cat(conditions).all())
    faults, reported = Value.cast(table.faults), Signal()
    m.d.sync += reported.eq(reported | faults.any())
    told = reported | faults.any() if hits > 1 else Const(0)
    for name, (value, expected) in pairs.items():
        if name not in ("faults", "corrected"):
            valid = pairs[_VALID[name]][1] if name in _VALID else Const(1)
            harness.claim(f"{name} is the unprotected one's", told | ~valid | (value == expected))
    if hits == 1:
        harness.claim("no fault", ~faults.any())
        harness.cover("a wrong bit is corrected, and a block is ready", table.ready_valid & (hit.struck == 1))
    else:
        harness.cover("two wrong bits are reported", faults.any())
    return harness


_QUEUES = preset("small", protect=True, token_queue=2, event_queue=3, tracker_banks=1)
_SUMS = preset("small", protect=True, event_queue=3, tracker_banks=1, chunk_window=2, descriptors=2)
_BLOCKS = preset(
    "small", protect=True, contexts=2, descriptors=2, chunk_window=2, blocks=1, tile_marks=8, event_queue=3,
    tracker_banks=1, row_index_bits=1,
)  # fmt: skip
_CORRECTED = "One wrong stored bit, whenever it comes, changes nothing but `corrected`: "
_FOUND = "With up to two wrong stored bits, whenever they come, "


def _proofs(part: str, make: Callable[..., Harness], size: T3Config, depth: int, one: str, two: str) -> list[Proof]:
    """Of a part that is hit once, and of one that is hit up to twice."""
    return [
        Proof(
            name=f"{part}-hit-{times}",
            invariants=(3,),
            says=says,
            harness=partial(make, hits=hits),
            sizes={"protected": size},
            method="bounded",
            depth=depth,
            quick=make is _ram and hits == 1,
            limit_s=1200,
        )
        for hits, times, says in ((1, "once", _CORRECTED + one), (2, "twice", _FOUND + two))
        if says not in (_CORRECTED, _FOUND)
    ]


PROOFS = (
    *_proofs(
        "blocks.memory",
        _ram,
        _QUEUES,
        9,
        one="a read gives what was written.",
        two="a read gives what was written, or is called uncorrectable.",
    ),
    *_proofs(
        "token-queue.entries",
        _token_queue,
        _QUEUES,
        7,
        one="every line that was pushed leaves. Bits looked at: four places of each entry (all are in blocks.secded).",
        two="lines are lost only with a report, and none leaves that was not pushed.",
    ),
    *_proofs(
        "event-queue.entries",
        _event_queue,
        _QUEUES,
        7,
        one="every line that was pushed leaves. Bits looked at: four places of each entry (all are in blocks.secded).",
        two="lines are lost only with a report, and none leaves that was not pushed.",
    ),
    *_proofs(
        "pending-lines.sums",
        _pending_lines,
        _SUMS,
        7,
        one="every line that was added is collected. Bits looked at: four places of each sum (all are in "
        "blocks.secded).",
        two="lines are lost only with a report, and the sum is said to be wrong when it is collected.",
    ),
    *_proofs(
        "block-table.memories",
        _block_table,
        _BLOCKS,
        8,
        one="every output is that of the unprotected table. Bits looked at: four of each word.",
        two="",
    ),
    *_proofs(
        "block-table.memories",
        _block_table,
        _BLOCKS,
        6,
        one="",
        two="every output is that of the unprotected table until the slot's fault is reported.",
    ),
)
