"""How many records of everything one simulated GPU needs at most, so that no legal machine can exhaust a pool."""

from dataclasses import dataclass

import numpy as np
from t3hdl.config import T3Config
from t3hdl.layouts import LINE_BYTES

from .geometry import ceil_div
from .plan import Plan

IN_SLICE = 24
"""Lines of one channel between its request queues and its DRAM queue, and at its banks, at most."""
SLACK = 1024
"""Spare entries of every pool."""


@dataclass(frozen=True)
class Sizes:
    """The limits of one GPU of ``plan``; ``p`` is its PLAN record."""

    plan: Plan
    config: T3Config
    p: np.void

    @property
    def dma_lines(self) -> int:
        return self.plan.request.machine.dma.buffer_kib * 1024 // LINE_BYTES

    @property
    def kernel_lines(self) -> int:
        kernel = self.plan.request.machine.kernel
        return kernel.cus * kernel.outstanding_lines_per_cu

    @property
    def kernel_rate(self) -> int:
        """What the kernels' CUs read, in bytes x kHz."""
        kernel = self.plan.request.machine.kernel
        return kernel.cus * kernel.bytes_per_clock_per_cu * int(self.p["clock_khz"])

    @property
    def egress_lines(self) -> int:
        return self.plan.request.machine.link.egress_buffer_kib * 1024 // LINE_BYTES

    @property
    def rx_lines(self) -> int:
        return self.plan.request.machine.link.rx_buffer_kib * 1024 // LINE_BYTES

    @property
    def in_memory(self) -> int:
        """A line outlives its buffer's credit while it is in a slice, in the DRAM queue or at a bank."""
        return self.config.slices * (self.plan.request.machine.hbm.parameters().queue_slots + IN_SLICE)

    @property
    def slots(self) -> int:
        """Slabs of one workgroup that are loaded or waited for."""
        return int(self.p["prefetch"]) + 1

    @property
    def misses(self) -> int:
        """LLC lines that all workgroups wait for."""
        line_bytes = 32 * int(self.p["llc_line"])
        blocks = ceil_div(2 * int(self.p["tile_rows"]), line_bytes) + ceil_div(2 * int(self.p["tile_cols"]), line_bytes)
        return int(self.p["workgroups"]) * self.slots * int(self.p["slab_k"]) * (blocks + 2)

    @property
    def llc_entries(self) -> int:
        return int(self.p["llc_sets"] * self.p["llc_ways"])

    @property
    def nodes(self) -> int:
        tile_lines = int(self.p["tile_rows"] * self.p["tile_lines"])
        reads, stores = self.misses * int(self.p["llc_line"]), int(self.p["workgroups"]) * tile_lines
        flushed = self.llc_entries * int(self.p["llc_line"]) if self.plan.sequential else 0
        moved = self.dma_lines + 2 * self.kernel_lines + 2 * self.rx_lines
        return reads + stores + flushed + moved + self.in_memory + SLACK

    @property
    def rows(self) -> int:
        incoming = 2 * self.rx_lines + self.in_memory if len(self.plan.carried.lines) else 0
        return self.dma_lines + self.kernel_lines + self.egress_lines + incoming + SLACK

    @property
    def packets(self) -> int:
        """Four windows' worth of packets of one line."""
        lines = 4 * int(self.p["link_latency"]) * int(self.p["link_mb_s"]) // (int(self.p["memory_mhz"]) * LINE_BYTES)
        return 1 << (lines + SLACK).bit_length()

    @property
    def credits(self) -> int:
        """Four windows' worth of one credit message per cycle."""
        return 1 << int(4 * self.p["link_latency"] + 64).bit_length()
