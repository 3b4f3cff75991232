"""A small ring-like job of one context: chunks of an output, the updates that they await, the blocks that must follow.

The job is its own scoreboard: it tracks the lines of every block in memory, so a command that comes early, twice,
not at all, or with a wrong field is found.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import EPOCH_BITS, ChunkKind, MemoryRequest, Op, channel_of
from t3hdl.interface.words import WORD_BYTES, pack

from tb.cocotb.unit.machine import Fields, Sent
from tb.cocotb.unit.output import ROWS, Burst, Output

_TILES = {"tile_rows": 128, "wavefront_rows": 64, "tile_lines": 8}
_LAST_TILES = {"last_rows": 77, "last_lines": 5, "bottom": 1, "right": 1}
"""What descriptors say of tiles for the DMA engine: the unit only passes it on."""
Block = tuple[int, int, int]
"""Descriptor, first tile row, first tile column."""


@dataclass(frozen=True)
class Chunk:
    """Tile columns [col0, col1) of an output, and what is to happen with them."""

    descriptor: int
    col0: int
    col1: int
    kind: ChunkKind
    addends: int
    row_shift: int
    peer: int

    @property
    def blocks(self) -> list[Block]:
        """A block is 1 << row_shift tile rows high and one tile column wide."""
        return [
            (self.descriptor, row, col)
            for row in range(0, ROWS, 1 << self.row_shift)
            for col in range(self.col0, self.col1)
        ]

    @property
    def tracked(self) -> bool:
        """Whether updates of this chunk are counted here."""
        return self.kind in (ChunkKind.DMA, ChunkKind.LOCAL)


class Job:
    """One armed output of context ``context`` with descriptors [first, first + count)."""

    def __init__(self, config: T3Config, context: int, number: int, rng: random.Random) -> None:
        self._config, self._rng = config, rng
        self.context, self.epoch = context, number % 256
        self.first = context * (config.descriptors // config.contexts)
        self.count = rng.randint(1, config.descriptors // config.contexts)
        self.base = (context + 1) << 24 | rng.getrandbits(8) << 8
        self.peer_base = rng.getrandbits(38)
        self.op, self.dtype = rng.choice((Op.ADD, Op.MIN, Op.MAX)), rng.randrange(4)
        self.chunks: list[Chunk] = []
        column = 0
        for descriptor in range(self.first, self.first + self.count):
            width = rng.randint(1, 2)
            kind = rng.choice((ChunkKind.DMA, ChunkKind.DMA, ChunkKind.DMA, ChunkKind.LOCAL, ChunkKind.REMOTE))
            row_shift = rng.randint(1 if width == 2 else 0, 2) if config.blocks >= 4 else 2
            self.chunks.append(
                Chunk(descriptor, column, column + width, kind, rng.randint(1, 3), row_shift, rng.getrandbits(8))
            )
            column += width
        self.columns = column
        self.output = Output(self.base, column, rng)
        self.aborted = False
        self.arrived: Counter[Block] = Counter()
        self.fired: set[Block] = set()
        self.kinds: Counter[str] = Counter()

    # What is written to the unit

    def writes(self) -> list[tuple[int, int]]:
        """Range and descriptors, as register writes."""
        place = regs.RANGE + self.context * regs.RANGE_STRIDE
        attributes = pack(
            regs.RangeAttributes, valid=1, context=self.context, epoch=self.epoch, op=self.op, dtype=self.dtype
        )
        writes = [(place, self.base), (place + 8, self.base + self.output.lines), (place + 16, attributes)]
        for chunk in self.chunks:
            for word, value in enumerate(self._descriptor(chunk)):
                writes.append((regs.DESCRIPTOR + chunk.descriptor * regs.DESCRIPTOR_STRIDE + WORD_BYTES * word, value))
        return writes

    def _descriptor(self, chunk: Chunk) -> list[int]:
        last_row, last_col = (ROWS - 1) >> chunk.row_shift, chunk.col1 - chunk.col0 - 1
        tiles = {
            "tiles_inner": self._tiles(chunk, 0),
            "tiles_bottom": self._tiles(chunk, last_row << chunk.row_shift),
            "tiles_right": self._tiles(chunk, 0),
            "tiles_corner": self._tiles(chunk, last_row << chunk.row_shift),
        }
        expected = sum(self.expected_updates(block) for block in chunk.blocks)
        values = (
            {"row0": 0, "row1": ROWS, "col0": chunk.col0, "col1": chunk.col1, "kind": chunk.kind, "op": self.op,
             "peer": chunk.peer},
            {"expected": expected, "addends": chunk.addends, "context": self.context, "epoch": self.epoch,
             "dtype": self.dtype},
            {"base": self.base, "pitch": self.columns},
            {"peer_base": self.peer_base, "row_shift": chunk.row_shift, "col_shift": 0,
             "row_blocks_log": last_row.bit_length()},
            tiles,
            {"last_block_row": last_row, "last_block_col": last_col, **_TILES, **_LAST_TILES},
        )  # fmt: skip
        return [pack(layout, **fields) for layout, fields in zip(regs.DESCRIPTOR_LAYOUTS, values, strict=True)]

    # Its geometry

    def _rows(self, chunk: Chunk, row: int) -> range:
        return range(row, min(ROWS, row + (1 << chunk.row_shift)))

    def _tiles(self, chunk: Chunk, row: int) -> int:
        """Wavefront tiles in the block from this tile."""
        return 2 * len(self._rows(chunk, row))

    def chunk_at(self, col: int) -> Chunk:
        """The chunk of a tile column."""
        return next(chunk for chunk in self.chunks if chunk.col0 <= col < chunk.col1)

    def block_at(self, row: int, col: int) -> Block:
        """The block of a tile."""
        chunk = self.chunk_at(col)
        return chunk.descriptor, row >> chunk.row_shift << chunk.row_shift, col

    def expected_updates(self, block: Block) -> int:
        """Updates that a block awaits in all, in lines."""
        _, row, col = block
        chunk = self.chunk_at(col)
        return chunk.addends * sum(prod(self.output.shape(r, col, wf)) for r in self._rows(chunk, row) for wf in (0, 1))

    # Its traffic

    def updates(self, chunk: Chunk) -> list[Sent]:
        """Every update of a chunk, local and incoming ones mixed, in random order or tile by tile."""
        sent = [
            self._update(burst, (row, col, wf), addend)
            for row in range(ROWS)
            for col in range(chunk.col0, chunk.col1)
            for wf in (0, 1)
            for addend in range(chunk.addends)
            for burst in self.output.bursts(row, col, wf)
        ]
        if self._rng.random() < 0.7:
            self._rng.shuffle(sent)
        return sent

    def _update(self, burst: Burst, tile: tuple[int, int, int], addend: int) -> Sent:
        port, op = ("compute_write", Op.STORE) if addend == 0 else ("comm_write", Op.ADD)
        fields = self.fields(burst, tile, op)
        block = self.block_at(tile[0], tile[1])

        def expect(where: str, request: Fields) -> None:
            wanted = {**fields, "stream": int(port == "comm_write")}
            if where == "dram":
                wanted |= {"op": self.op if op == Op.STORE else op, "dtype": self.dtype}
                self.arrived[block] += request["length"] + 1
            else:
                assert (where, self.aborted) == ("stale", True), f"an update of the job came back: {where}, {request}"
            assert request == wanted, f"update {fields} came out at {where} as {request}"

        return self._sent(port, fields, expect)

    def store(self, chunk: Chunk) -> Sent:
        """A store row at the egress, of a random tile of the chunk."""
        tile = self._rng.randrange(ROWS), self._rng.randrange(chunk.col0, chunk.col1), self._rng.randrange(2)
        fields = self.fields(self.output.some_burst(), tile, Op.STORE)
        line = fields["line"]
        remote = chunk.kind == ChunkKind.REMOTE
        wanted = {
            "line": line - self.base + self.peer_base if remote else line,
            "matched": 1,
            "remote": int(remote),
            "descriptor": chunk.descriptor,
            "op": self.op if remote else Op.STORE,
            "peer": chunk.peer if remote else 0,
        }

        def expect(where: str, route: Fields) -> None:
            wanted["line"] &= (1 << 39) - 1
            assert self.aborted or route == wanted, f"store {fields} was routed to {route}, not {wanted}"

        word = pack(MemoryRequest, **fields)
        return Sent(f"store.{self._rng.randrange(self._config.egress_ports)}", word, self.context, expect)

    def foreign_write(self) -> Sent:
        """A write into this context's range by another one, which must be refused."""
        fields = self.fields(self.output.some_burst(), (0, 0, 0), self._rng.choice((Op.STORE, Op.ADD, Op.READ_CLEAR)))
        fields["context"] = (self.context + 1) % 16
        port = self._rng.choice(("compute_write", "comm_write"))

        def expect(where: str, request: Fields) -> None:
            if not self.aborted:
                wanted = {**fields, "stream": int(port == "comm_write")}
                assert (where, request) == ("refused", wanted), f"{fields} came out at {where} as {request}"

        return self._sent(port, fields, expect)

    def improper_write(self) -> Sent:
        """A write of this job that leaves its aligned block, or the output, which must be refused."""
        leaves_block = self._rng.random() < 0.5
        burst = self.output.leaving_burst() if leaves_block else self.output.burst_over_the_end()
        fields = self.fields(burst, (0, 0, 0), self._rng.choice((Op.STORE, Op.ADD, Op.READ_CLEAR)))
        port = self._rng.choice(("compute_write", "comm_write"))

        def expect(where: str, request: Fields) -> None:
            if leaves_block or not self.aborted:
                wanted = {**fields, "stream": int(port == "comm_write")}
                assert (where, request) == ("refused", wanted), f"{fields} came out at {where} as {request}"

        return self._sent(port, fields, expect)

    def stale_update(self) -> Sent:
        """An update of another epoch, which must be refused, whatever becomes of the job."""
        fields = self.fields(self.output.some_burst(), (0, 0, 0), Op.ADD)
        fields["epoch"] ^= 1 << self._rng.randrange(EPOCH_BITS)
        port = self._rng.choice(("compute_write", "comm_write"))

        def expect(where: str, request: Fields) -> None:
            wanted = {**fields, "stream": int(port == "comm_write")}
            assert (where, request) == ("stale", wanted), f"{fields} came out at {where} as {request}"

        return self._sent(port, fields, expect)

    def read(self) -> Sent:
        """A read, which is never tracked."""
        port = self._rng.choice(("compute_read", "comm_read"))
        fields = self.fields(self.output.some_burst(), (0, 0, 0), Op.READ)

        def expect(where: str, request: Fields) -> None:
            wanted = {**fields, "tagged": 0, "stream": int(port == "comm_read")}
            assert (where, request) == ("dram", wanted), f"{fields} came out at {where} as {request}"

        return self._sent(port, fields, expect)

    def fields(self, burst: Burst, tile: tuple[int, int, int], op: int) -> Fields:
        """A tagged request for a tile."""
        (line, length), (row, col, wf) = burst, tile
        return {
            "line": line, "op": int(op), "dtype": 0, "stream": 0, "context": self.context,
            "source": self._rng.getrandbits(8), "tagged": 1, "wf": wf, "right": int(col == self.columns - 1),
            "bottom": int(row == ROWS - 1), "row": row, "col": col, "epoch": self.epoch,
            "tag": self._rng.getrandbits(29), "length": length,
        }  # fmt: skip

    def _sent(self, port: str, fields: Fields, expect: Callable[[str, Fields], None]) -> Sent:
        channel = int(channel_of(fields["line"], self._config.slices))
        return Sent(f"{port}.{channel}", pack(MemoryRequest, **fields), self.context, expect)

    # Its commands

    def see(self, command: Fields) -> None:
        """A command of this context has been taken. Raises AssertionError if it should not have been."""
        chunk = self.chunk_at(command["col"])
        block = command["descriptor"], command["row"], command["col"]
        assert chunk.kind == ChunkKind.DMA and block in chunk.blocks, f"no such block: {command}"
        assert block not in self.fired, f"block {block} fired twice"
        expected_updates = chunk.blocks if command["by_chunk"] else [block]
        for one in expected_updates:
            assert self.arrived[one] == self.expected_updates(one), f"{block} fired before all updates of {one}"
        wanted = {
            "descriptor": chunk.descriptor, "context": self.context, "epoch": self.epoch, "peer": chunk.peer,
            "op": self.op, "dtype": self.dtype, "by_chunk": command["by_chunk"], "row": block[1], "col": block[2],
            "rows": len(self._rows(chunk, block[1])), "cols": 1, "pitch": self.columns, "base": self.base,
            "peer_base": self.peer_base, "reserved": 0, "reserved2": 0, "reserved3": 0, **_TILES,
            **self._last_tiles(chunk, block),
        }  # fmt: skip
        assert command == wanted, f"command {command}, not {wanted}"
        self.fired.add(block)
        self.kinds["chunk" if command["by_chunk"] else "tiles"] += 1

    def _last_tiles(self, chunk: Chunk, block: Block) -> Fields:
        """What a command says of the last tiles of its block: whole ones, but in the last blocks of the chunk."""
        at_bottom = block[1] >> chunk.row_shift == (ROWS - 1) >> chunk.row_shift
        at_right = block[2] == chunk.col1 - 1
        return {
            "last_rows": _LAST_TILES["last_rows"] if at_bottom else _TILES["tile_rows"],
            "last_lines": _LAST_TILES["last_lines"] if at_right else _TILES["tile_lines"],
            "bottom": int(at_bottom), "right": int(at_right),
        }  # fmt: skip

    def missing(self) -> set[Block]:
        """The blocks that must still become commands."""
        return {block for c in self.chunks if c.kind == ChunkKind.DMA for block in c.blocks} - self.fired
