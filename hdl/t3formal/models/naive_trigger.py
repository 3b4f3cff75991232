"""The trigger written a second time, straight from docs/hardware/trigger.md, for proofs that the RTL does the same.

Every table is an array of registers, every list a shift register, and nothing is shared with the RTL but the words
(``layouts``), the register map and the ports. Only ``protect`` = 0 and TILE_MARKS = 0; ``idle`` and ``wake_at`` are
not made.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Signature
from t3hdl.common.broadcast import control_written
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkKind
from t3hdl.interface.signatures import trigger_signature

from .naive_trigger_blocks import block_pipeline, block_walker, too_large
from .naive_trigger_commands import commands
from .naive_trigger_state import Chunk, Issuing, Loading, NaiveState, Walk, any_of, in_turn, lowest, pick


class NaiveTrigger(wiring.Component):
    """Cycle by cycle what docs/hardware/trigger.md says of the trigger.

    Parameters
    ----------
    config : the hardware configuration, without ``protect``.

    Members
    -------
    table : In(Chunk).array(descriptors) : what the descriptor table holds: it is not made here.
    and all of ``trigger_signature``.
    """

    def __init__(self, *, config: T3Config) -> None:
        ports: dict[str, Any] = dict(trigger_signature(config).members.items())
        super().__init__(Signature({**ports, "table": In(Chunk).array(config.descriptors)}))
        self.parameters = config
        self.state = NaiveState(config)

    def elaborate(self, platform: Any) -> Module:
        """What happens to a context in the cycle of its abort is undone at the end, and a disarm undoes all."""
        m, state = Module(), self.state
        written = control_written(self.config_valid, self.config)
        self.control = data.View(regs.Control, self.config.data[: regs.Control.size])
        self.arm, self.abort, self.disarm, self.quiesce, self.resume = (
            Signal(name=f"naive_{name}") for name in ("arm", "abort", "disarm", "quiesce", "resume")
        )
        for name in ("arm", "abort", "disarm", "quiesce", "resume"):
            m.d.comb += getattr(self, name).eq(written & self.control[name])
        self._settings(m)
        self._pulses(m, state)
        self._loader(m, state)
        self.scan_taken = block_walker(m, self, state)
        commands(m, self, state, block_pipeline(m, self, state))
        self._contexts(m, state)
        self._watchdog(m, state)
        self._abort(m, state)
        with m.If(self.disarm):
            m.d.sync += [Value.cast(register).eq(0) for register in state.every]
        self._outputs(m, state)
        return m

    def aborted(self, context: Any) -> Value:
        """Whether ``context`` is aborted in this cycle."""
        return self.abort & (self.control.context == context)

    def _settings(self, m: Module) -> None:
        """What a disarm keeps: quotas, the watchdog's cycles."""
        n = self.parameters.contexts
        self.quotas = [Signal(regs.Quota, name=f"naive_quota_{c}", init=regs.RESET[regs.QUOTA]) for c in range(n)]
        self.cycles = Signal(32, name="naive_cycles")
        self.write_watchdog = self.config_valid & (self.config.address == regs.WATCHDOG)
        with m.If(self.write_watchdog):
            m.d.sync += self.cycles.eq(self.config.data)
        for c, quota in enumerate(self.quotas):
            with m.If(self.config_valid & (self.config.address == regs.QUOTA + 8 * c)):
                m.d.sync += quota.as_value().eq(self.config.data)

    def _pulses(self, m: Module, state: NaiveState) -> None:
        """``chunk_done``, ``poison``, and slots that retire."""
        used = [slot.used for slot in state.slots]
        self.tile_seen, self.chunk_seen = Signal(name="naive_tile_seen"), Signal(name="naive_chunk_seen")
        m.d.comb += self.tile_seen.eq(self.tile_done_valid & pick(used, self.tile_done.slot))
        m.d.comb += self.chunk_seen.eq(self.chunk_done_valid & pick(used, self.chunk_done.slot))
        retirable = [slot.used & slot.done & slot.all_issued & ~slot.poisoned for slot in state.slots]
        self.retires = [any_of(retirable) & (lowest(retirable) == s) for s in range(len(retirable))]
        for s, slot in enumerate(state.slots):
            mine = slot.used & ~self.aborted(slot.context)
            with m.If(self.chunk_done_valid & (self.chunk_done.slot == s) & mine & ~slot.done):
                m.d.sync += [slot.done.eq(1), state.chunks_done.eq(state.chunks_done + 1)]
                m.d.sync += state.done_mask.bit_select(slot.descriptor, 1).eq(1)
                with m.If(self.chunk_done.overflowed & slot.dma & ~slot.poisoned):
                    m.d.sync += slot.pending.eq(1)
            with m.If(self.poison_valid & (self.poison_slot == s) & mine):
                m.d.sync += [slot.poisoned.eq(1), state.poisoned.bit_select(slot.descriptor, 1).eq(1)]
            with m.If(self.retires[s]):
                m.d.sync += slot.used.eq(0)

    def _loader(self, m: Module, state: NaiveState) -> None:
        used = [slot.used for slot in state.slots]
        wanted = [
            context.armed & (context.following < context.end) & (context.slots < quota.slots)
            for context, quota in zip(state.contexts, self.quotas, strict=True)
        ]
        winner, chunk = in_turn(m, wanted, state.loader_turn), state.chunk
        self.taken = any_of([~bit for bit in used]) & ~self.abort_busy & ~state.quiesced & any_of(wanted)
        continues = ~self.aborted(state.loader_context)
        m.d.sync += state.load_valid.eq(0)
        with m.If(state.load_valid):
            m.d.sync += state.live.eq(state.live + 1)
        with m.Switch(state.loading):
            with m.Case(Loading.WAIT), m.If(self.taken):
                m.d.sync += state.loader_turn.eq(_after(winner, len(wanted)))
                with m.If(~self.aborted(winner)):
                    m.d.sync += [state.loading.eq(Loading.READ), state.reading.eq(0)]
                m.d.sync += [state.loader_context.eq(winner), state.loader_slot.eq(lowest([~bit for bit in used]))]
                m.d.sync += state.loader_number.eq(pick([c.following for c in state.contexts], winner))
            with m.Case(Loading.READ):
                m.d.sync += state.reading.eq(state.reading + 1)
                with m.If(state.reading == 6):
                    read = data.View(Chunk, pick(list(self.table), state.loader_number))
                    goes = (read.place.kind == ChunkKind.DMA) | (read.place.kind == ChunkKind.LOCAL)
                    goes = goes & (read.amount.context == state.loader_context)
                    m.d.sync += [chunk.eq(read), state.loading.eq(Loading.SKIP)]
                    with m.If(goes):
                        m.d.sync += state.loading.eq(Loading.START)
            with m.Case(Loading.SKIP):
                m.d.sync += state.loading.eq(Loading.WAIT)
                with m.If(continues):
                    m.d.sync += state.live.eq(state.live + 1)
            with m.Case(Loading.LOAD):
                m.d.sync += state.loading.eq(Loading.WAIT)
                with m.If(continues):
                    self._load(m, state)

    def _load(self, m: Module, state: NaiveState) -> None:
        """The cycle in which a chunk takes its slot."""
        chunk, is_dma = state.chunk, state.chunk.place.kind == ChunkKind.DMA
        blocks = (chunk.last.last_block_row + 1) * (chunk.last.last_block_col + 1)
        for s, slot in enumerate(state.slots):
            with m.If(state.loader_slot == s):
                m.d.sync += [slot.used.eq(1), slot.done.eq(0), slot.poisoned.eq(0), slot.dma.eq(is_dma)]
                m.d.sync += [slot.all_issued.eq(~is_dma), slot.unissued.eq(blocks), slot.chunk.eq(chunk)]
                with m.If(blocks > 127):
                    m.d.sync += slot.unissued.eq(127)
                m.d.sync += [slot.context.eq(state.loader_context), slot.descriptor.eq(state.loader_number)]
        place, load = chunk.place, state.load
        with m.If(too_large(self.parameters, chunk.place)):
            m.d.sync += [state.too_large.eq(1), state.live.eq(state.live + 1)]
            m.d.sync += state.poisoned.bit_select(state.loader_number, 1).eq(1)
            for s, slot in enumerate(state.slots):
                with m.If(state.loader_slot == s):
                    m.d.sync += slot.poisoned.eq(1)
        with m.Else():
            m.d.sync += state.load_valid.eq(1)
        m.d.sync += [load.eq(0), load.valid.eq(1), load.slot.eq(state.loader_slot)]
        m.d.sync += [load[name].eq(place[name]) for name in ("row0", "row1", "col0", "col1")]
        m.d.sync += [load[name].eq(chunk.amount[name]) for name in ("expected", "addends", "context", "epoch")]
        m.d.sync += load.descriptor.eq(state.loader_number)

    def _contexts(self, m: Module, state: NaiveState) -> None:
        """Arming, and what loads and retirements do to a context; ready lists are with the commands."""
        first, n = self.control.first, self.control.descriptors
        for c, context in enumerate(state.contexts):
            works = state.loader_context == c
            loads = (state.loading == Loading.LOAD) & works
            passes = loads | ((state.loading == Loading.SKIP) & works)
            retires = any_of([gone & (slot.context == c) for gone, slot in zip(self.retires, state.slots, strict=True)])
            m.d.sync += [context.following.eq(context.following + passes)]
            m.d.sync += context.slots.eq(context.slots + loads - retires)
            with m.If(self.arm & (self.control.context == c)):
                m.d.sync += [context.armed.eq(1), context.following.eq(first), context.end.eq(first + n)]
        with m.If(self.arm):
            for d in range(64):
                with m.If((d >= first) & (d < first + n)):
                    m.d.sync += [state.done_mask[d].eq(0), state.poisoned[d].eq(0)]
        with m.If(self.quiesce):
            m.d.sync += state.quiesced.eq(1)
        with m.If(self.resume):
            m.d.sync += state.quiesced.eq(0)

    def _watchdog(self, m: Module, state: NaiveState) -> None:
        """When something last happened, and what a scan found: noted by stage C, shown after the walk's last block."""
        loads = state.loading == Loading.LOAD
        with m.If(self.arm | self.resume | loads | self.tile_seen | self.chunk_seen):
            m.d.sync += state.since.eq(self.now)
        step, noted, slots = state.stage_c, state.noted, state.slots
        counts = pick([pick(slot.counts, step.number) for slot in slots], step.slot)
        fired = pick([pick(slot.fired, step.number) for slot in slots], step.slot)
        lives = pick([slot.used & ~slot.poisoned for slot in slots], step.slot)
        scans = step.valid & (step.op == Walk.SCAN)
        found = Signal.like(noted)
        m.d.comb += found.eq(noted)
        with m.If(scans & lives & step.inside & ~fired & ~noted.valid):
            m.d.comb += [found.valid.eq(1), found.block.eq(step.number), found.expected.eq(step.tiles)]
            m.d.comb += found.seen.eq(counts)
        with m.If(scans):
            m.d.sync += noted.eq(found)
            with m.If(step.last):
                m.d.sync += [state.stuck.eq(found), state.stuck.valid.eq(1), state.scanning.eq(0)]
        with m.If(self.scan_taken):
            m.d.sync += [state.scanning.eq(1), noted.eq(0)]
            for slot in reversed(slots):
                with m.If(slot.used & ~slot.done & ~slot.poisoned):
                    m.d.sync += [noted.descriptor.eq(slot.descriptor), noted.context.eq(slot.context)]
        with m.If(self.write_watchdog):
            m.d.sync += [state.stuck.eq(0), state.scanning.eq(0)]

    def _abort(self, m: Module, state: NaiveState) -> None:
        for c, context in enumerate(state.contexts):
            with m.If(self.aborted(c)):
                cleared = [context.armed, context.following, context.end, context.slots, context.ready]
                m.d.sync += [register.eq(0) for register in cleared]
                for slot in state.slots:
                    with m.If(slot.used & (slot.context == c)):
                        m.d.sync += [slot.used.eq(0), slot.pending.eq(0), slot.poisoned.eq(0)]
                with m.If((state.loading != Loading.WAIT) & (state.loader_context == c)):
                    m.d.sync += state.loading.eq(Loading.WAIT)
                with m.If((state.issuing != Issuing.FETCH) & (state.issuer_context == c)):
                    m.d.sync += state.issuing.eq(Issuing.FETCH)

    def _outputs(self, m: Module, state: NaiveState) -> None:
        outstanding = any_of([context.outstanding.any() for context in state.contexts])
        still = (state.loading == Loading.WAIT) & ~state.load_valid & (state.issuing == Issuing.FETCH)
        m.d.comb += [
            self.init_done.eq(1),
            self.command.valid.eq(state.command_valid), self.command.payload.eq(state.command),
            self.load_valid.eq(state.load_valid), self.load.eq(state.load),
            self.armed.eq(Cat(context.armed for context in state.contexts).any()),
            self.live.eq(state.live), self.chunks_done.eq(state.chunks_done),
            self.done_mask.eq(state.done_mask), self.poisoned.eq(state.poisoned),
            self.quiesced.eq(state.quiesced),
            self.quiet.eq(state.quiesced & still & ~state.command_valid & ~outstanding),
            self.tile_twice.eq(state.tile_twice), self.too_large.eq(state.too_large),
            self.stuck.eq(state.stuck), self.triggers.eq(state.triggers), self.command_stall.eq(state.stall),
            self.peak_ready.eq(state.peak), self.backlog.eq(state.backlog),
        ]  # fmt: skip
        for port, context in zip(self.context, state.contexts, strict=True):
            m.d.comb += [port[name].eq(getattr(context, name)) for name in port.shape().members if name != "complete"]
            ended = context.armed & (context.following == context.end) & (context.slots == 0)
            m.d.comb += port.complete.eq(ended)


def _after(number: Value, n: int) -> Value:
    """The next one in cyclic order of ``n``."""
    return (number + 1) % n
