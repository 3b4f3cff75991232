"""Drives a trigger by the words of its contract: descriptors, finished tiles, finished chunks, commands."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from stream_checks import run
from t3hdl.config import preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkKind, ContextStatus, SlotLoad
from t3hdl.trigger.trigger import Trigger

WAVEFRONTS = 2
PULSES = ("config_valid", "tile_done_valid", "chunk_done_valid", "poison_valid", "command_done_valid")


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A rectangle of tiles from (row0, col0), cut into blocks of 2**row_shift x 2**col_shift."""

    rows: int
    cols: int
    row0: int = 0
    col0: int = 0
    row_shift: int = 0
    col_shift: int = 0
    kind: ChunkKind = ChunkKind.DMA
    expected: int = 100
    peer: int = 3
    context: int = 0

    @property
    def last_block_row(self) -> int:
        """Number of the last row of blocks."""
        return (self.rows - 1) >> self.row_shift

    @property
    def last_block_col(self) -> int:
        """Number of the last column of blocks."""
        return (self.cols - 1) >> self.col_shift

    @property
    def row_blocks_log(self) -> int:
        """Bits of a block number that name the row of blocks."""
        return self.last_block_row.bit_length()

    def block_of(self, row: int, col: int) -> tuple[int, int, int, int]:
        """First row and column, rows and columns of the block of a tile, as a command says it."""
        top = (row - self.row0) >> self.row_shift << self.row_shift
        left = (col - self.col0) >> self.col_shift << self.col_shift
        return (
            self.row0 + top, self.col0 + left,
            min(1 << self.row_shift, self.rows - top), min(1 << self.col_shift, self.cols - left),
        )  # fmt: skip

    def tiles(self) -> Iterator[tuple[int, int, int]]:
        """(row, col, wf) of every wavefront tile."""
        for row in range(self.row0, self.row0 + self.rows):
            for col in range(self.col0, self.col0 + self.cols):
                for wf in range(WAVEFRONTS):
                    yield row, col, wf

    def blocks(self) -> set[tuple[int, int, int, int]]:
        """All blocks, as commands say them."""
        return {self.block_of(row, col) for row, col, _ in self.tiles()}

    def words(self, number: int) -> list[int]:
        """The descriptor; its plain attributes are made from its number."""
        height, width = 1 << self.row_shift, 1 << self.col_shift
        bottom, right = self.rows - self.last_block_row * height, self.cols - self.last_block_col * width
        fields = (
            {"row0": self.row0, "row1": self.row0 + self.rows, "col0": self.col0, "col1": self.col0 + self.cols,
             "kind": self.kind, "op": 2, "peer": self.peer},
            {"expected": self.expected, "addends": 2, "context": self.context, "epoch": number % 4, "dtype": 1},
            {"base": 1000 + number, "pitch": 70 + number},
            {"peer_base": 2000 + number, "row_shift": self.row_shift, "col_shift": self.col_shift,
             "row_blocks_log": self.row_blocks_log},
            {"tiles_inner": WAVEFRONTS * height * width, "tiles_bottom": WAVEFRONTS * bottom * width,
             "tiles_right": WAVEFRONTS * height * right, "tiles_corner": WAVEFRONTS * bottom * right},
            {"last_block_row": self.last_block_row, "last_block_col": self.last_block_col},
        )  # fmt: skip
        return [layout.const(word).as_bits() for layout, word in zip(regs.DESCRIPTOR_LAYOUTS, fields, strict=True)]


