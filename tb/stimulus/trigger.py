"""Random inputs for the Trigger."""

import random
from collections import deque

from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import EPOCH_BITS, ChunkDone, ChunkKind, ContextStatus, DmaCommand, SlotLoad, TileDone
from t3hdl.interface.words import pack

from tb.lockstep import Lockstep
from tb.stimulus.base import TILES, Stimulus

_TOO_MANY = ((63, 1), (1, 63), (42, 2), (2, 42), (25, 4), (9, 12))
"""Last row and column of 128 to 130 blocks: without their highest bit, 0 to 2."""


class Trigger(Stimulus):
    """Chunks of few blocks; pulses of the slots that were loaded, and some strays; credits that come back late."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.hold = 25 + 2 * config.blocks
        self.bounds: dict[int, tuple[int, int, int, int]] = {}
        self.complete: dict[int, set[int]] = {}  # tiles that were complete since their slot was loaded
        self.incomplete: set[int] = set()
        self.given: deque[int] = deque()  # contexts of the commands that are not reported done
        self.again = 0.0  # how likely a tile that was complete before is complete again

    def plan(self) -> None:
        self.again = self.rng.choice((0.005, 0.005, 0.005, 0.5))
        if self.chance(0.5):
            self.writes.append((regs.TILE_MARKS, self.rng.choice((0, 0, 0, 1, 1, 2, self.rng.getrandbits(3)))))

    def plan_job(self, context: int, first: int, end: int) -> None:
        for i in range(first, end):
            self.descriptor_writes(i, self.chunk(context))

    def rectangle(self) -> tuple[int, int, int, int]:
        """Tiles; sometimes as many as a slot has marks, or nearly."""
        if self.chance(0.8):
            return super().rectangle()
        row_bits = self.rng.randrange(TILES.bit_length())
        col1 = max(1, min(TILES, 1 << self.config.share_bits >> row_bits))
        return 0, 1 << row_bits, self.rng.randrange(min(2, col1)), col1

    def chunk(self, context: int) -> tuple[int, ...]:
        """The words of a descriptor whose blocks have a place in the block table; seldom one of another context, or
        one that contradicts itself.
        """
        rng = self.rng
        row0, row1, col0, col1 = self.rectangle()
        row, col = (rng.choice((0, rng.randrange(4096 - 2 * TILES))) for _ in range(2))
        row_shift, col_shift = rng.randrange(3), rng.randrange(3)
        while True:
            last_row, last_col = (row1 - row0 - 1) >> row_shift, (col1 - col0 - 1) >> col_shift
            if (last_col + 1) << last_row.bit_length() <= self.config.blocks:
                break
            row_shift, col_shift = min(3, row_shift + 1), min(3, col_shift + 1)
        log = last_row.bit_length()
        if self.chance(0.2):
            places = [last_row, last_col, log, row_shift, col_shift]
            places[rng.randrange(5)] = rng.choice((rng.randrange(16), rng.randrange(16), 1 << rng.randrange(6), 63))
            last_row, last_col, log, row_shift, col_shift = *places[:2], *(place & 15 for place in places[2:])
        elif self.chance(0.05):
            last_row, last_col = rng.choice(_TOO_MANY)
        end = row + row1
        if 1 << self.config.share_bits >= TILES * TILES and self.chance(0.05):
            end = 4095  # slots have marks for all that a rectangle has: only this is too large
        kind = rng.choice((ChunkKind.DMA, ChunkKind.DMA, ChunkKind.DMA, ChunkKind.DMA, *ChunkKind))
        high = (1 + rng.randrange(2) + (1 << rng.randrange(16)) & 0xFFFF for _ in range(2))  # small without one bit
        counts = (1, 2, 3) if self.chance(0.7) else (4, 20, rng.getrandbits(16), *high)
        tiles = {f"tiles_{place}": rng.choice(counts) for place in ("inner", "bottom", "right", "corner")}
        return (
            pack(regs.DESCRIPTOR_LAYOUTS[0], row0=row + row0, row1=end, col0=col + col0, col1=col + col1,
                 kind=kind, op=rng.randrange(6), peer=rng.getrandbits(8)),
            pack(regs.DESCRIPTOR_LAYOUTS[1], expected=rng.getrandbits(32), addends=rng.getrandbits(8),
                 context=context ^ (0 if self.chance(0.9) else 1 << rng.randrange(4)),
                 epoch=rng.getrandbits(EPOCH_BITS), dtype=rng.getrandbits(2)),
            pack(regs.DESCRIPTOR_LAYOUTS[2], base=rng.getrandbits(39), pitch=rng.getrandbits(16)),
            pack(regs.DESCRIPTOR_LAYOUTS[3], peer_base=rng.getrandbits(39), row_shift=row_shift, col_shift=col_shift,
                 row_blocks_log=log),
            pack(regs.DESCRIPTOR_LAYOUTS[4], **tiles),
            pack(regs.DESCRIPTOR_LAYOUTS[5], last_block_row=last_row, last_block_col=last_col,
                 tile_rows=rng.getrandbits(11), wavefront_rows=rng.getrandbits(11), tile_lines=rng.getrandbits(4),
                 last_rows=rng.getrandbits(11), last_lines=rng.getrandbits(4), bottom=rng.getrandbits(1),
                 right=rng.getrandbits(1)),
        )  # fmt: skip

    def act(self) -> None:
        if self.chance(0.2):  # short limits, so that it asks and finds
            self.writes.append((regs.WATCHDOG, self.rng.choice((1, 20, 100))))
        if self.bench.get("command.valid") and self.chance(0.05):
            self.disarm()
        elif self.windows and self.chance(0.15):
            self.abort()
        elif not self.quiesced and self.chance(0.05):
            self.quiesce()
        elif self.chance(0.5):
            self.arm()
        else:
            super().act()

    def aborts(self) -> bool:
        """Whether an abort is in this cycle: pulses come beside it more often than by chance."""
        return bool(self.sent and self.sent[0] == regs.CONTROL and self.sent[1] & pack(regs.Control, abort=1))

    def quota(self) -> None:
        contexts = [context for context in range(self.config.contexts) if context not in self.windows]
        if contexts:
            slots, credits = self.rng.choice((0, 1, 2, 2, 3, 64, 64)), self.rng.choice((0, 1, 1, 2, 3, 255, 255))
            quota = pack(regs.Quota, ways=self.rng.getrandbits(5), slots=slots, credits=credits)
            self.writes.append((regs.QUOTA + regs.QUOTA_STRIDE * self.rng.choice(contexts), quota))

    def completed(self, context: int) -> bool:
        return bool(self.bench.get(f"context.{context}") >> ContextStatus["complete"].offset & 1)

    def free_write(self) -> tuple[int, int]:
        if self.chance(0.7):
            return regs.WATCHDOG, self.rng.choice((0, 1, 3, 20, 100, (1 << 32) - 1))
        return super().free_write()

    def slot(self) -> int:
        """A slot whose chunk is not done; sometimes one that was loaded, seldom any slot."""
        if self.bounds and self.chance(0.95):
            return self.rng.choice(sorted(self.incomplete if self.incomplete and self.chance(0.9) else self.bounds))
        return self.rng.randrange(self.config.chunk_window)

    def follow_loads(self) -> None:
        """Keep in mind which tiles a slot that becomes live has."""
        if self.bench.get("load_valid"):
            load = self.bench.get("load")
            row0, row1, col0, col1 = ((load >> shift) & 0xFFF for shift in (0, 12, 24, 36))
            slot = (load >> SlotLoad["slot"].offset) & 63
            self.bounds[slot] = row0, row1, col0, col1
            self.complete[slot] = set()
            self.incomplete.add(slot)

    def tile(self, slot: int) -> int | None:
        """A tile of this slot that was not complete before; seldom one that was, or that is beyond its chunk; None if
        none was found."""
        rng, complete = self.rng, self.complete.setdefault(slot, set())
        row0, row1, col0, col1 = self.bounds.get(slot, (0, 1, 0, 1))
        beyond = 4 if self.chance(0.02) else 0
        for _ in range(4):
            row, col = rng.randrange(row0, row1 + beyond), rng.randrange(col0, col1 + beyond)
            wf = rng.randrange(self.config.wavefronts) if self.chance(0.98) else rng.getrandbits(4)
            tile = pack(TileDone, slot=slot, row=row, col=col, wf=wf)
            if tile not in complete or self.chance(self.again):
                complete.add(tile)
                return tile
        return None

    def return_credits(self) -> None:
        """Commands are done in any order; seldom one that was never given, or of no job."""
        if "command" in self.bench.moved:
            self.given.append(self.bench.moved["command"] >> DmaCommand["context"].offset & 15)
        context = None
        if self.given and self.chance(self.rate("credits") / 2):
            self.given.rotate(-self.rng.randrange(min(4, len(self.given))))
            context = self.given.popleft()
        elif self.chance(0.005):
            context = self.rng.getrandbits(4)
        self.pulse("command_done", context)

    def drive_part(self) -> None:
        self.follow_loads()
        self.return_credits()
        tile = chunk = None
        beside = 0.5 if self.aborts() else 0
        if self.chance(max(beside, self.rate("tiles") * self.activity)):
            tile = self.tile(self.slot())
        if self.chance(max(beside, 0.03 * self.activity)):
            slot = self.slot()
            self.incomplete.discard(slot)
            chunk = pack(ChunkDone, slot=slot, overflowed=self.chance(0.95))
        self.pulse("tile_done", tile)
        self.pulse("chunk_done", chunk)
        self.bench.set("poison_valid", self.chance(max(beside / 2, 0.005 * self.activity)))
        self.bench.set("poison_slot", self.slot())
        self.accept("command")
