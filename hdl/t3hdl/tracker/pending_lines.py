"""Lines that a tracker bank has counted without a tile entry, by chunk slot, until they are collected."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.ram import Ram
from ..config import T3Config
from ..interface.layouts import COUNT_BITS


class PendingLines(wiring.Component):
    """A sum for each chunk slot, so that a bank never waits for the lines of one chunk or of many to be counted.

    A sum that is not pending is 0, whatever its word holds, so collecting it writes nothing. The sums are kept twice:
    one copy is read where lines are added, one where they are collected.

    Parameters
    ----------
    config : gives ``chunk_window``, ``pending_bits`` and ``protect``: a sum that cannot be corrected is ``damaged``
        from then on, until it is collected.

    Members
    -------
    add, slot, lines : In : lines of a slot come in.
    live : In(chunk_window) : slots with a chunk; lines of others are dropped.
    ends : In(chunk_window) : slots that lose their chunk, or get a new one, in this cycle: what is pending is dropped.
    done, complete : In(chunk_window) : slots whose chunk's end is told in this cycle; whose chunk is complete.
    collect, collected : In : the sum of slot ``collected`` is taken.
    pending : Out(chunk_window) : slots with a sum.
    total : Out(pending_bits) : the sum of slot ``collected``, 0 if it is not pending.
    damaged : Out(1) : of ``total``, while ``collect``: the sum is wrong.
    excess : Out(1) : lines came, or are pending, for a chunk that is complete.
    corrected, uncorrectable : Out(1) : a sum that was read was corrected, was uncorrectable.

    Latency: 1. Throughput: one addition and one sum per cycle. Reset: nothing pending.
    """

    def __init__(self, *, config: T3Config) -> None:
        window = config.chunk_window
        super().__init__({
            "add": In(1), "slot": In(6), "lines": In(COUNT_BITS),
            "live": In(window), "ends": In(window), "done": In(window), "complete": In(window),
            "collect": In(1), "collected": In(6),
            "pending": Out(window), "total": Out(config.pending_bits), "damaged": Out(1), "excess": Out(1),
            "corrected": Out(1), "uncorrectable": Out(1),
        })  # fmt: skip
        self._parameters = config

    def elaborate(self, platform: Any) -> Module:
        """Two copies of the sums, a bit per slot."""
        m = Module()
        config = self._parameters
        word = data.StructLayout({"lines": config.pending_bits, **({"damaged": 1} if config.protect else {})})
        added_to, taken = (Ram(word, depth=config.chunk_window, latency=0, protect=config.protect) for _ in range(2))
        m.submodules.added_to, m.submodules.taken = added_to, taken
        bit, taken_bit, added = (Signal(config.chunk_window, name=name) for name in ("bit", "taken_bit", "added"))
        grows, taken_is_pending = Signal(name="grows"), Signal(name="taken_is_pending")
        written = Signal(word)
        m.d.comb += [
            bit.eq(1 << self.slot),
            taken_bit.eq(1 << self.collected),
            added.eq(Mux(self.add, bit & self.live, 0)),
            # Slots are compared by number, so that what is collected, which comes late, passes one gate.
            grows.eq((self.pending & bit).any() & ~(self.collect & (self.slot == self.collected))),
            taken_is_pending.eq((self.pending & taken_bit).any()),
            # Whether it grows depends on what is collected, which comes late: the sum is there before it.
            written.lines.eq(Mux(grows, added_to.data.lines + self.lines, self.lines)),
            self.total.eq(Mux(taken_is_pending, taken.data.lines, 0)),
            self.excess.eq(
                (self.add & (bit & ~self.live & self.complete).any()) | (self.done & (self.pending | added)).any()
            ),
            added_to.read.eq(self.add & grows),
            taken.read.eq(self.collect & taken_is_pending),
            self.corrected.eq(added_to.corrected | taken.corrected),
            self.uncorrectable.eq(added_to.uncorrectable | taken.uncorrectable),
        ]
        if config.protect:
            m.d.comb += [
                written.damaged.eq(grows & (added_to.uncorrectable | added_to.data.damaged)),
                self.damaged.eq(taken.read & (taken.uncorrectable | taken.data.damaged)),
            ]
        for copy, row in ((added_to, self.slot), (taken, self.collected)):
            m.d.comb += [
                copy.write.eq(added.any()),
                copy.write_row.eq(self.slot),
                copy.write_data.eq(written),
                copy.read_row.eq(row),
            ]
        remaining = self.pending & ~Mux(self.collect, taken_bit, 0)
        m.d.sync += self.pending.eq((remaining | added) & ~self.ends)
        return m