class Driver:
    """The bench of a trigger; keeps the loads and commands that it saw as (cycle, fields)."""

    def __init__(self, bench: Any) -> None:
        self.bench = bench
        self.loads: list[tuple[int, dict[str, int]]] = []
        self.slot_of: dict[int, int] = {}

    def __getitem__(self, name: str) -> int:
        return self.bench[name]

    @property
    def now(self) -> int:
        """Number of this cycle."""
        return self.bench.now

    async def step(self, count: int = 1, **inputs: Any) -> None:
        """``count`` cycles; the pulses are absent unless they are among ``inputs``, and last one cycle."""
        quiet = dict.fromkeys(PULSES, 0)
        for k in range(count):
            if self.bench["load_valid"]:
                load = SlotLoad.from_bits(self.bench["load"])
                self.loads.append((self.now, {field: load[field] for field in SlotLoad.members}))
                self.slot_of[load.descriptor] = load.slot
            await self.bench.step(**(quiet | inputs if k == 0 else quiet))

    async def until(self, condition: Callable[[], Any]) -> None:
        """Steps until the condition holds."""
        limit = self.now + 2000
        while not condition():
            await self.step()
            assert self.now < limit, "the trigger does not get there"

    async def write(self, chunks: list[Chunk], *, first: int = 0) -> None:
        """Writes the descriptors."""
        for number, chunk in enumerate(chunks, first):
            for w, word in enumerate(chunk.words(number)):
                await self.set(regs.DESCRIPTOR + number * regs.DESCRIPTOR_STRIDE + 8 * w, word)

    async def set(self, address: int, word: int) -> None:
        """One configuration write."""
        await self.step(config_valid=1, config={"address": address, "data": word})

    async def quota(self, context: int, *, slots: int = 64, credits: int = regs.NO_CREDIT_LIMIT) -> None:
        """Writes the quota of a context."""
        await self.set(regs.QUOTA + 8 * context, regs.Quota.const({"slots": slots, "credits": credits}).as_bits())

    def controlling(self, **fields: int) -> dict[str, Any]:
        """The inputs of a write of CONTROL."""
        data = regs.Control.const(fields).as_bits()
        return {"config_valid": 1, "config": {"address": regs.CONTROL, "data": data}}

    async def control(self, **fields: int) -> None:
        """Writes CONTROL."""
        await self.step(**self.controlling(**fields))

    async def arm(self, chunks: list[Chunk], *, live: int | None = None, first: int = 0) -> None:
        """Writes the descriptors, arms their context, waits until ``live`` more of them (all) are live."""
        await self.write(chunks, first=first)
        goal = (self["live"] + (len(chunks) if live is None else live)) % 128
        await self.control(arm=1, descriptors=len(chunks), first=first, context=chunks[0].context)
        await self.until(lambda: self["live"] == goal)

    def context(self, number: int) -> Any:
        """The status of a context."""
        return ContextStatus.from_bits(self.bench[f"context.{number}"])

    async def tile(self, descriptor: int, row: int, col: int, wf: int = 0, **inputs: Any) -> None:
        """One finished tile."""
        tile = {"slot": self.slot_of[descriptor], "row": row, "col": col, "wf": wf}
        await self.step(tile_done_valid=1, tile_done=tile, **inputs)

    async def finish(self, descriptor: int, chunk: Chunk) -> None:
        """All tiles of a chunk, and its end."""
        for tile in chunk.tiles():
            await self.tile(descriptor, *tile)
        await self.step(**self.chunk_done(descriptor))

    def chunk_done(self, descriptor: int, *, overflowed: int = 0) -> dict[str, Any]:
        """The inputs of a ChunkDone pulse."""
        done = {"slot": self.slot_of[descriptor], "overflowed": overflowed}
        return {"chunk_done_valid": 1, "chunk_done": done}

    async def settle(self) -> None:
        """Until nothing more happens by itself."""
        while not self["idle"] or self["command.valid"]:
            await self.step()
            assert self.now < 20000, "the trigger does not settle"
        await self.step(2)  # the bench checks the idle promise

    @property
    def commands(self) -> list[tuple[int, dict[str, int]]]:
        """The commands that were taken."""
        return self.bench.got["command"]

    def blocks(self, descriptor: int) -> list[tuple[int, int, int, int]]:
        """First row and column, rows and columns of the commands of a chunk, in order."""
        fields = ("row", "col", "rows", "cols")
        return [tuple(c[f] for f in fields) for _, c in self.commands if c["descriptor"] == descriptor]


def check(scenario: Any, *, seed: int = 1, **overrides: int) -> None:
    """Runs ``scenario(driver)`` on a small trigger."""
    run(Trigger(config=preset("small", **overrides)), lambda bench: scenario(Driver(bench)), seed=seed)
