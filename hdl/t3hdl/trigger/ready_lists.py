"""The blocks that wait to become commands: one first-in first-out list per context, all in one table."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.choose import one_hot_index
from ..common.protected_register import ProtectedRegister, protected_register
from ..common.ram import Ram
from ..config import T3Config

ReadyBlock = data.StructLayout({"slot": 6, "block": 6, "by_chunk": 1})
"""A block whose tiles are complete; ``by_chunk``: known only because its whole chunk is."""

_Place = data.StructLayout({"slot": 6, "block": 6})


class ReadyLists(wiring.Component):
    """Linked lists: beside each block of each slot, the block that comes after it in its list.

    A block is in one list at most, so there is room for all. The oldest block of a list is in a register; the one after
    it is read when the oldest has left.

    Parameters
    ----------
    config : gives ``contexts``, ``chunk_window``, ``blocks``, ``protect``.

    Members
    -------
    push, push_context, block : In : pulse; the block becomes the youngest of the context's list. It is in no list.
    offered : In(1) : 1 whenever ``push`` is, and known earlier: what a push writes is written already.
    pop : In(contexts) : pulse, one-hot; the oldest of this list, which is not empty, leaves it, and not in the next two
        cycles, unless the list is cleared.
    oldest : Out(ReadyBlock) : the one that ``pop`` takes; follows ``pop``.
    clear : In(contexts) : pulse; the lists are empty, whatever else happens to them.
    waiting : Out(contexts) : the list is not empty.
    length : Out(13).array(contexts)
    busy : Out(1) : a pop is under way.
    uncorrectable_error : Out(contexts) : pulse; the list is empty from the next cycle on, its blocks are lost.
    corrected : Out(1) : a single-bit error of a stored word is corrected.

    Latency: 1. Throughput: a push per cycle, a pop per 3 cycles. Reset: empty.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "push": In(1), "push_context": In(4), "block": In(ReadyBlock), "offered": In(1),
            "pop": In(config.contexts), "oldest": Out(ReadyBlock),
            "clear": In(config.contexts),
            "waiting": Out(config.contexts), "length": Out(13).array(config.contexts),
            "busy": Out(1), "uncorrectable_error": Out(config.contexts), "corrected": Out(1),
        })  # fmt: skip
        self._contexts, self._protect = config.contexts, config.protect
        self._block_bits = (config.blocks - 1).bit_length()
        self._depth = config.chunk_window << self._block_bits

    def elaborate(self, platform: Any) -> Module:
        """A pop at t, a read of the block behind the oldest at t+1 (if there is one by then), the oldest at t+3."""
        m = Module()
        m.submodules.behind = table = Ram(ReadyBlock, depth=self._depth, protect=self._protect)
        layout = data.StructLayout({"oldest": ReadyBlock, "youngest": _Place, "length": range(self._depth + 1)})
        lists = [protected_register(m, layout, name=f"list_{c}", protect=self._protect) for c in range(self._contexts)]
        offered, pushed, popped, reads, refresh = (
            Signal(self._contexts, name=name) for name in ("offered", "pushed", "popped", "reads", "refresh")
        )
        left = Signal(_Place)
        for c, entry in enumerate(lists):
            m.d.comb += [
                offered[c].eq(self.offered & (self.push_context == c)),
                pushed[c].eq(self.push & (self.push_context == c)),
                reads[c].eq(popped[c] & (entry.value.length != 0)),
                self.waiting[c].eq((entry.value.length != 0) & ~entry.uncorrectable),
                self.length[c].eq(entry.value.length),
                self.uncorrectable_error[c].eq(entry.uncorrectable | (refresh[c] & table.uncorrectable)),
            ]
            self._update(m, c, entry, offered[c], pushed[c], refresh[c], table.data)
        youngest = Array(entry.value.youngest for entry in lists)[self.push_context]
        m.d.comb += [
            self.oldest.eq(Array(entry.value.oldest for entry in lists)[one_hot_index(self.pop)]),
            table.write.eq((offered & self.waiting).any()),  # nothing is behind the youngest, so it does no harm
            table.write_row.eq(self._row(youngest)),
            table.write_data.eq(self.block),
            table.read.eq(reads.any()),
            table.read_row.eq(self._row(left)),
            self.busy.eq((popped | refresh).any()),
            self.corrected.eq(Cat(entry.corrected for entry in lists).any() | (refresh.any() & table.corrected)),
        ]
        m.d.sync += [popped.eq(self.pop), refresh.eq(reads & ~self.clear)]
        with m.If(self.pop.any()):
            m.d.sync += [left.slot.eq(self.oldest.slot), left.block.eq(self.oldest.block)]
        return m

    def _row(self, place: Any) -> Value:
        """Table row of the link that follows this block."""
        return Cat(place.block[: self._block_bits], place.slot)

    def _update(
        self, m: Module, c: int, entry: ProtectedRegister, offered: Value, pushed: Value, refresh: Value, behind: Any
    ) -> None:
        """What happens to list ``c``. Its oldest block is stale for two cycles after a pop, and while it is empty."""
        state, following = entry.value, entry.following
        with m.If(pushed):
            m.d.comb += following.length.eq(Mux(self.pop[c], state.length, state.length + 1))
        with m.Elif(self.pop[c]):
            m.d.comb += following.length.eq(state.length - 1)
        with m.If(refresh):
            m.d.comb += following.oldest.eq(behind)
        with m.If(pushed):
            m.d.comb += [following.youngest.slot.eq(self.block.slot), following.youngest.block.eq(self.block.block)]
        with m.If(offered & (state.length == 0)):
            m.d.comb += following.oldest.eq(self.block)
        with m.If(self.clear[c] | self.uncorrectable_error[c]):
            m.d.comb += following.length.eq(0)
