"""The trigger: from finished tiles to DMA commands, by the descriptors that software wrote."""

from typing import Any

from amaranth.hdl import Cat, Const, Fragment, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import wiring

from ..common.broadcast import ControlPulses, control_pulses, written
from ..common.state_parity import under_state_parity
from ..config import T3Config
from ..interface import register_map as regs
from ..interface.layouts import ChunkKind
from ..interface.signatures import trigger_signature
from .block_table import BlockOp, BlockTable
from .block_walker import BlockWalker
from .chunk_extent import ChunkExtent
from .chunk_progress import ChunkProgress
from .command_counters import CommandCounters
from .command_issuer import CommandIssuer
from .context_state import ContextState
from .descriptor_loader import DescriptorLoader
from .ready_lists import ReadyLists
from .settings import TriggerSettings
from .slot_state import MAX_BLOCKS, SlotState
from .tile_errors import TileErrors
from .tile_marks import usable_slots
from .watchdog import Watchdog

_PARTS = (
    "contexts", "loader", "extent", "slots", "progress", "walker", "blocks", "errors", "lists", "issuer", "meter",
    "watchdog",
)  # fmt: skip


class Trigger(wiring.Component):
    """Makes chunks live, counts their finished tiles by block, and issues one command per finished block.

    Parameters
    ----------
    config : the hardware configuration.

    Members
    -------
    tile_done_valid, tile_done : In : pulse; never refused. Ignored for a slot that is not in use.
    chunk_done_valid, chunk_done : In : pulse; every line of the chunk is counted. Ignored for a slot not in use.
    poison_valid, poison_slot : In : pulse; the chunk gives no command any more. Ignored for a slot not in use.
    abort_busy : In(1) : the tracker frees what is left of an aborted context: no chunk becomes live.
    command_done_valid, command_done : In : pulse; a command of this context is done.
    now : In : time in cycles.
    config_valid, config : In : configuration writes (DESCRIPTOR, CONTROL, QUOTA, TILE_MARKS, WATCHDOG).
    command : Out(stream(DmaCommand)) : a context's oldest ready block first, contexts in turns.
    load_valid, load : Out : pulse; makes a chunk live in the tracker.
    init_done : Out(1) : always 1.
    armed, live, chunks_done, done_mask, poisoned, context : Out : what STATUS and the registers of these names show.
    quiesced, quiet : Out(1) : quiesce is requested; nothing is in flight.
    stuck : Out(Stuck) : what the watchdog found.
    tile_twice : Out(TileTwice) : the first tile that was complete twice in an epoch.
    too_large : Out(1) : sticky; a chunk has more tiles than its slot has marks.
    backlog : Out : blocks that are ready, or whose command is not done, of all contexts, a cycle ago.
    triggers, command_stall, peak_ready : Out : what the registers of these names show.
    corrected, uncorrectable : Out(1) : sticky; a single-bit error was corrected, an error was uncorrectable.
    idle, wake_at : Out : rule 5 of docs/hardware/rules.md.

    Latency: 7 cycles from ``tile_done`` to ``command``. Throughput: one tile per cycle, one command per 3 cycles.
    Reset: 0, not armed. A disarm does the same and keeps descriptors, quotas, TILE_MARKS and watchdog cycles.

    With ``protect``, tables and long-lived registers correct one wrong bit per word. What happens to more: a word about
    a chunk poisons the chunk; a descriptor uses up a slot, poisoned; a ready list, a context's record or its quota
    poisons all chunks of the context and empties its list, and without record or quota nothing more of it is made live
    (see ``context_state`` and ``trigger_settings``); a slot's record poisons the slot, but its number
    is not in ``poisoned``, because it is lost. TILE_MARKS, and a wrong bit in any other register, poisons every slot in
    use.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__(trigger_signature(config))
        self._parameters = config
        self._settings = TriggerSettings(config=config)
        self._contexts = ContextState(config=config)
        self._loader = DescriptorLoader(config=config)
        self._extent = ChunkExtent(config=config)
        self._slots = SlotState(config=config)
        self._progress = ChunkProgress(config=config)
        self._walker = BlockWalker(config=config)
        self._blocks = BlockTable(config=config)
        self._errors = TileErrors()
        self._lists = ReadyLists(config=config)
        self._issuer = CommandIssuer(config=config)
        self._meter = CommandCounters(config=config)
        self._watchdog = Watchdog(config=config)

    @property
    def parameters(self) -> T3Config:
        """The hardware configuration (``config`` is the port of the configuration writes)."""
        return self._parameters

    @property
    def latency(self) -> int:
        """Cycles from the ``tile_done`` that completes a block to its ``command``, if nothing is before it."""
        return 7

    def elaborate(self, platform: Any) -> Module | Fragment:
        """With ``protect`` a parity watches the registers that have no check bits of their own."""
        return under_state_parity(self._top, platform, protect=self._parameters.protect)

    def _top(self, damaged: Value) -> Module:
        """A disarm resets all but the settings; the descriptor table is a memory, which a reset does not touch."""
        top, m = Module(), Module()
        control = control_pulses(top, self.config_valid, self.config)
        top.submodules.settings = self._settings
        top.submodules.core = ResetInserter(control.disarm)(m)
        for part in _PARTS:
            m.submodules[part] = getattr(self, f"_{part}")
        tile_valid, chunk_seen = Signal(), Signal()
        m.d.comb += [
            tile_valid.eq(self.tile_done_valid & self._slots.used.bit_select(self.tile_done.slot, 1)),
            chunk_seen.eq(self.chunk_done_valid & self._slots.used.bit_select(self.chunk_done.slot, 1)),
        ]
        with m.If(control.quiesce):
            m.d.sync += self.quiesced.eq(1)
        with m.If(control.resume):
            m.d.sync += self.quiesced.eq(0)
        uncorrectable_error = Signal(self._parameters.contexts)
        found = self._wire_faults(m, uncorrectable_error, damaged) if self._parameters.protect else Const(0, 1)
        self._wire_contexts(m, control)
        self._wire_loader(m, control)
        self._wire_slots(m, control)
        self._wire_blocks(m, tile_valid)
        self._wire_marks(m)
        self._wire_issuer(m, control, uncorrectable_error)
        self._wire_watchdog(m, control.arm | control.resume | tile_valid | chunk_seen)
        self._show(m, found)
        return top

    def _wire_contexts(self, m: Module, control: ControlPulses) -> None:
        """Quotas, and all that happens to contexts; progress by descriptor."""
        contexts, loader, slots, issuer = self._contexts, self._loader, self._slots, self._issuer
        m.d.comb += [
            self._settings.config_valid.eq(self.config_valid), self._settings.config.eq(self.config),
            *(mine.eq(quota) for mine, quota in zip(contexts.quota, self._settings.quota, strict=True)),
            *(mine.eq(length) for mine, length in zip(contexts.ready, self._lists.length, strict=True)),
            contexts.arm.eq(control.arm), contexts.abort.eq(control.abort), contexts.context.eq(control.context),
            contexts.first.eq(control.first), contexts.descriptors.eq(control.descriptors),
            contexts.load.eq(loader.loading), contexts.skip.eq(loader.skip), contexts.load_context.eq(loader.context),
            contexts.retire.eq(slots.retire),
            contexts.issue.eq(issuer.issue), contexts.issue_context.eq(issuer.issue_context),
            contexts.done_valid.eq(self.command_done_valid), contexts.done.eq(self.command_done),
            self._progress.arm.eq(control.arm),
            self._progress.first.eq(control.first), self._progress.descriptors.eq(control.descriptors),
            self._progress.newly_done.eq(slots.newly_done), self._progress.newly_poisoned.eq(slots.newly_poisoned),
            self._progress.aborted.eq(slots.aborted),
            *(mine.eq(number) for mine, number in zip(self._progress.numbers, slots.descriptors, strict=True)),
        ]  # fmt: skip

    def _wire_loader(self, m: Module, control: ControlPulses) -> None:
        """A descriptor becomes a row of each slot table."""
        contexts, loader, slots, blocks, issuer = (
            self._contexts,
            self._loader,
            self._slots,
            self._blocks,
            self._issuer,
        )
        rectangle, amounts, buffer, target, counts, last = (loader.descriptor[f"word{w}"] for w in range(6))
        rows, cols = (rectangle.row1 - rectangle.row0)[:12], (rectangle.col1 - rectangle.col0)[:12]
        # The words are complete before START: a cycle for the product there, one for its limit in CLEAR, before LOAD.
        blocks_given, product = Signal(7), Signal(13)
        with m.If(loader.start):
            m.d.sync += product.eq((last.last_block_row + 1) * (last.last_block_col + 1))
        with m.If(self._walker.cleared):
            m.d.sync += blocks_given.eq(Mux(product > MAX_BLOCKS, MAX_BLOCKS, product))
        places, plan, dma = blocks.load_places, issuer.load_template, rectangle.kind == ChunkKind.DMA
        m.d.comb += [
            loader.config_valid.eq(self.config_valid), loader.config.eq(self.config),
            loader.abort.eq(control.abort), loader.abort_context.eq(control.context),
            loader.hold.eq(self.abort_busy | self.quiesced),
            loader.loadable.eq(contexts.loadable),
            *(mine.eq(number) for mine, number in zip(loader.following, contexts.following, strict=True)),
            loader.free_any.eq(slots.free_any), loader.free_slot.eq(slots.free_slot),
            loader.started.eq(self._walker.clear_take), loader.cleared.eq(self._walker.cleared),
            slots.load.eq(loader.loading), slots.loading.slot.eq(loader.slot), slots.loading.dma.eq(dma),
            slots.loading.descriptor.eq(loader.number), slots.loading.context.eq(loader.context),
            slots.loading.blocks.eq(blocks_given),
            blocks.load.eq(loader.write), blocks.load_slot.eq(loader.slot),
            issuer.load.eq(loader.write), issuer.load_slot.eq(loader.slot),
            places.dma.eq(dma), places.tiles.eq(counts),
            *(places[field].eq(last[field]) for field in ("last_block_row", "last_block_col")),
            *(table[field].eq(rectangle[field]) for table in (places, plan) for field in ("row0", "col0")),
            *(table[field].eq(target[field]) for table in (places, plan)
              for field in ("row_shift", "col_shift", "row_blocks_log")),
            places.rows_log.eq(self._extent.rows_log),
            *(table.descriptor.eq(loader.number) for table in (places, plan)),
            *(table.context.eq(loader.context) for table in (places, plan)),
            plan.whole_rows.eq(rows >> target.row_shift), plan.rows_left.eq(rows & ~(~0 << target.row_shift)),
            plan.whole_cols.eq(cols >> target.col_shift), plan.cols_left.eq(cols & ~(~0 << target.col_shift)),
            *(plan[field].eq(rectangle[field]) for field in ("peer", "op")),
            *(plan[field].eq(amounts[field]) for field in ("epoch", "dtype")),
            *(plan[field].eq(buffer[field]) for field in ("base", "pitch")),
            plan.peer_base.eq(target.peer_base),
            *(plan[field].eq(last[field]) for field in last.shape().members),
        ]  # fmt: skip

    def _wire_slots(self, m: Module, control: ControlPulses) -> None:
        """What happens to slots."""
        slots, walker = self._slots, self._walker
        m.d.comb += [
            slots.chunk_done_valid.eq(self.chunk_done_valid), slots.chunk_done.eq(self.chunk_done),
            slots.poison_valid.eq(self.poison_valid), slots.poison_slot.eq(self.poison_slot),
            slots.abort.eq(control.abort), slots.abort_context.eq(control.context),
            slots.issued.eq(self._issuer.issued),
            slots.flush_take.eq(walker.flush_take),
            walker.flush_any.eq(slots.flush_any), walker.flush_slot.eq(slots.flush_slot),
            walker.clear_any.eq(self._loader.start), walker.clear_slot.eq(self._loader.slot),
            walker.scan_any.eq(self._watchdog.scan_request), walker.scan_slot.eq(slots.watch_slot),
        ]  # fmt: skip

    def _wire_blocks(self, m: Module, tile_valid: Value) -> None:
        """Tiles, else the walk, into the pipeline; ready blocks into the lists."""
        blocks, walker, lists = self._blocks, self._walker, self._lists
        m.d.comb += [
            blocks.tile_valid.eq(tile_valid),
            blocks.tile.eq(self.tile_done),
            walker.hold.eq(tile_valid),
            blocks.walk_op.eq(Mux(walker.walking, walker.op, BlockOp.NONE)),
            blocks.walk_slot.eq(walker.slot),
            blocks.walk_number.eq(walker.number),
            blocks.counts.eq(self._slots.used & ~self._slots.poisoned),
            blocks.poisoned.eq(self._slots.poisoned),
            lists.push.eq(blocks.ready_valid),
            lists.offered.eq(blocks.ready_offered),
            lists.block.eq(blocks.ready),
            lists.push_context.eq(blocks.ready_context),
        ]

    def _wire_marks(self, m: Module) -> None:
        """How the tile marks are shared; a tile that is complete twice, or a chunk with too many, poisons its slot."""
        settings, loader, extent, slots, blocks = (
            self._settings, self._loader, self._extent, self._slots, self._blocks,
        )  # fmt: skip
        twice = Mux(blocks.twice, 1 << blocks.twice_slot, 0)
        m.d.comb += [
            extent.take.eq(loader.reading), extent.place.eq(loader.descriptor.word0),
            extent.halvings.eq(settings.halvings), blocks.halvings.eq(settings.halvings),
            loader.too_large.eq(extent.too_large), loader.restart.eq(settings.marks_lost),
            self._walker.clear_last.eq(extent.last_word),
            slots.usable.eq(usable_slots(self._parameters, settings.halvings)),
            slots.cancelled.eq(twice), slots.loading.poisoned.eq(loader.refused),
            self._progress.cancel.eq(Cat((twice & slots.used & ~slots.aborted).any(), loader.refused)),
            self._progress.cancelled[0].eq(blocks.twice_tile.descriptor),
            self._progress.cancelled[1].eq(loader.number),
            self._errors.twice.eq(blocks.twice), self._errors.tile.eq(blocks.twice_tile),
            self._errors.refused.eq(loader.refused),
        ]  # fmt: skip

    def _wire_issuer(self, m: Module, control: ControlPulses, uncorrectable_error: Value) -> None:
        """From the lists to the command."""
        issuer, lists, meter = self._issuer, self._lists, self._meter
        wiring.connect(m, issuer.command, wiring.flipped(self.command))
        m.d.comb += [
            issuer.eligible.eq(Mux(self.quiesced, 0, lists.waiting & self._contexts.credit)),
            lists.clear.eq(uncorrectable_error | Mux(control.abort, 1 << control.context, 0)),
            lists.pop.eq(issuer.pop),
            issuer.oldest.eq(lists.oldest),
            issuer.poisoned.eq(self._slots.poisoned),
            issuer.abort.eq(control.abort),
            issuer.abort_context.eq(control.context),
            meter.now.eq(self.now),
            meter.issue.eq(issuer.issue),
            meter.transfer.eq(issuer.command.valid & issuer.command.ready),
            *(mine.eq(length) for mine, length in zip(meter.ready, lists.length, strict=True)),
            *(
                mine.eq(status.outstanding)
                for mine, status in zip(meter.outstanding, self._contexts.status, strict=True)
            ),
        ]

    def _wire_watchdog(self, m: Module, progress: Value) -> None:
        """Inputs of the watchdog. A scan is in flight in the walker, then in the pipeline."""
        watchdog, walker, blocks = self._watchdog, self._walker, self._blocks
        m.d.comb += [
            watchdog.now.eq(self.now),
            watchdog.cycles.eq(self._settings.cycles),
            watchdog.written.eq(written(self.config_valid, self.config, regs.WATCHDOG)),
            walker.drop_scan.eq(watchdog.written),
            blocks.drop_scan.eq(watchdog.written),
            watchdog.progress.eq(progress | self._loader.loading),
            watchdog.watching.eq(~self.quiesced & self._slots.watch_any),
            watchdog.scanning.eq((walker.walking & (walker.op == BlockOp.SCAN)) | blocks.scanning),
            watchdog.scanned_valid.eq(blocks.scanned_valid),
            watchdog.scanned.eq(blocks.scanned),
        ]

    def _wire_faults(self, m: Module, uncorrectable_error: Signal, damaged: Signal) -> Value:
        """An uncorrectable error poisons a slot, all of a context (``uncorrectable_error``), or all (``damaged``).

        Returns 1 while an error is seen.
        """
        loader, slots = self._loader, self._slots
        within, corrected, uncorrectable = Signal(self._parameters.chunk_window), Signal(), Signal()
        parts = (self._settings, self._contexts, loader, slots, self._blocks, self._lists, self._issuer)
        m.d.comb += [
            uncorrectable_error.eq(
                self._lists.uncorrectable_error
                | self._contexts.uncorrectable_error
                | self._settings.uncorrectable_error
            ),
            within.eq(Cat(uncorrectable_error.bit_select(context, 1) for context in slots.contexts)),
            slots.faults.eq(
                self._blocks.faults
                | self._issuer.faults
                | within
                | Mux(loader.uncorrectable_error, 1 << loader.slot, 0)
                | (damaged | self._settings.marks_lost).replicate(len(within))
            ),
            corrected.eq(Cat(part.corrected for part in parts).any()),
            uncorrectable.eq(
                slots.faults.any()
                | slots.uncorrectable_error.any()
                | uncorrectable_error.any()
                | self._settings.uncorrectable
                | loader.lost
                | damaged
            ),
        ]
        m.d.sync += [
            self.corrected.eq(self.corrected | corrected),
            self.uncorrectable.eq(self.uncorrectable | uncorrectable),
        ]
        return corrected | uncorrectable

    def _show(self, m: Module, found: Value) -> None:
        """The outputs. What the meter shows follows a cycle later what it counts, which changes while the part does not
        rest, by a command that is done, or by an abort: idle waits for that cycle, and not for a comparison of sums."""
        contexts, loader, slots, issuer = self._contexts, self._loader, self._slots, self._issuer
        rests, settled = Signal(name="rests"), Signal(init=1, name="settled")
        m.d.comb += [
            self.load_valid.eq(loader.load_valid), self.load.eq(loader.load),
            self.init_done.eq(1),
            self.armed.eq(Cat(status.armed for status in contexts.status).any()),
            *(mine.eq(status) for mine, status in zip(self.context, contexts.status, strict=True)),
            self.live.eq(loader.live),
            *(
                getattr(self, name).eq(getattr(part, name))
                for part, names in (
                    (self._progress, ("chunks_done", "done_mask", "poisoned")),
                    (self._meter, ("triggers", "command_stall", "peak_ready", "backlog")),
                    (self._watchdog, ("stuck", "wake_at")),
                    (self._errors, ("tile_twice", "too_large")),
                )
                for name in names
            ),
            self.quiet.eq(
                self.quiesced & loader.waits & ~loader.load_valid & issuer.waits & ~self.command.valid
                & ~contexts.working
            ),
            rests.eq(
                loader.waits & ~(loader.ready & ~self.quiesced) & ~loader.load_valid & issuer.waiting
                & ~self._walker.walking & ~slots.flush_any & ~slots.retiring
                & ~self._blocks.busy & ~self._lists.busy & ~self._progress.busy & ~found
            ),
            self.idle.eq(rests & settled),
        ]  # fmt: skip
        m.d.sync += settled.eq(rests & ~self.command_done_valid & ~self.config_valid)
