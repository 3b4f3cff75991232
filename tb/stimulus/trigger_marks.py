"""Tiles that are complete twice, one per chunk, for the Trigger: each mark of a chunk in its turn."""

import random

from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import SlotLoad, TileDone
from t3hdl.interface.words import pack

from tb.lockstep import Lockstep
from tb.stimulus.base import TILES
from tb.stimulus.trigger import Trigger


class TriggerMarks(Trigger):
    """Short jobs of chunks with as many tiles as their slots have marks: the tile in turn, some others, it again.

    ``steps`` has the tiles that each live slot still gets.
    """

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.hold, self.activity = 4, 1.0
        self.steps: dict[int, list[int]] = {}
        self._halvings = self._turn = 0

    def plan(self) -> None:
        self._halvings = self.rng.randrange(self.config.slot_bits + 1)
        self.writes.append((regs.TILE_MARKS, self._halvings))

    def rectangle(self) -> tuple[int, int, int, int]:
        row_bits = self.rng.choice((2, 3))
        columns = 1 << self.config.share_bits + self._halvings >> row_bits
        return 0, 1 << row_bits, 0, max(1, min(TILES, columns))

    def act(self) -> None:
        """Arm, or end the job when all its live chunks had their tiles; one that gets no slot, after a while."""
        if not self.windows:
            self.steps.clear()
            self.plan()
            self.arm()
        elif not any(self.steps.values()) and self.chance(0.2 if self.steps else 0.05):
            if self.chance(0.5):
                self.disarm()
            else:
                self.abort()

    def quota(self) -> None:
        """None, so that every job gets slots."""

    def drive_part(self) -> None:
        if self.bench.get("load_valid"):
            load = self.bench.get("load")
            self.steps[load >> SlotLoad["slot"].offset & 63] = self._tiles(load)
        self.return_credits()
        slots = [slot for slot, tiles in self.steps.items() if tiles]
        slot = self.rng.choice(slots) if slots and self.chance(0.9) else None
        self.pulse("tile_done", None if slot is None else self.steps[slot].pop())
        self.accept("command")

    def _tiles(self, load: int) -> list[int]:
        """The tile in turn first and last, between them some of the others, each once."""
        row0, row1, col0, col1 = (load >> SlotLoad[side].offset & 0xFFF for side in ("row0", "row1", "col0", "col1"))
        slot = load >> SlotLoad["slot"].offset & 63
        tiles = [
            pack(TileDone, slot=slot, row=row, col=col, wf=wf)
            for wf in range(self.config.wavefronts)
            for col in range(col0, col1)
            for row in range(row0, row1)
        ]
        chosen = tiles.pop(self._turn % len(tiles))
        self._turn += 1
        return [chosen, *self.rng.sample(tiles, min(len(tiles), 4)), chosen]
