"""State per chunk slot: in use, done, poisoned, flush pending, blocks not yet issued."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.choose import lowest_bit, one_hot_index
from ..common.protected_register import ProtectedRegister, protected_register
from ..config import T3Config
from ..interface.layouts import ChunkDone

SlotLoading = data.StructLayout({"slot": 6, "descriptor": 6, "context": 4, "dma": 1, "blocks": 7, "poisoned": 1})
"""A chunk that comes into use; ``blocks``: how many commands it will give, if it is not ``poisoned``."""
MAX_BLOCKS = 127
"""What ``blocks`` says of a chunk that claims more: more than its block numbers, so that it is never retired."""

_State = data.StructLayout({
    "used": 1, "dma": 1, "done": 1, "all_issued": 1, "pending": 1, "poisoned": 1,
    "context": 4, "descriptor": 6, "unissued": 7,
})  # fmt: skip


class SlotState(wiring.Component):
    """A record per slot; a slot is retired when its chunk is done and its blocks are issued.

    Parameters
    ----------
    config : gives ``chunk_window``, ``protect``.

    Members
    -------
    load, loading : In : pulse; the slot is in use from the next cycle on.
    chunk_done_valid, chunk_done : In : pulse; ignored for a slot that is not in use or is done already.
    poison_valid, poison_slot : In : pulse; ignored for a slot that is not in use.
    faults : In(chunk_window) : poisons these slots, like ``poison``.
    cancelled : In(chunk_window) : the same, but for ``newly_poisoned``.
    usable : In(chunk_window) : slots that may be free.
    abort, abort_context : In : pulse; all slots in use of the context are free.
    issued : In(chunk_window) : pulse; one more block of the slot has become a command.
    flush_take : In(1) : pulse; the walker takes ``flush_slot``.
    used, poisoned : Out(chunk_window) : slots in use; poisoned slots.
    contexts : Out(4).array(chunk_window) : whose chunk is, or was last, in the slot.
    free_any, free_slot : Out : the lowest slot that is not in use.
    flush_any, flush_slot : Out : the lowest slot whose unfired blocks must be fired.
    watch_any, watch_slot : Out : the lowest slot whose chunk is not done and not poisoned.
    newly_done, newly_poisoned : Out(chunk_window) : pulses; these chunks become done, become poisoned, unless aborted.
    aborted : Out(chunk_window) : pulse; these chunks leave use with ``abort``.
    descriptors : Out(6).array(chunk_window)
    retire : Out(contexts) : pulse; a chunk of this context leaves use.
    retiring : Out(1) : pulse; a chunk leaves use.
    uncorrectable_error : Out(chunk_window) : pulse; of the record. The slot is in use and poisoned until a disarm,
        or an abort of the context that its corrupted record names.
    corrected : Out(1) : a single-bit error of a record is corrected.

    Latency: 1. Throughput: one of each pulse per cycle; an abort wins. Reset: 0.
    """

    def __init__(self, *, config: T3Config) -> None:
        window = config.chunk_window
        super().__init__({
            "load": In(1), "loading": In(SlotLoading),
            "chunk_done_valid": In(1), "chunk_done": In(ChunkDone),
            "poison_valid": In(1), "poison_slot": In(6), "faults": In(window), "cancelled": In(window),
            "abort": In(1), "abort_context": In(4),
            "issued": In(window),
            "flush_take": In(1),
            "used": Out(window), "poisoned": Out(window), "contexts": Out(4).array(window),
            "usable": In(window), "free_any": Out(1), "free_slot": Out(6),
            "flush_any": Out(1), "flush_slot": Out(6),
            "watch_any": Out(1), "watch_slot": Out(6),
            "newly_done": Out(window), "newly_poisoned": Out(window), "aborted": Out(window),
            "descriptors": Out(6).array(window),
            "retire": Out(config.contexts), "retiring": Out(1),
            "uncorrectable_error": Out(window), "corrected": Out(1),
        })  # fmt: skip
        self._window, self._protect = window, config.protect

    def _when(self, pulse: Value, slot: Value) -> Value:
        """The bit of ``slot`` in the cycle of the pulse."""
        return Mux(pulse, (1 << slot)[: self._window], 0)

    def elaborate(self, platform: Any) -> Module:
        """Masks: each event is a bit of its slot."""
        m = Module()
        slots = [protected_register(m, _State, name=f"slot_{s}", protect=self._protect) for s in range(self._window)]
        state = {field: Cat(slot.value[field] for slot in slots) for field in (
            "used", "dma", "done", "all_issued", "pending", "poisoned",
        )}  # fmt: skip
        loaded, flushed, retired = (Signal(self._window, name=name) for name in ("loaded", "flushed", "retired"))
        intact = ~self.uncorrectable_error
        free, flush = ~self.used & self.usable & intact, state["pending"] & intact
        watch = self.used & ~state["done"] & ~self.poisoned
        retirable = self.used & state["done"] & state["all_issued"] & ~self.poisoned & intact
        m.d.comb += [
            self.used.eq(state["used"]),
            self.poisoned.eq(state["poisoned"]),
            self.uncorrectable_error.eq(Cat(slot.uncorrectable for slot in slots)),
            self.aborted.eq(
                Mux(self.abort, Cat(context == self.abort_context for context in self.contexts) & self.used, 0)
            ),
            loaded.eq(self._when(self.load, self.loading.slot)),
            self.newly_done.eq(self._when(self.chunk_done_valid, self.chunk_done.slot) & self.used & ~state["done"]),
            self.newly_poisoned.eq((self._when(self.poison_valid, self.poison_slot) | self.faults) & self.used),
            flushed.eq(Mux(self.flush_take, lowest_bit(flush), 0)),
            retired.eq(lowest_bit(retirable)),
            self.retire.eq(
                Cat((retired & Cat(context == c for context in self.contexts)).any() for c in range(len(self.retire)))
            ),
            self.retiring.eq(retirable.any()),
            self.free_any.eq(free.any()),
            self.free_slot.eq(one_hot_index(lowest_bit(free))),
            self.flush_any.eq(flush.any()),
            self.flush_slot.eq(one_hot_index(lowest_bit(flush))),
            self.watch_any.eq(watch.any()),
            self.watch_slot.eq(one_hot_index(lowest_bit(watch))),
            self.corrected.eq(Cat(slot.corrected for slot in slots).any()),
        ]
        for s, slot in enumerate(slots):
            m.d.comb += [self.contexts[s].eq(slot.value.context), self.descriptors[s].eq(slot.value.descriptor)]
            poisoned = self.newly_poisoned[s] | (self.cancelled[s] & self.used[s])
            self._update(m, slot, retired[s], flushed[s], self.issued[s], self.newly_done[s], poisoned)
            with m.If(loaded[s]):
                self._load(m, slot)
                m.d.comb += slot.following.used.eq(~(self.abort & (self.abort_context == self.loading.context)))
            with m.If(self.aborted[s]):
                m.d.comb += [slot.following[field].eq(0) for field in ("used", "pending", "poisoned")]
            with m.If(slot.uncorrectable):
                m.d.comb += [slot.following.used.eq(1), slot.following.poisoned.eq(1), slot.following.pending.eq(0)]
        return m

    def _update(
        self,
        m: Module,
        slot: ProtectedRegister,
        retired: Value,
        flushed: Value,
        issued: Value,
        newly_done: Value,
        newly_poisoned: Value,
    ) -> None:
        """What happens to a slot in use."""
        state, following = slot.value, slot.following
        with m.If(retired):
            m.d.comb += following.used.eq(0)
        with m.If(flushed):
            m.d.comb += following.pending.eq(0)
        with m.If(issued):
            m.d.comb += following.unissued.eq(state.unissued - 1)
            with m.If(state.unissued == 1):
                m.d.comb += following.all_issued.eq(1)
        with m.If(newly_done):
            m.d.comb += following.done.eq(1)
            with m.If(self.chunk_done.overflowed & state.dma & ~state.poisoned):
                m.d.comb += following.pending.eq(1)
        with m.If(newly_poisoned):
            m.d.comb += following.poisoned.eq(1)

    def _load(self, m: Module, slot: ProtectedRegister) -> None:
        """A new chunk."""
        following, loading = slot.following, self.loading
        m.d.comb += [
            *(following[field].eq(0) for field in ("done", "pending")),
            *(following[field].eq(loading[field]) for field in ("dma", "context", "descriptor", "poisoned")),
            following.all_issued.eq(~loading.dma),
            following.unissued.eq(loading.blocks),
        ]
