"""The trigger: from finished tiles to DMA commands, by the descriptors that software wrote."""

from typing import Any

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring

from .block_table import BlockTable
from .block_walker import BlockWalker
from .broadcast import control_pulses
from .command_issuer import CommandIssuer
from .config import T3Config
from .descriptor_loader import DescriptorLoader
from .layouts import NEVER, ChunkKind
from .signatures import trigger_signature
from .slot_state import SlotState


class Trigger(wiring.Component):
    """Makes chunks live, counts their finished tiles by block, and issues one command per finished block.

    Parameters
    ----------
    config : the hardware configuration.

    Members
    -------
    tile_done_valid, tile_done : In : pulse; never refused. Ignored for a slot that is not in use.
    chunk_done_valid, chunk_done : In : pulse; every line of the chunk is counted. Ignored for a slot not in use.
    config_valid, config : In : configuration writes (DESCRIPTOR, CONTROL).
    command : Out(stream(DmaCommand)) : oldest ready block first.
    load_valid, load : Out : pulse; makes a chunk live in the tracker.
    init_done : Out(1) : always 1.
    armed, live, chunks_done, done_mask : Out : progress since arm.
    idle, wake_at : Out : rule 5 of docs/hardware.md; ``wake_at`` is ``NEVER``.

    Latency: 6 cycles from ``tile_done`` to ``command``. Throughput: one tile per cycle, one command per 3 cycles.
    Reset: 0, not armed. A disarm does the same and keeps the descriptors.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__(trigger_signature(config))
        self._parameters = config

    @property
    def parameters(self) -> T3Config:
        """The hardware configuration (``config`` is the port of the configuration writes)."""
        return self._parameters

    @property
    def latency(self) -> int:
        """Cycles from the ``tile_done`` that completes a block to its ``command``, if nothing is before it."""
        return 6

    def elaborate(self, platform: Any) -> Module:
        """A disarm resets everything; the descriptor table is a memory, which a reset does not touch."""
        top, m = Module(), Module()
        control = control_pulses(top, self.config_valid, self.config)
        top.submodules.core = ResetInserter(control.disarm)(m)
        m.submodules.loader = loader = DescriptorLoader(config=self._parameters)
        m.submodules.slots = slots = SlotState(config=self._parameters)
        m.submodules.walker = walker = BlockWalker(config=self._parameters)
        m.submodules.blocks = blocks = BlockTable(config=self._parameters)
        m.submodules.issuer = issuer = CommandIssuer(config=self._parameters)
        wiring.connect(m, issuer.command, wiring.flipped(self.command))

        tile_valid = Signal()
        m.d.comb += [
            tile_valid.eq(self.tile_done_valid & slots.used.bit_select(self.tile_done.slot, 1)),
            blocks.tile_valid.eq(tile_valid), blocks.tile.eq(self.tile_done),
            slots.chunk_done_valid.eq(self.chunk_done_valid), slots.chunk_done.eq(self.chunk_done),
            walker.flush_any.eq(slots.flush_any), walker.flush_slot.eq(slots.flush_slot),
            slots.flush_take.eq(walker.flush_take),
            walker.clear_any.eq(loader.start), walker.clear_slot.eq(loader.slot),
            loader.started.eq(walker.clear_take), loader.cleared.eq(walker.cleared),
            walker.hold.eq(tile_valid),
            blocks.walk_valid.eq(walker.walking), blocks.walk_flush.eq(walker.flush),
            blocks.walk_slot.eq(walker.slot), blocks.walk_block.eq(walker.block),
            issuer.ready_valid.eq(blocks.ready_valid), issuer.ready.eq(blocks.ready),
            slots.issue.eq(issuer.issue), slots.issue_slot.eq(issuer.issue_slot),
            loader.config_valid.eq(self.config_valid), loader.config.eq(self.config),
            loader.free_any.eq(slots.free_any), loader.free_slot.eq(slots.free_slot),
        ]  # fmt: skip
        self._load(m, loader, slots, blocks, issuer)
        m.d.comb += [
            self.load_valid.eq(loader.load_valid), self.load.eq(loader.load),
            self.init_done.eq(1),
            self.armed.eq(loader.armed), self.live.eq(loader.live),
            self.chunks_done.eq(slots.chunks_done), self.done_mask.eq(slots.done_mask),
            self.idle.eq(loader.waiting & issuer.waiting & ~walker.walking & ~slots.flush_any & ~slots.retiring
                         & ~blocks.busy),
            self.wake_at.eq(NEVER),
        ]  # fmt: skip
        return top

    def _load(
        self, m: Module, loader: DescriptorLoader, slots: SlotState, blocks: BlockTable, issuer: CommandIssuer
    ) -> None:
        """A descriptor becomes a row of each slot table."""
        rectangle, amounts, buffer, target, counts, last = (loader.descriptor[f"word{w}"] for w in range(6))
        places, plan = blocks.load_places, issuer.load_plan
        dma = rectangle.kind == ChunkKind.DMA
        for part in (slots, blocks, issuer):
            m.d.comb += [part.load.eq(loader.write), part.load_slot.eq(loader.slot)]
        m.d.comb += [
            slots.load_dma.eq(dma),
            slots.load_descriptor.eq(loader.number),
            slots.load_blocks.eq((last.last_block_row + 1) * (last.last_block_col + 1)),
            places.dma.eq(dma),
            places.tiles.eq(counts),
            *(places[field].eq(last[field]) for field in last.shape().members),
            *(table[field].eq(rectangle[field]) for table in (places, plan) for field in ("row0", "col0")),
            *(table[field].eq(target[field]) for table in (places, plan)
              for field in ("row_shift", "col_shift", "row_blocks_log")),
            *(plan[field].eq(rectangle[field]) for field in ("row1", "col1", "peer", "op")),
            *(plan[field].eq(amounts[field]) for field in ("context", "epoch", "dtype")),
            *(plan[field].eq(buffer[field]) for field in ("base", "pitch")),
            plan.peer_base.eq(target.peer_base),
            plan.descriptor.eq(loader.number),
        ]  # fmt: skip
