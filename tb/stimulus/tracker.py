"""Random inputs for the Tracker."""

from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import SlotLoad, Token
from t3hdl.interface.words import pack

from tb.stimulus.base import TILES, Stimulus

SIDE = range(SlotLoad["row0"].width)
"""Bits of a tile's row or column."""


class Tracker(Stimulus):
    """Tokens and chunks with small thresholds: tiles complete, entries run out, counts pass their limits.

    From plan to plan, tiles are few or many, and may lie apart so far that all share one row of the table. In a flood
    nearly every token completes a tile in a chunk that lasts, so that the banks wait for their event queues.
    """

    row = col = 0
    row_stride = col_stride = 1
    tiles = TILES
    flood = False

    def plan(self) -> None:
        self.tiles = self.rng.choice((1, 2, TILES))
        self.row_stride = self.rng.choice((1, 1 << self.config.row_index_bits))
        self.col_stride = self.rng.choice((1, 1 << self.config.column_index_bits))
        self.row, self.col = (
            self.rng.randrange(0, (1 << len(SIDE)) - TILES * stride, TILES * stride)
            for stride in (self.row_stride, self.col_stride)
        )
        ones = self.chance(0.4)  # a line completes a tile
        self.flood = ones and self.chance(0.5)
        for edge in range(4):
            for wf in range(self.config.wavefronts):
                lines = 1 if ones else self.rng.choice((0, 1, 2, 3, 4, 6, (1 << self.config.tile_count_bits) - 1))
                self.writes.append((regs.PROFILE + regs.PROFILE_STRIDE * (16 * edge + wf), lines))

    def configure(self) -> None:
        """Banks that press back are rare and soon free again: often the moment for an abort. A table with entries is
        emptied by the next arm: often the moment for a debug read."""
        if self.windows and not self.writes and self.applies_back_pressure() and self.chance(0.03):
            self.abort()
        elif not self.writes and not self.busy and self.bench.get("entries") and self.chance(0.03):
            self.debug()
        super().configure()

    def rate(self, name: str) -> float:
        """In a flood, mostly as many tokens as the banks take."""
        return max(super().rate(name), 0.9) if self.flood else super().rate(name)

    def applies_back_pressure(self) -> bool:
        """Whether a bank takes no token in this cycle, although an abort could be ordered."""
        ready = [self.bench.get(f"token.{bank}.ready") for bank in range(self.config.tracker_banks)]
        return bool(self.bench.get("init_done")) and not all(ready) and not self.bench.get("maintenance")

    def token(self, bank: int) -> int:
        rng = self.rng
        if self.flood and self.windows and self.chance(0.95):
            wf, context = rng.randrange(self.config.wavefronts), rng.choice(list(self.windows))
            row, col = self.place(bank, wf, jittered=False)
            return pack(Token, context=context, row=row, col=col, wf=wf, n=1)
        wf = self.near(rng.randrange(min(16, self.config.wavefronts + 1)), range(4), far=0.03)
        row, col = self.place(bank, wf, jittered=True)
        return pack(
            Token,
            context=self.context(),
            epoch=int(self.chance(0.05)),
            row=row,
            col=col,
            wf=wf,
            right=self.chance(0.1),
            bottom=self.chance(0.1),
            n=rng.choice((1, 1, 1, 1, 1, 2, 2, 3, 3, 1023)),
        )

    def place(self, bank: int, wf: int, *, jittered: bool) -> tuple[int, int]:
        """Row and column of one of the tiles, or near it, whose wavefront ``wf`` belongs to this bank."""
        mask, above = self.config.tracker_banks - 1, range(self.config.bank_bits, Token["row"].width)
        row, col = (
            first + self.rng.randrange(self.tiles) * stride
            for first, stride in ((self.row, self.row_stride), (self.col, self.col_stride))
        )
        if jittered:
            row, col = self.jittered(row, above), self.jittered(col, above)
        return row, (col & ~mask) | (row ^ wf) & mask ^ bank

    def load(self) -> int:
        rng = self.rng
        floods = self.flood and self.chance(0.9)
        row0, row1, col0, col1 = self.rectangle() if self.chance(0.5) and not floods else (0, TILES, 0, TILES)
        sides = {
            "row0": self.row + row0 * self.row_stride,
            "row1": self.row + row1 * self.row_stride,
            "col0": self.col + col0 * self.col_stride,
            "col1": self.col + col1 * self.col_stride,
        }
        return pack(
            SlotLoad,
            **{name: self.near(side, SIDE, far=0.03) for name, side in sides.items()},
            addends=1 if floods else rng.choice((1, 1, 2, 255)),
            slot=rng.randrange(min(64, self.config.chunk_window + 1)),
            valid=self.chance(0.9),
            expected=250 if floods else rng.choice((1, 5, 20, 60)),
            context=self.load_context(),
            epoch=int(self.chance(0.05)),
            descriptor=rng.randrange(self.config.descriptors),
        )

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
