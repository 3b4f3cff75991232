"""The output of a GEMM as tiles, chunks and blocks: who computes what, in which order, and at which address."""

from dataclasses import dataclass
from functools import cached_property

from t3hdl.config import T3Config
from t3hdl.interface.layouts import BURST_LINES, LINE_BYTES

ELEMENT_BYTES = 2
"""FP16."""


def ceil_div(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def ceil_log2(value: int) -> int:
    """The smallest e with 2**e >= value."""
    return (value - 1).bit_length()


@dataclass(frozen=True)
class Chunk:
    """A rectangle of workgroup tiles: rows [row0, row1), columns [col0, col1)."""

    row0: int
    row1: int
    col0: int
    col1: int

    @property
    def rows(self) -> int:
        return self.row1 - self.row0

    @property
    def cols(self) -> int:
        return self.col1 - self.col0

    @property
    def tiles(self) -> int:
        return self.rows * self.cols

    @property
    def marks_log(self) -> int:
        """log2 of the places for marks that the chunk takes in the hardware: a power of two per column of tiles."""
        return ((self.cols - 1) << ceil_log2(self.rows) | self.rows - 1).bit_length()

    def cut(self, tiles: int) -> tuple["Chunk", ...]:
        """Slices of at most ``tiles`` tiles, of near-equal size: whole tile rows, or parts of one if it has more."""
        groups = ceil_div(self.rows, max(1, tiles // self.cols))
        pieces = ceil_div(self.cols, tiles)
        return tuple(
            Chunk(
                self.row0 + group * self.rows // groups,
                self.row0 + (group + 1) * self.rows // groups,
                self.col0 + piece * self.cols // pieces,
                self.col0 + (piece + 1) * self.cols // pieces,
            )
            for group in range(groups)
            for piece in range(pieces)
        )


@dataclass(frozen=True)
class Blocks:
    """How a chunk is cut into DMA blocks of 2**row_shift x 2**col_shift workgroup tiles."""

    row_shift: int
    col_shift: int
    row_blocks: int
    col_blocks: int

    @property
    def row_blocks_log(self) -> int:
        """Bits of the block row in a block's number."""
        return ceil_log2(self.row_blocks)

    @property
    def count(self) -> int:
        return self.row_blocks * self.col_blocks


@dataclass(frozen=True, kw_only=True)
class Grid:
    """An M x N output in tiles of workgroups, each split by rows into wavefront tiles.

    The leading dimension is padded to whole lines, so no line serves two tiles (if a tile column is whole lines wide).
    """

    m: int
    n: int
    tile_rows: int
    tile_cols: int
    wavefronts: int

    def __post_init__(self) -> None:
        if self.tile_rows % self.wavefronts:
            raise ValueError(
                f"rows of a tile must be a multiple of gpu.wavefronts ({self.wavefronts}), not {self.tile_rows}"
            )
        if self.tile_cols * ELEMENT_BYTES % LINE_BYTES:
            raise ValueError(
                f"columns of a tile must be a multiple of {LINE_BYTES // ELEMENT_BYTES} (whole lines), not "
                f"{self.tile_cols}"
            )

    @property
    def rows(self) -> int:
        """Tile rows."""
        return ceil_div(self.m, self.tile_rows)

    @property
    def cols(self) -> int:
        """Tile columns."""
        return ceil_div(self.n, self.tile_cols)

    @property
    def tiles(self) -> int:
        return self.rows * self.cols

    @property
    def pitch(self) -> int:
        """Lines from one output row to the next."""
        return ceil_div(self.n * ELEMENT_BYTES, LINE_BYTES)

    @property
    def slack_bytes(self) -> int:
        """Bytes of the last line of each output row that are padding."""
        return self.pitch * LINE_BYTES - self.n * ELEMENT_BYTES

    @property
    def lines(self) -> int:
        """Lines of the whole output."""
        return self.m * self.pitch

    @property
    def output_bytes(self) -> int:
        """Enabled bytes of the whole output."""
        return self.m * self.n * ELEMENT_BYTES

    @cached_property
    def bursts(self) -> int:
        """Bursts of the whole output, and packets that carry it: a tile's row is one in each aligned block of
        BURST_LINES lines that it touches. The output begins at such a block."""
        total = 0
        for first in range(min(self.m, BURST_LINES)):  # rows BURST_LINES apart are aligned alike
            alike = ceil_div(self.m - first, BURST_LINES)
            for col in range(self.cols):
                offset = (first * self.pitch + col * self.tile_lines) % BURST_LINES
                total += alike * ceil_div(offset + self.row_lines(col == self.cols - 1), BURST_LINES)
        return total

    @property
    def tile_lines(self) -> int:
        """Lines of a row of an interior tile."""
        return self.tile_cols * ELEMENT_BYTES // LINE_BYTES

    @property
    def wavefront_rows(self) -> int:
        """Output rows of an interior wavefront tile."""
        return self.tile_rows // self.wavefronts

    def row_lines(self, right: bool) -> int:
        """Lines of one row of a tile."""
        return self.pitch - (self.cols - 1) * self.tile_lines if right else self.tile_lines

    def tile_height(self, bottom: bool) -> int:
        """Output rows of a tile of the last (``bottom``) or of another tile row."""
        return self.m - (self.rows - 1) * self.tile_rows if bottom else self.tile_rows

    def wavefront_height(self, bottom: bool, wf: int) -> int:
        """Output rows of wavefront ``wf`` in such a tile."""
        return max(0, min(self.wavefront_rows, self.tile_height(bottom) - wf * self.wavefront_rows))

    def profile(self, bottom: bool, right: bool, wf: int) -> int:
        """Lines of a wavefront tile; zero means that it does not exist."""
        return self.wavefront_height(bottom, wf) * self.row_lines(right)

    def wavefront_tiles(self, bottom: bool) -> int:
        """Wavefront tiles that exist in a workgroup tile."""
        return sum(self.wavefront_height(bottom, wf) > 0 for wf in range(self.wavefronts))

    def tile_sizes(self, chunk: Chunk) -> dict[str, int]:
        """What a DMA engine has to know of a chunk's tiles, by the names of the fields of a DmaCommand."""
        bottom, right = chunk.row1 == self.rows, chunk.col1 == self.cols
        return {
            "tile_rows": self.tile_rows, "wavefront_rows": self.wavefront_rows, "tile_lines": self.tile_lines,
            "last_rows": self.tile_height(bottom), "last_lines": self.row_lines(right),
            "bottom": int(bottom), "right": int(right),
        }  # fmt: skip

    def chunk_rows(self, chunk: Chunk) -> int:
        """Output rows of a chunk."""
        return min(chunk.row1 * self.tile_rows, self.m) - chunk.row0 * self.tile_rows

    def chunk_lines(self, chunk: Chunk) -> int:
        """Lines of a chunk."""
        end = self.pitch if chunk.col1 == self.cols else chunk.col1 * self.tile_lines
        return self.chunk_rows(chunk) * (end - chunk.col0 * self.tile_lines)

    def chunk_bytes(self, chunk: Chunk) -> int:
        """Enabled bytes of a chunk."""
        slack = self.slack_bytes if chunk.col1 == self.cols else 0
        return self.chunk_lines(chunk) * LINE_BYTES - self.chunk_rows(chunk) * slack

    def block_tiles(self, chunk: Chunk, blocks: Blocks, block_row: int, block_col: int) -> int:
        """Wavefront tiles in one block of a chunk."""
        row0 = chunk.row0 + (block_row << blocks.row_shift)
        row1 = min(chunk.row1, row0 + (1 << blocks.row_shift))
        col0 = chunk.col0 + (block_col << blocks.col_shift)
        col1 = min(chunk.col1, col0 + (1 << blocks.col_shift))
        per_column = sum(self.wavefront_tiles(bottom=row == self.rows - 1) for row in range(row0, row1))
        return per_column * (col1 - col0)


@dataclass(frozen=True, kw_only=True)
class Partition:
    """The output cut into ``count`` chunks, chunk c owned by GPU c.

    Rule (of shape and machine alone): the tile rows are cut into bands of near-equal height, as few as keep a band at
    most ``swizzle_rows`` high if there are enough chunks for that; every band is cut along its columns into its share
    of the chunks. Among the possible numbers of bands the one with the smallest largest chunk is taken, then the
    fewest.

    Raises ValueError if there are fewer tiles than chunks.
    """

    grid: Grid
    count: int
    swizzle_rows: int

    def __post_init__(self) -> None:
        if self.grid.tiles < self.count:
            raise ValueError(
                f"TP must be at most the number of workgroup tiles ({self.grid.tiles} for a {self.grid.m} x "
                f"{self.grid.n} output), not {self.count}; {self.count} needs an output of at least {self._smallest()}"
            )

    def _smallest(self) -> str:
        cols = ceil_div(self.count, self.grid.rows)
        return f"{self.grid.m} x {(cols - 1) * self.grid.tile_cols + 1}"

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks in order of their owners."""
        rows = self.grid.rows
        fewest = min(ceil_div(rows, self.swizzle_rows), self.count, rows)
        options = [self._cut(bands) for bands in range(fewest, min(rows, self.count) + 1)]
        feasible = [chunks for chunks in options if chunks]
        return min(feasible, key=lambda chunks: max(chunk.tiles for chunk in chunks))

    def _cut(self, bands: int) -> tuple[Chunk, ...]:
        """The chunks with this number of bands; empty if a band has fewer columns than its share of the chunks."""
        rows, cols = self.grid.rows, self.grid.cols
        chunks = []
        for band in range(bands):
            row0, row1 = band * rows // bands, (band + 1) * rows // bands
            share = (band + 1) * self.count // bands - band * self.count // bands
            if share > cols:
                return ()
            for piece in range(share):
                chunks.append(Chunk(row0, row1, piece * cols // share, (piece + 1) * cols // share))
        return tuple(chunks)

    def blocks(self, chunk: Chunk, unit: str, config: T3Config) -> Blocks:
        """The blocks of a chunk: one workgroup ``tile``, a ``column`` of tiles, or the whole ``chunk``.

        They have as many tiles more as the hardware's ``blocks`` per chunk demand.
        """
        row_shift, col_shift = 0, 0
        if unit in ("column", "chunk"):
            row_shift = ceil_log2(chunk.rows)
        if unit == "chunk":
            col_shift = ceil_log2(chunk.cols)
        while True:
            row_blocks, col_blocks = ceil_div(chunk.rows, 1 << row_shift), ceil_div(chunk.cols, 1 << col_shift)
            if col_blocks << ceil_log2(row_blocks) <= config.blocks:
                return Blocks(row_shift, col_shift, row_blocks, col_blocks)
            if row_blocks > 1:
                row_shift += 1
            else:
                col_shift += 1

    def dispatch_order(self, order: list[int]) -> list[tuple[int, int]]:
        """Tiles (row, column) in the order in which a GPU dispatches them, chunk after chunk in ``order``: groups of
        ``swizzle_rows`` tile rows, down the rows of a column, columns left to right [A]."""
        tiles = []
        for number in order:
            chunk = self.chunks[number]
            for group in range(chunk.row0, chunk.row1, self.swizzle_rows):
                for col in range(chunk.col0, chunk.col1):
                    tiles += [(row, col) for row in range(group, min(group + self.swizzle_rows, chunk.row1))]
        return tiles
