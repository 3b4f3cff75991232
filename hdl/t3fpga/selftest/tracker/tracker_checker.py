"""Are the tracker's tiles and chunks finished once each, not too early, and all of them at the end?"""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from t3hdl.config import T3Config
from t3hdl.interface.layouts import ChunkDone, TileDone

from .. import gemm
from ..completions import Completions
from ..report.failures import Failure
from ..rounds import Seed

_TILE_BITS, _CHUNK_BITS = 5, 7
"""Enough for the updates of a tile, and of a chunk."""


class TrackerChecker(wiring.Component):
    """Counts the tokens of each wavefront tile and each chunk, and compares what the tracker says with that.

    Chunks are expected in the slots of :class:`~t3fpga.selftest.chunk_loader.ChunkLoader`.

    Parameters
    ----------
    config : the hardware configuration.

    Members
    -------
    seed : In : of the round.
    taken, address : In : a token was taken; a line of its tile.
    tile_done_valid, tile_done, chunk_done_valid, chunk_done : In : of the tracker.
    forget, examine : In : pulses; everything is forgotten; everything must have happened. The tracker must be at rest.
    failures : Out(Failure).array(2) : pulses; of a tile, of a chunk.
    checksum : Out(32) : the seed, and then for each tile examined: rotated left by 5, XOR updates and completion.
    busy : Out(1) : what ``forget`` or ``examine`` began is not over.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "seed": In(Seed), "taken": In(1), "address": In(gemm.ADDRESS_BITS),
            "tile_done_valid": In(1), "tile_done": In(TileDone), "chunk_done_valid": In(1), "chunk_done": In(ChunkDone),
            "forget": In(1), "examine": In(1), "failures": Out(Failure).array(2), "checksum": Out(32), "busy": Out(1),
        })  # fmt: skip
        self._config = config

    def elaborate(self, platform: Any) -> Module:
        """A walk over all tiles forgets or examines. A chunk has its turn with its last tile, which is padding."""
        m = Module()
        m.submodules.tiles = tiles = Completions(numbers=gemm.TILE_NUMBERS, bits=_TILE_BITS)
        m.submodules.chunks = chunks = Completions(numbers=gemm.CHUNKS, bits=_CHUNK_BITS)
        turn, examining = Signal(range(gemm.TILE_NUMBERS)), Signal()
        with m.If(self.forget | self.examine):
            m.d.sync += [self.busy.eq(1), examining.eq(self.examine), turn.eq(0)]
        with m.Elif(self.busy):
            m.d.sync += [turn.eq(turn + 1), self.busy.eq(turn != gemm.TILE_NUMBERS - 1)]
        last = turn[:4].all()
        for part, now in ((tiles, 1), (chunks, last)):
            m.d.comb += [
                part.updated.eq(self.taken),
                part.examined.eq(self.busy & examining & now),
                part.forgotten.eq(self.busy & ~examining & now),
            ]
        self._say(m, tiles, chunks, turn)
        for failure, part in zip(self.failures, (tiles, chunks), strict=True):
            m.d.comb += failure.eq(part.failure)
        chunk_entry = Mux(chunks.shown, chunks.entry, 0)
        with m.If(self.forget):
            m.d.sync += self.checksum.eq(self.seed)
        with m.Elif(tiles.shown):
            m.d.sync += self.checksum.eq(self.checksum.rotate_left(5) ^ tiles.entry ^ chunk_entry)
        return m

    def _say(self, m: Module, tiles: Completions, chunks: Completions, turn: Signal) -> None:
        """What is updated, and what is complete or has its turn."""
        done, chunk_done = self.tile_done, self.chunk_done
        tile = Signal(range(gemm.TILE_NUMBERS))
        chunk, chunk_slot = Signal(range(gemm.CHUNKS)), Signal(range(gemm.CHUNKS))
        known = Cat(done.wf[0], done.col[:2], done.row[:3])
        m.d.comb += [
            tile.eq(Mux(self.busy, turn, known)),
            chunk_slot.eq(chunk_done.slot),
            chunk.eq(Mux(self.busy, turn[4:], chunk_slot + self.seed.gpu + 2)),
            tiles.update.eq(gemm.tile(self.address, self._config)),
            chunks.update.eq(gemm.chunk(self.address)),
            tiles.completed.eq(self.tile_done_valid),
            chunks.completed.eq(self.chunk_done_valid),
            tiles.number.eq(tile),
            chunks.number.eq(chunk),
            tiles.expected.eq(Mux(self._position(tile[4:]) == 0, 0, self._tile_updates(tile))),
            chunks.expected.eq(Mux(self._position(chunk) == 0, 0, Array(gemm.chunk_updates())[chunk])),
            tiles.wrong.eq(
                Cat(done.wf[1:], done.col[2:], done.row[3:]).any() | (done.slot != self._position(tile[4:]) - 1)
            ),
            chunks.wrong.eq((chunk_done.slot != chunk_slot) | chunk_done.overflowed),
            tiles.name.eq(Cat(tile[0], Const(0, 3), tile[1:3], Const(0, 2), tile[3:])),
            chunks.name.eq(Cat(Const(0xFF, 8), Const(0, 1), chunk)),
        ]

    def _position(self, chunk: Value) -> Value:
        """Place of a chunk in the order of the ring."""
        return gemm.chunk_position(chunk, self.seed.gpu)[:2]

    def _tile_updates(self, tile: Value) -> Value:
        """Updates of a tile, by its number; there are none in the column of padding."""
        lines = gemm.tile_lines(self._config)
        kinds = Array(
            gemm.ADDENDS * lines.get((kind >> 2, kind >> 1 & 1, kind & 1), 0) for kind in range(8)
        )  # by wavefront, right and bottom
        column, row = tile[1:3], tile[3:]
        right, bottom = column == gemm.TILE_COLUMNS - 1, row == 2 * gemm.CHUNKS - 1
        return Mux(column == gemm.TILE_COLUMNS, 0, kinds[Cat(tile[0], right, bottom)])
