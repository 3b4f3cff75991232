"""The live chunks, and the match of a tile against them."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.choose import lowest_index, sum_equals
from ..common.ram import Ram
from ..common.state_parity import CHECKED
from ..config import T3Config
from ..interface.layouts import SlotLoad, Token

SlotMatch = data.StructLayout({"hit": 1, "slot": 6})
"""The live chunk of a tile; ``slot`` means nothing unless ``hit``."""

SlotDetail = data.StructLayout({"addends": 8, "descriptor": 6, "corrected": 1, "uncorrectable": 1})
"""What a bank needs of the chunk besides its slot; it means nothing if ``uncorrectable``."""

_Detail = data.StructLayout({"addends": 8, "descriptor": 6})

_KEY_BITS = SlotLoad["context"].width + SlotLoad["epoch"].width
_KEY_EQUAL = 1 << _KEY_BITS
# One sum for each bound, short carry chains: the top bit says "row >= row0", "row >= row1", and so on. The tile goes in
# as it is: an inverter in front of all slots would be far from some of them. `key`: exactly _KEY_EQUAL if equal.
_Sum = data.StructLayout({"row0": 13, "row1": 13, "col0": 13, "col1": 13, "key": _KEY_BITS + 1})
_TOP = Const(0, 1)


def compare_operand_of_slot(load: Any) -> Value:
    """The summand of a slot."""
    key = (_KEY_EQUAL - Cat(load.context, load.epoch))[: _KEY_BITS + 1]
    return Cat(*((4096 - bound)[:13] for bound in (load.row0, load.row1, load.col0, load.col1)), key)


def _compare_operand_of_tile(tile: Any) -> Value:
    """The summand of a tile."""
    return Cat(tile.row, _TOP, tile.row, _TOP, tile.col, _TOP, tile.col, _TOP, tile.context, tile.epoch, _TOP)


def _contains_tile(bound: Value, side: Value) -> Value:
    """Whether the slot with this summand holds the tile with that one."""
    slot, tile = data.View(_Sum, bound), data.View(_Sum, side)
    row0, row1, col0, col1 = ((slot[name] + tile[name])[12] for name in ("row0", "row1", "col0", "col1"))
    return row0 & ~row1 & col0 & ~col1 & sum_equals(slot.key, tile.key, Const(_KEY_EQUAL, _KEY_BITS + 1))


def _context_matches(bound: Value, context: Value) -> Value:
    """Whether the slot with this summand is one of ``context``."""
    key = data.View(_Sum, bound).key
    return (key + context)[:4] == 0


class LiveSlots(wiring.Component):
    """The slot registers, compared with one token per tracker bank in every cycle.

    Parameters
    ----------
    config : gives ``chunk_window``, ``tracker_banks`` and ``protect``.

    Members
    -------
    load_valid, load : In : pulse; writes slot ``load.slot``, unless its context is retired in the same cycle.
    loads : Out(1) : the slot is written.
    retire, retired : In : pulse; slots of context ``retired`` become invalid, unless written in the same cycle.
    finish, finished : In : pulse; the chunk of slot ``finished`` is complete, and the slot becomes invalid unless it
        is written in the same cycle.
    tile : In(Token).array(banks) : the tiles to be matched.
    match : Out(SlotMatch).array(banks) : the lowest slot that holds the tile, in the same cycle.
    slot : In(6).array(banks) : a slot that was loaded.
    detail : Out(SlotDetail).array(banks) : of that slot, in the same cycle.
    live, ends : Out(chunk_window) : valid slots; those that become invalid, or get a chunk, in this cycle.
    damaged : Out(chunk_window) : slots whose parity is wrong; they match nothing.

    Latency: 0; a slot loaded at t is seen from t+1. Throughput: one tile per bank and
    cycle. Reset: no slot is valid.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "load_valid": In(1), "load": In(SlotLoad), "loads": Out(1), "retire": In(1), "retired": In(4),
            "finish": In(1), "finished": In(6),
            "tile": In(Token).array(config.tracker_banks),
            "match": Out(SlotMatch).array(config.tracker_banks),
            "slot": In(6).array(config.tracker_banks),
            "detail": Out(SlotDetail).array(config.tracker_banks),
            "live": Out(config.chunk_window), "ends": Out(config.chunk_window), "damaged": Out(config.chunk_window),
        })  # fmt: skip
        self._window, self._protect = config.chunk_window, config.protect

    def elaborate(self, platform: Any) -> Module:
        """Registers, then per bank: all comparisons, the lowest hit; the detail of a slot."""
        m = Module()
        loaded, slot = Signal(_Sum.size), Signal(self._window)
        valid = Signal(self._window, attrs=dict(CHECKED))
        # Never looked at before it is loaded, so it needs no reset; its parity does.
        bounds = [
            Signal(_Sum.size, name=f"bounds_{s}", reset_less=not self._protect, attrs=dict(CHECKED))
            for s in range(self._window)
        ]
        offered, retired = (Signal(self._window, name=name) for name in ("offered_slot", "retired_slots"))
        finished = Mux(self.finish, 1 << self.finished, 0)[: self._window] & valid
        of_context = Cat(_context_matches(bound, self.retired) for bound in bounds) & valid
        load_is_retired = self.load.context == self.retired
        m.d.comb += [
            loaded.eq(compare_operand_of_slot(self.load)),
            offered.eq(Mux(self.load_valid, 1 << self.load.slot, 0)),
            self.loads.eq(self.load_valid & ~(self.retire & load_is_retired)),
            slot.eq(Mux(self.loads, offered, 0)),
            self.live.eq(valid),
            retired.eq(finished | Mux(self.retire, of_context, 0)),
            # `retire` comes late: what ends with it, and what ends without, is there before.
            self.ends.eq(
                Mux(self.retire, finished | of_context | Mux(load_is_retired, 0, offered), finished | offered)
            ),
        ]
        m.d.sync += valid.eq((valid & ~retired & ~slot) | Mux(self.load.valid, slot, 0))
        for bound, register in zip(bounds, slot, strict=True):
            with m.If(register):
                m.d.sync += bound.eq(loaded)
        if self._protect:
            parity = Signal(self._window, attrs=dict(CHECKED))
            fresh = (loaded.xor() ^ self.load.valid).replicate(self._window)
            # A bit that was wrong when its slot was retired leaves the parity wrong.
            m.d.sync += parity.eq(((parity ^ retired) & ~slot) | (fresh & slot))
            m.d.comb += self.damaged.eq(parity ^ valid ^ Cat(bound.xor() for bound in bounds))
        for b, (tile, match) in enumerate(zip(self.tile, self.match, strict=True)):
            side, hits = Signal(_Sum.size, name=f"side_{b}"), Signal(self._window, name=f"hits_{b}")
            m.submodules[f"details_{b}"] = details = Ram(_Detail, depth=self._window, latency=0, protect=self._protect)
            m.d.comb += [
                side.eq(_compare_operand_of_tile(tile)),
                hits.eq(valid & ~self.damaged & Cat(_contains_tile(bound, side) for bound in bounds)),
                match.hit.eq(hits.any()),
                match.slot.eq(lowest_index(hits)),
                details.write.eq(slot.any()),
                details.write_row.eq(self.load.slot),
                details.write_data.addends.eq(self.load.addends),
                details.write_data.descriptor.eq(self.load.descriptor),
                details.read.eq(1),
                details.read_row.eq(self.slot[b]),
                *(self.detail[b][name].eq(details.data[name]) for name in ("addends", "descriptor")),
                self.detail[b].corrected.eq(details.corrected),
                self.detail[b].uncorrectable.eq(details.uncorrectable),
            ]
        return m
