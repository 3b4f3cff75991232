"""Ports of every part of the unit, and the word map through which software calls a compiled or a golden part.

Every part is a Moore machine at its boundary: outputs (valid, payload, ready, status) are functions of registers
alone. So parts can be simulated apart, exactly, and placed far apart on a die.
"""

from dataclasses import dataclass

from amaranth.hdl import Shape
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, Signature

from .config import T3Config
from .layouts import (
    LINE_BITS,
    OCCUPANCY_BITS,
    TIME_BITS,
    ChunkDone,
    ConfigWrite,
    DmaCommand,
    MemoryRequest,
    NmcRequest,
    Route,
    SlotLoad,
    TileDone,
    Token,
)

# A pulse bus: payload is taken in the cycle in which valid is 1; nobody can refuse it.
_CONFIG = {"config_valid": In(1), "config": In(ConfigWrite)}
_IDLE = {"idle": Out(1), "wake_at": Out(TIME_BITS)}


def slice_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.slice.MemorySlice`."""
    return Signature({
        "compute_read": In(stream.Signature(MemoryRequest)),
        "compute_write": In(stream.Signature(MemoryRequest)),
        "comm_read": In(stream.Signature(MemoryRequest)),
        "comm_write": In(stream.Signature(MemoryRequest)),
        "dram": Out(stream.Signature(MemoryRequest)),
        "token": Out(stream.Signature(Token)),
        "update_done_valid": In(1), "update_done": In(MemoryRequest),
        "occupancy": In(OCCUPANCY_BITS),
        "threshold": In(OCCUPANCY_BITS),
        "measure": In(1),
        "now": In(TIME_BITS),
        **_CONFIG,
        "served": Out(24),
        "comm_seen": Out(1),
        **_IDLE,
    })  # fmt: skip


def matcher_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.range_matcher.RangeMatcher` (the GPU's egress)."""
    return Signature(
        {
            "store": In(stream.Signature(MemoryRequest)),
            "route": Out(stream.Signature(Route)),
            **_CONFIG,
            **_IDLE,
        }
    )


def node_signature(inputs: int, outputs: int) -> Signature:
    """Ports of :class:`t3hdl.token_network.TokenNode`."""
    return Signature(
        {
            "token_in": In(stream.Signature(Token)).array(inputs),
            "token_out": Out(stream.Signature(Token)).array(outputs),
            **_IDLE,
        }
    )


def tracker_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.tracker.Tracker`."""
    return Signature({
        "token": In(stream.Signature(Token)).array(config.tracker_banks),
        "load_valid": In(1), "load": In(SlotLoad),
        **_CONFIG,
        "tile_done_valid": Out(1), "tile_done": Out(TileDone),
        "chunk_done_valid": Out(1), "chunk_done": Out(ChunkDone),
        "init_done": Out(1),
        "entries": Out(16),
        "peak_entries": Out(16),
        "overflowed": Out(7),
        "unmatched": Out(1), "over_count": Out(1), "over_total": Out(1),
        **_IDLE,
    })  # fmt: skip


def trigger_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.trigger.Trigger`."""
    return Signature({
        "tile_done_valid": In(1), "tile_done": In(TileDone),
        "chunk_done_valid": In(1), "chunk_done": In(ChunkDone),
        **_CONFIG,
        "command": Out(stream.Signature(DmaCommand)),
        "load_valid": Out(1), "load": Out(SlotLoad),
        "init_done": Out(1),
        "armed": Out(1),
        "live": Out(7),
        "chunks_done": Out(7),
        "done_mask": Out(64),
        **_IDLE,
    })  # fmt: skip


def monitor_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.arbiter.OccupancyMonitor`."""
    return Signature(
        {
            **_CONFIG,
            "tile_done_valid": In(1),
            "comm_seen": In(1),
            "served": In(24),
            "now": In(TIME_BITS),
            "select": Out(6),
            "measure": Out(1),
            "threshold": Out(OCCUPANCY_BITS),
            "chosen": Out(1),
            **_IDLE,
        }
    )


def registers_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.registers.ControlRegisters`: a minimal request and response port."""
    return Signature({
        "bus_valid": In(1), "bus_write": In(1), "bus_address": In(16), "bus_data": In(64), "bus_ready": Out(1),
        "response_valid": Out(1), "response_error": Out(1), "response_data": Out(64),
        "config_valid": Out(1), "config": Out(ConfigWrite),
        "init_done": In(1), "armed": In(1), "live": In(7), "chunks_done": In(7),
        "unmatched": In(1), "over_count": In(1), "over_total": In(1),
        "peak_entries": In(16), "overflowed": In(7), "threshold": In(OCCUPANCY_BITS), "chosen": In(1),
        **_IDLE,
    })  # fmt: skip


def nmc_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.nmc.NmcUnit`: requests in, one synchronous-read memory port, performed updates out."""
    return Signature({
        "request": In(stream.Signature(NmcRequest)),
        "read_valid": Out(1), "read_line": Out(LINE_BITS), "read_data": In(256),
        "write_valid": Out(1), "write_line": Out(LINE_BITS), "write_data": Out(256), "write_mask": Out(32),
        "done_valid": Out(1), "done_tag": Out(32), "done_data": Out(256), "done_flags": Out(5),
        **_IDLE,
    })  # fmt: skip


def unit_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.unit.T3Unit`: those of one GPU's slices, egress and DMA engine, bus, and status."""
    requests = stream.Signature(MemoryRequest)
    return Signature({
        "compute_read": In(requests).array(config.slices),
        "compute_write": In(requests).array(config.slices),
        "comm_read": In(requests).array(config.slices),
        "comm_write": In(requests).array(config.slices),
        "dram": Out(requests).array(config.slices),
        "update_done_valid": In(1).array(config.slices), "update_done": In(MemoryRequest).array(config.slices),
        "occupancy": In(OCCUPANCY_BITS).array(config.slices),
        "now": In(TIME_BITS),
        "store": In(requests).array(config.egress_ports),
        "route": Out(stream.Signature(Route)).array(config.egress_ports),
        "command": Out(stream.Signature(DmaCommand)),
        "bus_valid": In(1), "bus_write": In(1), "bus_address": In(16), "bus_data": In(64), "bus_ready": Out(1),
        "response_valid": Out(1), "response_error": Out(1), "response_data": Out(64),
        "init_done": Out(1), "armed": Out(1), "live": Out(7), "chunks_done": Out(7), "done_mask": Out(64),
        "unmatched": Out(1), "over_count": Out(1), "over_total": Out(1),
        "entries": Out(16), "peak_entries": Out(16), "overflowed": Out(7),
        "threshold": Out(OCCUPANCY_BITS), "chosen": Out(1),
        **_IDLE,
    })  # fmt: skip


@dataclass(frozen=True)
class WordMap:
    """Where each port of a part lies in its array of 64-bit input words and in its array of output words.

    Ports lie in the order of ``Signature.flatten``; a port of w bits takes ceil(w / 64) words, low bits first.
    ``inputs`` and ``outputs`` map a dotted path (``token.0.payload``) to (first word, bits).
    """

    inputs: dict[str, tuple[int, int]]
    outputs: dict[str, tuple[int, int]]
    input_words: int
    output_words: int


def word_map(signature: Signature) -> WordMap:
    """The word map of a part with these ports (ports are seen from the part: ``In`` is an input)."""
    maps: dict[str, dict[str, tuple[int, int]]] = {"i": {}, "o": {}}
    used = {"i": 0, "o": 0}
    for path, member, _ in signature.flatten(signature.create()):
        side = "i" if member.flow == In else "o"
        bits = Shape.cast(member.shape).width
        maps[side][".".join(str(part) for part in path)] = (used[side], bits)
        used[side] += -(-bits // 64)
    return WordMap(maps["i"], maps["o"], used["i"], used["o"])
