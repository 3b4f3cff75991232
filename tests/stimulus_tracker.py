"""Random inputs for the Tracker."""

from stimulus import TILES, Stimulus, pack
from t3hdl.control import register_map as regs
from t3hdl.layouts import SlotLoad, Token


class Tracker(Stimulus):
    """Tokens and chunks with small thresholds: tiles complete, entries run out, counts pass their limits.

    From plan to plan, tiles are few or many, and may lie apart so far that all share one row of the table.
    """

    row_stride = col_stride = 1
    tiles = TILES

    def plan(self) -> None:
        self.tiles = self.rng.choice((1, 2, TILES))
        self.row_stride = self.rng.choice((1, 1 << self.config.row_index_bits))
        self.col_stride = self.rng.choice((1, 1 << self.config.column_index_bits))
        for edge in range(4):
            for wf in range(self.config.wavefronts):
                lines = self.rng.choice((0, 1, 2, 3, 4, 6, (1 << self.config.tile_count_bits) - 1))
                self.writes.append((regs.PROFILE + 8 * (16 * edge + wf), lines))

    def token(self, bank: int) -> int:
        rng, mask = self.rng, self.config.tracker_banks - 1
        row, col = rng.randrange(self.tiles) * self.row_stride, rng.randrange(self.tiles) * self.col_stride
        return pack(
            Token,
            context=self.context(), epoch=int(self.chance(0.05)),
            row=row, col=(col & ~mask) | (row & mask) ^ bank,
            wf=rng.randrange(min(16, self.config.wavefronts + 1)), right=self.chance(0.1), bottom=self.chance(0.1),
            n=rng.choice((1, 1, 1, 1, 1, 2, 2, 3, 3, 1023)),
        )  # fmt: skip

    def load(self) -> int:
        rng = self.rng
        row0, row1, col0, col1 = self.rectangle() if self.chance(0.5) else (0, TILES, 0, TILES)
        return pack(
            SlotLoad,
            row0=row0 * self.row_stride, row1=row1 * self.row_stride,
            col0=col0 * self.col_stride, col1=col1 * self.col_stride, addends=rng.choice((1, 1, 2, 255)),
            slot=rng.randrange(min(64, self.config.chunk_window + 1)), valid=self.chance(0.9),
            expected=rng.choice((1, 5, 20, 60)), context=self.load_context(), epoch=int(self.chance(0.05)),
            descriptor=rng.randrange(self.config.descriptors),
        )  # fmt: skip

    def load_context(self) -> int:
        """The context of a chunk; beside an arm or abort often the one that it names."""
        if self.sweeps():
            return self.sent[1] >> regs.Control["context"].offset & 15 if self.chance(0.5) else self.context()
        return self.context()

    def sweeps(self) -> bool:
        """Whether an arm or abort is in this cycle."""
        return bool(self.sent and self.sent[0] == regs.CONTROL and self.sent[1] & pack(regs.Control, arm=1, abort=1))

    def drive_part(self) -> None:
        for bank in range(self.config.tracker_banks):
            self.offer(f"token.{bank}", lambda bank=bank: self.token(bank))
        loads = self.armed and self.chance(0.5 if self.sweeps() else 0.1 * self.activity)
        self.pulse("load", self.load() if loads else None)
