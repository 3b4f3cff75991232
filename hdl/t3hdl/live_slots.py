"""The chunks that are live: which one does a tile belong to?"""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .choose import index_of, lowest_bit
from .config import T3Config
from .layouts import SlotLoad, Token

SlotMatch = data.StructLayout({"hit": 1, "slot": 6, "addends": 8, "descriptor": 6})
"""The live chunk of a tile; the other fields mean nothing unless ``hit``."""

_Slot = data.StructLayout({
    "valid": 1, "row0": 12, "row1": 12, "col0": 12, "col1": 12, "context": 4, "epoch": 2, "addends": 8, "descriptor": 6,
})  # fmt: skip


def _holds(slot: Any, tile: Any) -> Value:
    rows = (slot.row0 <= tile.row) & (tile.row < slot.row1)
    columns = (slot.col0 <= tile.col) & (tile.col < slot.col1)
    return slot.valid & rows & columns & (slot.context == tile.context) & (slot.epoch == tile.epoch)


class LiveSlots(wiring.Component):
    """The slot registers, compared with one token per tracker bank in every cycle.

    Parameters
    ----------
    config : gives ``chunk_window`` and ``tracker_banks``.

    Members
    -------
    load_valid, load : In : pulse; writes slot ``load.slot``.
    tile : In(Token).array(banks) : the tiles in question.
    match : Out(SlotMatch).array(banks) : the lowest slot that holds the tile.

    Latency: 0; a slot loaded at t matches from t+1. Reset: no slot is valid.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "load_valid": In(1), "load": In(SlotLoad),
            "tile": In(Token).array(config.tracker_banks),
            "match": Out(SlotMatch).array(config.tracker_banks),
        })  # fmt: skip
        self._window = config.chunk_window

    def elaborate(self, platform: Any) -> Module:
        """Registers, then per bank: all comparisons, the lowest hit, what is needed of its slot."""
        m = Module()
        slots = [Signal(_Slot, name=f"slot_{s}") for s in range(self._window)]
        for s, slot in enumerate(slots):
            with m.If(self.load_valid & (self.load.slot == s)):
                m.d.sync += [slot[field].eq(self.load[field]) for field in _Slot.members]
        needed = Array(Cat(slot.addends, slot.descriptor) for slot in slots)
        for tile, match in zip(self.tile, self.match, strict=True):
            hits, first = Signal(self._window), Signal(range(self._window))
            m.d.comb += [
                hits.eq(Cat(_holds(slot, tile) for slot in slots)),
                match.hit.eq(hits.any()),
                first.eq(index_of(lowest_bit(hits))),
                match.slot.eq(first),
                Cat(match.addends, match.descriptor).eq(needed[first]),
            ]
        return m
