"""Chunks for the Tracker that get exactly the lines that they expect, one after the other in each slot."""

import random

from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkDone, ConfigWrite, SlotLoad, Token
from t3hdl.interface.words import pack

from tb.lockstep import Lockstep
from tb.stimulus.base import Stimulus


class TrackerChunks(Stimulus):
    """Several chunks at a time, each in a row of tiles of its own; of each bank's tables, all use one row.

    Parameters
    ----------
    tile_lines : lines of a tile, fewer if the counters are narrow.
    columns : tiles of a wavefront in each bank.
    """

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random, *, tile_lines: int, columns: int) -> None:
        super().__init__(bench, config, rng)
        self.slots = min(2 * config.event_queue, config.chunk_window)
        self._columns, self._wavefronts = columns, min(2, config.wavefronts)
        tiles = config.tracker_banks * columns * self._wavefronts
        self._tile_lines = min(
            tile_lines, (1 << config.tile_count_bits) - 1, ((1 << config.chunk_count_bits) - 1) // tiles
        )
        self._expected = tiles * self._tile_lines
        self._loads = self.epoch = 0
        self.free = list(range(self.slots))
        self.left: dict[int, list[list[list[int]]]] = {}  # of a slot, per bank: column, wavefront, lines to come
        for edge in range(4):
            for wf in range(self._wavefronts):
                self.writes.append((regs.PROFILE + regs.PROFILE_STRIDE * (16 * edge + wf), self._tile_lines))

    def configure(self) -> None:
        """The profile."""
        self.activity = 1.0
        write = self.writes.popleft() if self.writes else None
        self.pulse("config", pack(ConfigWrite, address=write[0], data=write[1]) if write else None)

    def drive_part(self) -> None:
        if self.bench.get("chunk_done_valid"):
            self.free.append(self.bench.get("chunk_done") >> ChunkDone["slot"].offset & 63)
        loads = self.free and not self.bench.driven("config_valid") and self.bench.get("init_done")
        self.pulse("load", self._load(self.free.pop(0)) if loads else None)
        for bank in range(self.config.tracker_banks):
            if any(banks[bank] for banks in self.left.values()):
                self.offer(f"token.{bank}", lambda bank=bank: self._token(bank))
            elif self.was_taken(f"token.{bank}"):
                self.bench.set(f"token.{bank}.valid", 0)

    def rate(self, name: str) -> float:
        """Mostly as many tokens as the banks take."""
        return max(super().rate(name), 0.7)

    def _load(self, slot: int) -> int:
        row, banks, self._loads = slot << self.config.row_index_bits, range(self.config.tracker_banks), self._loads + 1
        self.left[slot] = [
            [[c, wf, self._tile_lines] for c in range(self._columns) for wf in range(self._wavefronts)] for _ in banks
        ]
        return pack(
            SlotLoad,
            row0=row, row1=row + len(banks), col1=4095, addends=1, slot=slot, valid=1, expected=self._expected,
            epoch=self.epoch, descriptor=self._loads % self.config.descriptors,
        )  # fmt: skip

    def _token(self, bank: int) -> int:
        """Some lines of one of the first tiles of a chunk: sometimes all that it lacks."""
        slot = self.rng.choice([slot for slot, banks in self.left.items() if banks[bank]])
        tiles = self.left[slot][bank]
        tile = self.rng.choice(tiles[:3])
        n = min(tile[2], self.rng.choice((1, 1, 2, 3, tile[2])))
        tile[2] -= n
        if not tile[2]:
            tiles.remove(tile)
        # Of a tile's row the low bits choose the bank, with its wavefront, and not the row of the bank's table.
        row = slot << self.config.row_index_bits | tile[1] & self.config.tracker_banks - 1 ^ bank
        return pack(Token, epoch=self.epoch, row=row, col=tile[0] << self.config.column_index_bits, wf=tile[1], n=n)


class TrackerOverflows(TrackerChunks):
    """More tiles at a time than entries: few find one, the others' lines overflow. A disarm clears the marks now and
    then."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng, tile_lines=12, columns=max(2, 8 // config.tracker_banks))
        self._period = 100 * config.tracker_banks + 100

    def configure(self) -> None:
        """The profile, then a disarm in every period."""
        if self.bench.cycle % self._period == 0:
            self.control(disarm=1)
            self.free, self.left = list(range(self.slots)), {}
            self.epoch = (self.epoch + 1) & 3  # what is still offered is of no chunk then
        super().configure()


class TrackerTiles(TrackerChunks):
    """A tile in nearly every cycle, of one line, in chunks as large as their counters allow: for high counts."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        most = ((1 << config.chunk_count_bits) - 1) // (config.tracker_banks * min(2, config.wavefronts))
        super().__init__(bench, config, rng, tile_lines=1, columns=min(64, most))
