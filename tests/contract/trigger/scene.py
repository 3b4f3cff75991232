"""A trigger in the words of its contract: descriptors, finished tiles, finished chunks, commands."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from t3hdl.config import preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkKind, ContextStatus
from t3hdl.interface.words import WORD_BYTES

from tests.contract.backends import open_part
from tests.contract.bench import Bench

BLOCKS = 4
"""Blocks per chunk of the preset "small"."""
LOAD_AFTER_ARM = 11 + BLOCKS
"""Cycles from the arm pulse to the load pulse of the first descriptor."""
LOAD_AFTER_WAIT = 10 + BLOCKS
"""Cycles from WAIT to the load pulse, in which the loader is in WAIT again."""


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
    context: int = 0
    wavefronts: int = 2

    @property
    def last_block_row(self) -> int:
        """Number of the last row of blocks."""
        return (self.rows - 1) >> self.row_shift

    @property
    def last_block_col(self) -> int:
        """Number of the last column of blocks."""
        return (self.cols - 1) >> self.col_shift

    def block_of(self, row: int, col: int) -> tuple[int, int, int, int]:
        """First row and column, rows and columns of the block of a tile, as a command says it."""
        top = (row - self.row0) >> self.row_shift << self.row_shift
        left = (col - self.col0) >> self.col_shift << self.col_shift
        return (
            self.row0 + top,
            self.col0 + left,
            min(1 << self.row_shift, self.rows - top),
            min(1 << self.col_shift, self.cols - left),
        )

    def tiles(self) -> Iterator[tuple[int, int, int]]:
        """(row, col, wf) of every wavefront tile."""
        for row in range(self.row0, self.row0 + self.rows):
            for col in range(self.col0, self.col0 + self.cols):
                for wf in range(self.wavefronts):
                    yield row, col, wf

    def blocks(self) -> set[tuple[int, int, int, int]]:
        """All blocks, as commands say them."""
        return {self.block_of(row, col) for row, col, _ in self.tiles()}

    def fields(self, number: int) -> dict[str, int]:
        """The fields of descriptor ``number``; its plain attributes are made from the number."""
        height, width = 1 << self.row_shift, 1 << self.col_shift
        bottom, right = self.rows - self.last_block_row * height, self.cols - self.last_block_col * width
        return {
            "row0": self.row0, "row1": self.row0 + self.rows, "col0": self.col0, "col1": self.col0 + self.cols,
            "kind": self.kind, "op": 2, "peer": 3, "expected": 100, "addends": 2, "context": self.context,
            "epoch": number % 4, "dtype": 1, "base": 1000 + number, "pitch": 70 + number, "peer_base": 2000 + number,
            "row_shift": self.row_shift, "col_shift": self.col_shift,
            "row_blocks_log": self.last_block_row.bit_length(),
            "tiles_inner": self.wavefronts * height * width, "tiles_bottom": self.wavefronts * bottom * width,
            "tiles_right": self.wavefronts * height * right, "tiles_corner": self.wavefronts * bottom * right,
            "last_block_row": self.last_block_row, "last_block_col": self.last_block_col,
            "tile_rows": 512 + number, "wavefront_rows": 64 + number, "tile_lines": 8, "last_rows": 100 + number,
            "last_lines": 3, "bottom": number % 2, "right": 1,
        }  # fmt: skip


ONE = Chunk(rows=1, cols=1)
COLUMN = Chunk(rows=4, cols=1)
"""Four blocks of one place, two tiles each."""
OTHER = Chunk(rows=4, cols=1, context=1)
"""The same of context 1."""
QUICK = Chunk(rows=4, cols=1, wavefronts=1)
"""Four blocks of one tile each."""
FOUR_BLOCKS = Chunk(rows=4, cols=4, row_shift=1, col_shift=1)
"""Four blocks of eight tiles each."""


class Scene(Bench):
    """A trigger after reset, by default of the preset "small" with marks for larger chunks; keeps the loads that it saw
    as (cycle, fields)."""

    def __init__(self, backend: str, *, seed: int = 1, **overrides: Any) -> None:
        self.config = preset("small", **{"tile_marks": 512} | overrides)
        super().__init__(open_part(backend, "trigger", self.config), seed=seed)
        self.loads: list[tuple[int, dict[str, int]]] = []
        self.slot_of: dict[int, int] = {}

    def _cycle(self) -> None:
        load = self.item("load")
        if load is not None:
            self.loads.append((self.now, load))
            self.slot_of[load["descriptor"]] = load["slot"]
        super()._cycle()

    def values(self, *ports: str) -> tuple[int, ...]:
        """Several outputs."""
        return tuple(self[port] for port in ports)

    def context(self, number: int = 0) -> Any:
        """The status of a context."""
        return ContextStatus.from_bits(self[f"context.{number}"])

    def until_true(self, condition: Callable[[], Any]) -> None:
        """Steps until the condition holds."""
        limit = self.now + 2000
        while not condition():
            self.step()
            assert self.now < limit, "the trigger does not get there"

    def until_cycle(self, cycle: int) -> None:
        """Steps to this cycle, which is not over."""
        assert cycle >= self.now
        self.step(cycle - self.now)

    def settle(self, limit: int = 2000) -> None:
        """Until nothing more happens by itself."""
        while not self["idle"] or (self["command.valid"] and self.accept["command"]):
            self.step()
            limit -= 1
            assert limit, "the trigger does not settle"

    def describe(self, *chunks: Chunk, first: int = 0, **changes: int) -> None:
        """Writes the descriptors; ``changes``: fields that are not as the chunk says."""
        for number, chunk in enumerate(chunks, first):
            values = chunk.fields(number) | changes
            for word, layout in enumerate(regs.DESCRIPTOR_LAYOUTS):
                address = regs.DESCRIPTOR + number * regs.DESCRIPTOR_STRIDE + WORD_BYTES * word
                self.write(address, {name: values[name] for name, _ in layout}, layout)

    def arm(self, descriptors: int, *, first: int = 0, context: int = 0) -> int:
        """Arms; returns the cycle of the pulse."""
        return self.control(arm=1, descriptors=descriptors, first=first, context=context)

    def abort(self, context: int = 0) -> int:
        """Aborts; returns the cycle of the pulse."""
        return self.control(abort=1, context=context)

    def make_live(self, *chunks: Chunk, first: int = 0, live: int | None = None, **changes: int) -> None:
        """Writes the descriptors, arms their context, waits until ``live`` more of them (all) are live."""
        self.describe(*chunks, first=first, **changes)
        goal = (self["live"] + (len(chunks) if live is None else live)) % 128
        self.arm(len(chunks), first=first, context=chunks[0].context)
        self.until_true(lambda: self["live"] == goal)

    def quota(self, context: int, *, slots: int = 64, credits: int = regs.NO_CREDIT_LIMIT) -> None:
        """Writes the quota of a context."""
        self.write(regs.QUOTA + regs.QUOTA_STRIDE * context, {"slots": slots, "credits": credits}, regs.Quota)

    def patience(self, cycles: int) -> None:
        """Writes WATCHDOG."""
        self.write(regs.WATCHDOG, cycles)

    def tile(self, descriptor: int, row: int, col: int = 0, wf: int = 0) -> int:
        """One finished tile; returns its cycle."""
        self.step(tile_done={"slot": self.slot_of[descriptor], "row": row, "col": col, "wf": wf})
        return self.now - 1

    def rows(self, descriptor: int, *rows: int) -> None:
        """All tiles of these rows of a column with two wavefronts."""
        for row in rows:
            for wf in range(2):
                self.tile(descriptor, row, 0, wf)

    def all_tiles(self, descriptor: int, chunk: Chunk) -> None:
        """All tiles of a chunk."""
        for tile in chunk.tiles():
            self.tile(descriptor, *tile)

    def chunk_done(self, descriptor: int, *, overflowed: int = 0, **inputs: Any) -> int:
        """The end of a chunk; returns its cycle."""
        self.step(chunk_done={"slot": self.slot_of[descriptor], "overflowed": overflowed}, **inputs)
        return self.now - 1

    def finish(self, descriptor: int, chunk: Chunk) -> None:
        """All tiles of a chunk, and its end."""
        self.all_tiles(descriptor, chunk)
        self.chunk_done(descriptor)

    def poison(self, slot: int) -> None:
        """A poison pulse."""
        self.step(poison_valid=1, poison_slot=slot)

    @property
    def commands(self) -> list[tuple[int, dict[str, int]]]:
        """The commands that were taken."""
        return self.got["command"]

    def of_commands(self, *names: str) -> list[tuple[int, ...]]:
        """These fields of the commands that were taken."""
        return [tuple(command[name] for name in names) for _, command in self.commands]

    def since(self, cycle: int) -> list[int]:
        """Cycles from ``cycle`` to those in which commands were taken."""
        return [taken - cycle for taken, _ in self.commands]

    def blocks(self, descriptor: int) -> list[tuple[int, int, int, int]]:
        """First row and column, rows and columns of the commands of a chunk, in order."""
        places = self.of_commands("descriptor", "row", "col", "rows", "cols")
        return [place[1:] for place in places if place[0] == descriptor]

    def works(self, chunk: Chunk, *, first: int = 0) -> None:
        """The context of ``chunk`` can be armed again and gives its commands, once each."""
        before = len(self.blocks(first))
        self.make_live(chunk, first=first)
        self.finish(first, chunk)
        self.settle()
        assert sorted(self.blocks(first)[before:]) == sorted(chunk.blocks())
        status = self.context(chunk.context)
        assert (status.complete, status.slots, status.ready) == (1, 0, 0)
