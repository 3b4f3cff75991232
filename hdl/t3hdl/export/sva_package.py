"""The SystemVerilog package that the assertions use: words, register addresses, and the sizes of a configuration."""

from enum import IntEnum
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data

from ..config import NO_LIMIT, T3Config
from ..interface import layouts
from ..interface import register_map as regs

NAME = "t3_words"

_RANGE = data.StructLayout({
    "base": layouts.LINE_BITS, "limit": layouts.LINE_BITS, "valid": 1, "context": 4, "epoch": layouts.EPOCH_BITS,
})  # fmt: skip

_STRUCTS = {
    "memory_request_t": layouts.MemoryRequest,
    "dma_command_t": layouts.DmaCommand,
    "config_write_t": layouts.ConfigWrite,
    "context_status_t": layouts.ContextStatus,
    "control_t": regs.Control,
    "arbiter_t": regs.Arbiter,
    "range_attributes_t": regs.RangeAttributes,
    "range_t": _RANGE,
    "quota_t": regs.Quota,
    "lock_t": regs.Lock,
    **dict(
        zip(
            ("chunk_bounds_t", "chunk_count_t", "chunk_source_t", "chunk_target_t", "chunk_tiles_t", "chunk_blocks_t"),
            regs.DESCRIPTOR_LAYOUTS,
            strict=True,
        )
    ),
}

_KEYWORDS = frozenset(("abort", "context", "end", "tagged"))
"""Field names that SystemVerilog or C++ keeps for itself; they get an underscore."""


def package(config: T3Config) -> str:
    """The package's text."""
    lines = [f"package {NAME};"]
    lines += [f"  localparam int unsigned {name} = {value};" for name, value in _sizes(config).items()]
    lines += [f"  localparam bit [15:0] {name} = 16'h{value:04x};" for name, value in _addresses().items()]
    for prefix, members in (("OP", layouts.Op), ("KIND", layouts.ChunkKind)):
        lines += _enum(prefix, members)
    for name, layout in _STRUCTS.items():
        lines += _struct(name, layout)
    arbiter = regs.Arbiter.const(regs.RESET[regs.ARBITER]).as_bits()
    quota = regs.Quota.const(regs.RESET[regs.QUOTA]).as_bits()
    lines += [
        f"  localparam arbiter_t ARBITER_RESET = {regs.Arbiter.size}'h{arbiter:x};",
        f"  localparam quota_t QUOTA_RESET = {regs.Quota.size}'h{quota:x};",
        "endpackage",
    ]
    return "".join(f"{line}\n" for line in lines)


def _sizes(config: T3Config) -> dict[str, int]:
    return {
        "SLICES": config.slices,
        "RANGES": config.ranges,
        "CONTEXTS": config.contexts,
        "CONTEXT_BITS": max(1, (config.contexts - 1).bit_length()),
        "DESCRIPTORS": config.descriptors,
        "DESCRIPTOR_WORDS": regs.DESCRIPTOR_WORDS,
        "WAVEFRONTS": config.wavefronts,
        "TILE_COUNT_BITS": config.tile_count_bits,
        "DRAIN_CYCLES": config.drain_cycles,
        "PERFORMED": int(config.count_on == "performed"),
        "LINE_BITS": layouts.LINE_BITS,
        "LENGTH_BITS": layouts.LENGTH_BITS,
        "BURST_LINES": layouts.BURST_LINES,
        "MAX_CONTEXTS": layouts.MAX_CONTEXTS,
        "TIME_BITS": layouts.TIME_BITS,
        "OCCUPANCY_BITS": layouts.OCCUPANCY_BITS,
        "NO_LIMIT": NO_LIMIT,
        "NO_CREDIT_LIMIT": regs.NO_CREDIT_LIMIT,
    }


def _addresses() -> dict[str, int]:
    names = (
        "CONTROL", "ARBITER", "THRESHOLDS", "WATCHDOG", "LOCK", "RANGE", "RANGE_STRIDE", "QUOTA", "PROFILE",
        "DESCRIPTOR", "DESCRIPTOR_STRIDE",
    )  # fmt: skip
    return {name: getattr(regs, name) for name in names}


def _enum(prefix: str, members: type[IntEnum]) -> list[str]:
    bits = max(members).bit_length()
    return [f"  localparam bit [{bits - 1}:0] {prefix}_{member.name} = {member.value};" for member in members]


def _struct(name: str, layout: data.StructLayout) -> list[str]:
    """A packed struct; SystemVerilog lists the highest field first."""
    fields: list[tuple[str, Any]] = [(str(field), place) for field, place in layout]
    lines = ["  typedef struct packed {"]
    for field, place in reversed(fields):
        bits = Shape.cast(place.shape).width
        lines.append(f"    logic [{bits - 1}:0] {field}{'_' if field in _KEYWORDS else ''};")
    return [*lines, f"  }} {name};"]
