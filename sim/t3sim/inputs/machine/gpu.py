"""Sections of a machine file for the compute units and their cache."""

import json
from typing import Literal, Self

from pydantic import field_validator, model_validator
from t3hdl.interface.layouts import LINE_BYTES

from t3sim.inputs.geometry import ELEMENT_BYTES

from .section import MHZ, MOST_KIB, MOST_NS, MOST_SLAB_K, Section, quantity

STORE_ROW_BYTES = 256
"""Bytes of the widest store row that the GPU's egress matches at once (docs/hardware.md, RangeMatcher)."""
Tile = tuple[int, int]
"""Rows and columns of a workgroup's part of the output."""


def _text(menu: object) -> str:
    """A menu as it stands in a machine file."""
    return json.dumps(menu, default=str)


def _is_tile(tile: object) -> bool:
    """Whether ``tile`` is (rows, cols) that a store row and the GEMM kernel can have."""
    if not isinstance(tile, tuple) or [type(size) for size in tile] != [int, int]:
        return False
    rows, cols = tile
    widest, step = STORE_ROW_BYTES // ELEMENT_BYTES, LINE_BYTES // ELEMENT_BYTES
    return 1 <= rows <= 1024 and step <= cols <= widest and cols % step == 0


class Gpu(Section):
    """Compute units and how the GEMM kernel uses them."""

    cus: int = quantity("CUs", ge=1, le=1024)
    clock_mhz: int = quantity("MHz", ge=MHZ[0], le=MHZ[1])
    flop_per_clock_per_cu: int = quantity("FLOP/clock/CU", ge=1, le=1 << 20)
    workgroups_per_cu: int = quantity("workgroups/CU", ge=1, le=8)
    tiles: tuple[Tile, ...] = quantity("elements")
    tile_margin: float = quantity("fraction", ge=0, le=1)
    slab_k: int = quantity("elements", ge=1, le=MOST_SLAB_K)
    wavefronts: int = quantity("wavefronts/workgroup", ge=1, le=16)
    prefetch_slabs: int = quantity("slabs", ge=0, le=16)
    dispatch: Literal["free", "stage"]
    store_release: Literal["accepted", "performed"]
    store_bytes_per_clock: int = quantity("bytes/clock/CU", ge=LINE_BYTES, le=1 << 16, multiple_of=LINE_BYTES)
    swizzle_rows: int = quantity("tile rows", ge=1, le=1 << 20)
    kernel_launch_ns: int = quantity("ns", ge=0, le=MOST_NS)

    @field_validator("tiles", mode="before")
    @classmethod
    def _is_a_menu(cls, menu: object) -> object:
        if not isinstance(menu, tuple) or not menu or not all(_is_tile(tile) for tile in menu):
            raise ValueError(
                "gpu.tiles must be a list of one or more [rows, cols] with rows of 1 to 1024 and cols a multiple of "
                f"{LINE_BYTES // ELEMENT_BYTES} (whole 32-byte lines of FP16) up to {STORE_ROW_BYTES // ELEMENT_BYTES} "
                f"(a store row), as in [[128, 64]], not {_text(menu)}"
            )
        if len(set(menu)) < len(menu):
            raise ValueError(f"gpu.tiles must name each tile once, not {_text(menu)}")
        return menu

    @model_validator(mode="after")
    def _wavefronts_share_a_tile(self) -> Self:
        for rows, cols in self.tiles:
            if rows % self.wavefronts:
                raise ValueError(
                    f"rows of a tile in gpu.tiles must be a multiple of gpu.wavefronts ({self.wavefronts}), not {rows} "
                    f"as in [{rows}, {cols}]"
                )
        return self


class Llc(Section):
    """Last-level cache of one GPU."""

    capacity_kib: int = quantity("KiB", ge=1, le=MOST_KIB)
    ways: int = quantity("ways", ge=1, le=64)
    line_bytes: int = quantity("bytes", ge=LINE_BYTES, le=1024, multiple_of=LINE_BYTES)
    latency_ns: int = quantity("ns", ge=0, le=MOST_NS)
    bytes_per_clock_per_cu: int = quantity("bytes/clock/CU", ge=1, le=1 << 16)
    replacement: Literal["lru", "random"]

    @model_validator(mode="after")
    def _sets_are_whole(self) -> Self:
        if self.capacity_kib * 1024 % (self.ways * self.line_bytes):
            raise ValueError(
                f"llc.capacity_kib must be whole sets of {self.ways} ways x {self.line_bytes} bytes, not "
                f"{self.capacity_kib}"
            )
        return self
