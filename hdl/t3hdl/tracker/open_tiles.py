"""How many tiles of each live chunk have an entry: a complete chunk has none, unless it got lines beyond its total."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..common.choose import popcount
from ..config import T3Config


class OpenTiles(wiring.Component):
    """Counts the open tiles of each slot, those that have an entry, and tells when a complete chunk has one.

    If no line comes that is not expected, a tile has its last line before its chunk has. A line that comes twice either
    makes its tile complete early, and the tile's last line then begins an entry that nothing completes, or it begins
    such an entry itself.

    Parameters
    ----------
    config : gives ``chunk_window``, ``tracker_banks`` and ``open_tile_bits``.

    Members
    -------
    opens, closes : In(banks) : an entry began, or its tile was finished, in the cycle before; at most one per bank.
    slot : In(6).array(banks) : its chunk's.
    load_valid, load_slot : In : pulse; no tile of the slot is open. Wins over what opens in the same cycle.
    done : In(chunk_window) : slots whose chunk's end is told in this cycle.
    complete : In(chunk_window) : slots whose chunk is complete.
    excess : Out(1) : a tile is open, or opens, whose chunk is complete.
    busy : Out(1) : something opens or closes, so the next cycle changes something.

    Latency: 1 from ``opens`` to the count; ``excess`` in the same cycle. Throughput: one tile per bank and cycle.
    Reset: no tile is open.
    """

    def __init__(self, *, config: T3Config) -> None:
        banks, window = config.tracker_banks, config.chunk_window
        super().__init__({
            "opens": In(banks), "closes": In(banks), "slot": In(6).array(banks),
            "load_valid": In(1), "load_slot": In(6), "done": In(window), "complete": In(window), "excess": Out(1),
            "busy": Out(1),
        })  # fmt: skip
        self._window, self._bits = window, config.open_tile_bits

    def elaborate(self, platform: Any) -> Module:
        """A counter for each slot."""
        m = Module()
        left, late = Signal(self._window), Signal(self._window)
        for number in range(self._window):
            count = Signal(self._bits, name=f"open_{number}")
            mine = Cat(slot == number for slot in self.slot)
            opens, closes = self.opens & mine, self.closes & mine
            m.d.sync += count.eq(
                Mux(
                    self.load_valid & (self.load_slot == number),
                    0,
                    count + popcount(opens) - popcount(closes),
                )
            )
            m.d.comb += [left[number].eq(count.any()), late[number].eq(opens.any())]
        m.d.comb += [
            self.excess.eq(((self.done & left) | (self.complete & late)).any()),
            self.busy.eq((self.opens | self.closes).any()),
        ]
        return m
