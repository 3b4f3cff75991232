"""Ports of every part of the unit.

Every part is a Moore machine at its boundary: outputs (valid, payload, ready, status) are functions of registers
alone. So parts can be simulated apart, exactly, and placed far apart on a die.
"""

from amaranth.lib import stream
from amaranth.lib.wiring import In, Member, Out, Signature

from ..config import T3Config
from .layouts import (
    BACKLOG_BITS,
    LINE_BITS,
    MAX_CONTEXTS,
    OCCUPANCY_BITS,
    TIME_BITS,
    ChunkDone,
    ConfigWrite,
    ContextStatus,
    DmaCommand,
    MemoryRequest,
    NmcRequest,
    Refusal,
    Route,
    SlotLoad,
    Stuck,
    TileDone,
    TileTwice,
    Token,
)

# A pulse bus: the payload is sampled in the cycle in which valid is 1; there is no back-pressure.
_CONFIG = {"config_valid": In(1), "config": In(ConfigWrite)}
_IDLE = {"idle": Out(1), "wake_at": Out(TIME_BITS)}
# Sticky: a single-bit error was corrected, or an uncorrectable error was detected. 0 without `protect`.
_FAULTS = {"corrected": Out(1), "uncorrectable": Out(1)}


def slice_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.slice.slice.MemorySlice`."""
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
        "behind": In(1),
        "now": In(TIME_BITS),
        **_CONFIG,
        "served": Out(24),
        "comm_seen": Out(1),
        "compute_refused_valid": Out(1), "compute_refused": Out(MemoryRequest),
        "comm_refused_valid": Out(1), "comm_refused": Out(MemoryRequest),
        "compute_stale_valid": Out(1), "compute_stale": Out(MemoryRequest),
        "comm_stale_valid": Out(1), "comm_stale": Out(MemoryRequest),
        "pending": Out(MAX_CONTEXTS),
        **_FAULTS,
        **_IDLE,
    })  # fmt: skip


def matcher_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.egress.matcher.RangeMatcher` (the GPU's egress)."""
    return Signature(
        {
            "store": In(stream.Signature(MemoryRequest)),
            "route": Out(stream.Signature(Route)),
            **_CONFIG,
            **_FAULTS,
            **_IDLE,
        }
    )


def node_signature(inputs: int, outputs: int, skip: int = 0, protect: bool = False) -> Signature:
    """Ports of :class:`t3hdl.token_network.network.TokenNode`, whatever ``skip`` and ``protect`` are."""
    return Signature(
        {
            "token_in": In(stream.Signature(Token)).array(inputs),
            "token_out": Out(stream.Signature(Token)).array(outputs),
            **_FAULTS,
            **_IDLE,
        }
    )


def tracker_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.tracker.tracker.Tracker`."""
    return Signature({
        "token": In(stream.Signature(Token)).array(config.tracker_banks),
        "load_valid": In(1), "load": In(SlotLoad),
        "now": In(TIME_BITS),
        **_CONFIG,
        "tile_done_valid": Out(1), "tile_done": Out(TileDone),
        "chunk_done_valid": Out(1), "chunk_done": Out(ChunkDone),
        "init_done": Out(1),
        "entries": Out(16),
        "peak_entries": Out(16),
        "overflowed": Out(7),
        "unmatched": Out(1), "over_count": Out(1), "over_total": Out(1),
        "maintenance": Out(1), "abort_busy": Out(1), "debug_data": Out(64),
        "updates": Out(48), "tiles": Out(32),
        "poison_valid": Out(1), "poison_slot": Out(6),
        **_FAULTS,
        **_IDLE,
    })  # fmt: skip


def trigger_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.trigger.trigger.Trigger`."""
    return Signature({
        "tile_done_valid": In(1), "tile_done": In(TileDone),
        "chunk_done_valid": In(1), "chunk_done": In(ChunkDone),
        "poison_valid": In(1), "poison_slot": In(6),
        "abort_busy": In(1),
        "command_done_valid": In(1), "command_done": In(4),
        "now": In(TIME_BITS),
        **_CONFIG,
        "command": Out(stream.Signature(DmaCommand)),
        "load_valid": Out(1), "load": Out(SlotLoad),
        "init_done": Out(1),
        "armed": Out(1),
        "live": Out(7),
        "chunks_done": Out(7),
        "done_mask": Out(64), "poisoned": Out(64),
        "quiesced": Out(1), "quiet": Out(1),
        "stuck": Out(Stuck), "tile_twice": Out(TileTwice), "too_large": Out(1),
        "triggers": Out(32), "command_stall": Out(TIME_BITS), "peak_ready": Out(13), "backlog": Out(BACKLOG_BITS),
        **_FAULTS,
        **_IDLE,
        "context": Out(ContextStatus).array(config.contexts),
    })  # fmt: skip


def monitor_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.slice.monitor.OccupancyMonitor`."""
    return Signature(
        {
            **_CONFIG,
            "tile_done_valid": In(1),
            "comm_seen": In(1),
            "served": In(24),
            "backlog": In(BACKLOG_BITS),
            "now": In(TIME_BITS),
            "select": Out(6),
            "measure": Out(1),
            "threshold": Out(OCCUPANCY_BITS),
            "chosen": Out(1),
            "behind": Out(1),
            **_IDLE,
        }
    )


# Status of the other modules, readable in registers and at ports of the unit.
_STATUS = {
    "init_done": 1, "armed": 1, "live": 7, "chunks_done": 7, "done_mask": 64, "poisoned": 64,
    "unmatched": 1, "over_count": 1, "over_total": 1, "corrected": 1, "uncorrectable": 1,
    "maintenance": 1, "abort_busy": 1, "quiesced": 1, "quiet": 1, "stuck": Stuck,
    "tile_twice": TileTwice, "too_large": 1,
    "peak_entries": 16, "overflowed": 7, "threshold": OCCUPANCY_BITS, "chosen": 1, "debug_data": 64,
    "updates": 48, "tiles": 32, "triggers": 32, "command_stall": TIME_BITS, "peak_ready": 13,
}  # fmt: skip


def registers_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.registers.registers.ControlRegisters`: bus, broadcast writes, what it shows."""
    return Signature({
        "bus_valid": In(1), "bus_write": In(1), "bus_privileged": In(1), "bus_address": In(16), "bus_data": In(64),
        "bus_ready": Out(1),
        "response_valid": Out(1), "response_error": Out(1), "response_data": Out(64),
        "config_valid": Out(1), "config": Out(ConfigWrite),
        "interrupt": Out(1),
        **{name: In(shape) for name, shape in _STATUS.items()},
        "violations": In(8), "violation": In(Refusal),
        "stale_updates": In(8), "stale_update": In(Refusal),
        "pending": In(MAX_CONTEXTS),
        "nmc_flags": In(5), "nmc_uncorrectable": In(1),
        **_IDLE,
        "context": In(ContextStatus).array(config.contexts),
    })  # fmt: skip


def nmc_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.nmc.nmc.NmcUnit`: requests in, a memory port, performed updates out."""
    return Signature({
        "request": In(stream.Signature(NmcRequest)),
        "read_valid": Out(1), "read_line": Out(LINE_BITS), "read_data": In(256),
        "write_valid": Out(1), "write_line": Out(LINE_BITS), "write_data": Out(256), "write_mask": Out(32),
        "done_valid": Out(1), "done_tag": Out(32), "done_data": Out(256), "done_flags": Out(5),
        "uncorrectable": Out(1),
        **_IDLE,
    })  # fmt: skip


def alu_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.nmc.alu.NmcAlu`: an operation on a line, its result after ``nmc_latency``."""
    return Signature({
        "valid": In(1), "op": In(3), "dtype": In(2), "mask": In(32), "old": In(256), "data": In(256),
        "result_valid": Out(1), "result": Out(256), "flags": Out(5),
    })  # fmt: skip


AXI = {
    "axi_awaddr": In(16), "axi_awprot": In(3), "axi_awvalid": In(1), "axi_awready": Out(1),
    "axi_wdata": In(64), "axi_wstrb": In(8), "axi_wvalid": In(1), "axi_wready": Out(1),
    "axi_bresp": Out(2), "axi_bvalid": Out(1), "axi_bready": In(1),
    "axi_araddr": In(16), "axi_arprot": In(3), "axi_arvalid": In(1), "axi_arready": Out(1),
    "axi_rdata": Out(64), "axi_rresp": Out(2), "axi_rvalid": Out(1), "axi_rready": In(1),
}  # fmt: skip
"""An AXI4-Lite subordinate: 64-bit data, 16-bit byte addresses."""

BUS = {
    "bus_valid": Out(1), "bus_write": Out(1), "bus_privileged": Out(1), "bus_address": Out(16), "bus_data": Out(64),
    "bus_ready": In(1), "response_valid": In(1), "response_error": In(1), "response_data": In(64),
}  # fmt: skip
"""The bus of the registers, seen from the side that makes requests."""


def axi_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.registers.axi.AxiLitePort`: AXI4-Lite to the bus of the registers."""
    return Signature({**AXI, **BUS, **_IDLE})


def crossing_signature() -> Signature:
    """Ports of :class:`t3hdl.registers.crossing.AxiLiteCrossing`: AXI4-Lite from the host's clock to the unit's."""
    return Signature(
        {
            **{f"host_{name}": member for name, member in AXI.items()},
            **{name: member.flip() for name, member in AXI.items()},
            "host_clk": In(1),
            "host_rst": In(1),
        }
    )


def core_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.core.T3Core`: those of one GPU's slices, egress and DMA engine, bus, and status."""
    return Signature(
        {**_machine_side(config), **{name: port.flip() for name, port in BUS.items()}, **_unit_status(config)}
    )


def unit_signature(config: T3Config) -> Signature:
    """Ports of :class:`t3hdl.unit.T3Unit`: the core with AXI4-Lite."""
    return Signature({**_machine_side(config), **AXI, **_unit_status(config)})


def _machine_side(config: T3Config) -> dict[str, Member]:
    """What lies between the unit and the memory controller, the egress, and the DMA engine."""
    requests = stream.Signature(MemoryRequest)
    return {
        "compute_read": In(requests).array(config.slices),
        "compute_write": In(requests).array(config.slices),
        "comm_read": In(requests).array(config.slices),
        "comm_write": In(requests).array(config.slices),
        "dram": Out(requests).array(config.slices),
        "update_done_valid": In(1).array(config.slices),
        "update_done": In(MemoryRequest).array(config.slices),
        "compute_refused_valid": Out(1).array(config.slices),
        "compute_refused": Out(MemoryRequest).array(config.slices),
        "comm_refused_valid": Out(1).array(config.slices),
        "comm_refused": Out(MemoryRequest).array(config.slices),
        "compute_stale_valid": Out(1).array(config.slices),
        "compute_stale": Out(MemoryRequest).array(config.slices),
        "comm_stale_valid": Out(1).array(config.slices),
        "comm_stale": Out(MemoryRequest).array(config.slices),
        "occupancy": In(OCCUPANCY_BITS).array(config.slices),
        "now": In(TIME_BITS),
        "store": In(requests).array(config.egress_ports),
        "route": Out(stream.Signature(Route)).array(config.egress_ports),
        "command": Out(stream.Signature(DmaCommand)),
        "command_done_valid": In(1),
        "command_done": In(4),
        "nmc_flags": In(5),
        "nmc_uncorrectable": In(1),
    }


def _unit_status(config: T3Config) -> dict[str, Member]:
    """The interrupt, and what an integrator may watch without the bus."""
    return {
        "interrupt": Out(1),
        "init_done": Out(1), "armed": Out(1), "live": Out(7), "chunks_done": Out(7), "done_mask": Out(64),
        "quiet": Out(1), "entries": Out(16), "threshold": Out(OCCUPANCY_BITS), "chosen": Out(1),
        "context": Out(ContextStatus).array(config.contexts),
        **_IDLE,
    }  # fmt: skip
