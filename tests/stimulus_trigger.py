"""Random inputs for the Trigger."""

import random

from lockstep import Lockstep
from stimulus import Stimulus, pack
from t3hdl import register_map as regs
from t3hdl.config import T3Config
from t3hdl.layouts import ChunkDone, ChunkKind, SlotLoad, TileDone


class Trigger(Stimulus):
    """Chunks of few blocks; tiles and completions of the slots that were loaded, and some of others."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.bounds: dict[int, tuple[int, int, int, int]] = {}
        self.incomplete: set[int] = set()

    def plan(self) -> None:
        for i in range(self.config.descriptors):
            self.descriptor_writes(i, self.chunk())

    def chunk(self) -> tuple[int, ...]:
        """The words of a descriptor whose blocks have a place in the block table."""
        rng = self.rng
        row0, row1, col0, col1 = self.rectangle()
        row_shift, col_shift = rng.randrange(3), rng.randrange(3)
        while True:
            last_row, last_col = (row1 - row0 - 1) >> row_shift, (col1 - col0 - 1) >> col_shift
            if (last_col + 1) << last_row.bit_length() <= self.config.blocks:
                break
            row_shift, col_shift = min(3, row_shift + 1), min(3, col_shift + 1)
        kind = rng.choice((ChunkKind.DMA, ChunkKind.DMA, ChunkKind.DMA, *ChunkKind))
        tiles = {f"tiles_{place}": rng.choice((1, 2, 3)) for place in ("inner", "bottom", "right", "corner")}
        return (
            pack(regs.DESCRIPTOR_LAYOUTS[0], row0=row0, row1=row1, col0=col0, col1=col1, kind=kind,
                 op=rng.randrange(6), peer=rng.getrandbits(8)),
            pack(regs.DESCRIPTOR_LAYOUTS[1], expected=rng.getrandbits(32), addends=rng.getrandbits(8),
                 context=rng.getrandbits(4), epoch=rng.getrandbits(2), dtype=rng.getrandbits(2)),
            pack(regs.DESCRIPTOR_LAYOUTS[2], base=rng.getrandbits(39), pitch=rng.getrandbits(16)),
            pack(regs.DESCRIPTOR_LAYOUTS[3], peer_base=rng.getrandbits(39), row_shift=row_shift, col_shift=col_shift,
                 row_blocks_log=last_row.bit_length()),
            pack(regs.DESCRIPTOR_LAYOUTS[4], **tiles),
            pack(regs.DESCRIPTOR_LAYOUTS[5], last_block_row=last_row, last_block_col=last_col),
        )  # fmt: skip

    def slot(self) -> int | None:
        """A slot that was loaded; sometimes any slot, if it is one that was never loaded."""
        slot = self.rng.randrange(self.config.chunk_window)
        if self.chance(0.9) and self.bounds:
            slot = self.rng.choice(sorted(self.incomplete or self.bounds))
        return slot

    def drive_part(self) -> None:
        rng = self.rng
        if self.bench.get("load_valid"):
            load = self.bench.get("load")
            row0, row1, col0, col1 = ((load >> shift) & 0xFFF for shift in (0, 12, 24, 36))
            slot = (load >> SlotLoad["slot"].offset) & 63
            self.bounds[slot] = row0, row1, col0, col1
            self.incomplete.add(slot)
        tile = chunk = None
        if self.chance(self.rate("tiles") * self.activity):
            slot = self.slot()
            row0, row1, col0, col1 = self.bounds.get(slot, (0, 1, 0, 1))
            tile = pack(
                TileDone,
                slot=slot, row=rng.randrange(row0, row1), col=rng.randrange(col0, col1), wf=rng.randrange(16),
            )  # fmt: skip
        if self.chance(0.03 * self.activity):
            slot = self.slot()
            self.incomplete.discard(slot)
            chunk = pack(ChunkDone, slot=slot, overflowed=self.chance(0.6))
        self.pulse("tile_done", tile)
        self.pulse("chunk_done", chunk)
        self.accept("command")
