"""Sections of a machine file for the compute units and their cache."""

import json
from typing import Literal, Self

from pydantic import field_validator, model_validator
from t3hdl.interface.layouts import LINE_BYTES

from t3sim.inputs.geometry import ELEMENT_BYTES

from .section import MAX_KIB, MAX_NS, MAX_SLAB_K, MHZ, Section, choice, quantity

STORE_ROW_BYTES = 256
"""Bytes of the widest store row that the GPU's egress matches at once (docs/hardware/matcher.md)."""
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


class GpuSection(Section):
    """Compute units and how the GEMM kernel uses them."""

    cus: int = quantity("CUs", "compute units", ge=1, le=1024)
    clock_mhz: int = quantity("MHz", "clock of the CUs", ge=MHZ[0], le=MHZ[1])
    flop_per_clock_per_cu: int = quantity(
        "FLOP/clock/CU", "matrix rate: a multiply and an add are two", ge=1, le=1 << 20
    )
    workgroups_per_cu: int = quantity(
        "workgroups/CU",
        "resident workgroups of a CU; they share its matrix unit and its paths to the cache",
        ge=1,
        le=8,
    )
    tiles: tuple[Tile, ...] = quantity(
        "elements",
        "menu of a workgroup's output tiles, `[[rows, cols], ...]`; a row is at most 256 bytes; one tile: no choice",
    )
    tile_margin: float = quantity(
        "fraction", "largest predicted excess over the fastest tile at which a larger tile is still chosen", ge=0, le=1
    )
    slab_k: int = quantity("elements", "K step: what is loaded and computed at a time", ge=1, le=MAX_SLAB_K)
    wavefronts: int = quantity(
        "wavefronts/workgroup", "wavefronts of a workgroup; they divide its tile by rows", ge=1, le=16
    )
    prefetch_slabs: int = quantity("slabs", "slabs that are loaded ahead of the one computed", ge=0, le=16)
    dispatch: Literal["free", "stage"] = choice(
        "`free`: a tile starts when a CU is free; `stage`: when all tiles of the stage are done"
    )
    store_release: Literal["accepted", "performed"] = choice(
        "a workgroup ends when its stores are `accepted` or `performed`"
    )
    store_bytes_per_clock: int = quantity(
        "bytes/clock/CU", "store path of a CU", ge=LINE_BYTES, le=1 << 16, multiple_of=LINE_BYTES
    )
    swizzle_rows: int = quantity("tile rows", "tile rows that share input columns in the cache", ge=1, le=1 << 20)
    kernel_launch_ns: int = quantity("ns", "time from the launch to the first workgroup", ge=0, le=MAX_NS)

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


class LlcSection(Section):
    """Last-level cache of one GPU."""

    capacity_kib: int = quantity("KiB", "capacity", ge=1, le=MAX_KIB)
    ways: int = quantity("ways", "associativity", ge=1, le=64)
    line_bytes: int = quantity("bytes", "cache line", ge=LINE_BYTES, le=1024, multiple_of=LINE_BYTES)
    latency_ns: int = quantity("ns", "latency of a lookup, hit or miss", ge=0, le=MAX_NS)
    bytes_per_clock_per_cu: int = quantity(
        "bytes/clock/CU", "path from the cache to a CU, shared by its workgroups", ge=1, le=1 << 16
    )
    replacement: Literal["lru", "random"] = choice(
        "`lru`: least recently used goes; `random`: a hash of set and use count picks"
    )
    write_backs_per_channel: int = quantity(
        "bursts",
        "write-backs under way, times the channels, beyond which the workgroup of a stored tile keeps its CU",
        ge=1,
        le=1 << 16,
    )

    @model_validator(mode="after")
    def _sets_are_whole(self) -> Self:
        if self.capacity_kib * 1024 % (self.ways * self.line_bytes):
            raise ValueError(
                f"llc.capacity_kib must be whole sets of {self.ways} ways x {self.line_bytes} bytes, not "
                f"{self.capacity_kib}"
            )
        return self
