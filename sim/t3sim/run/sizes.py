"""How many records of everything one simulated GPU needs at most, so that no legal machine can exhaust a pool."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from t3hdl.config import T3Config
from t3hdl.interface.layouts import BURST_LINES, LINE_BYTES

from t3sim.engine import state
from t3sim.inputs.geometry import ceil_div
from t3sim.inputs.limits import check_memory

from .plan import RunPlan, constants

IN_SLICE = 24
"""Bursts of one channel between its request queues and its DRAM queue, and at its banks, at most."""
SLACK = 1024
"""Spare entries of every pool."""


def record_of(plan: RunPlan, gpu: int, jobs: int = 0) -> NDArray[np.void]:
    """The CONSTANTS record of one GPU that has ``jobs`` kernel steps, as an array of one."""
    array = np.zeros(1, state.CONSTANTS)
    for name, value in (constants(plan, gpu) | {"jobs": jobs}).items():
        array[name] = value
    return array


def check_fits(plan: RunPlan) -> None:
    """Refuses (ValueError) a plan whose simulation takes more memory than this computer has. Takes none itself."""
    sizes = Sizes(plan, plan.request.machine.hardware.config(), record_of(plan, 0)[0])
    check_memory(sizes.memory, plan.simulated)


_MOVED = (
    "kernel.cus x kernel.outstanding_lines_per_cu", "dma.buffer_kib", "link.egress_buffer_kib", "link.rx_buffer_kib",
)  # fmt: skip
"""What lines and row segments on their way between GPUs grow with."""


def _most_bursts(lines: int) -> int:
    """Bursts of ``lines`` consecutive lines, wherever they begin."""
    return 1 + ceil_div(lines - 1, BURST_LINES)


@dataclass(frozen=True)
class Sizes:
    """The limits of one GPU of ``plan``; ``p`` is its CONSTANTS record."""

    plan: RunPlan
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
    def kernel_rate(self) -> Fraction:
        """Lines in a memory clock that the kernels' CUs read."""
        kernel = self.plan.request.machine.kernel
        clock = Fraction(int(self.p["clock_num"]), int(self.p["clock_den"]))
        return kernel.cus * kernel.bytes_per_clock_per_cu * clock / LINE_BYTES

    @property
    def egress_lines(self) -> int:
        return self.plan.request.machine.link.egress_buffer_kib * 1024 // LINE_BYTES

    @property
    def rx_lines(self) -> int:
        return self.plan.request.machine.link.rx_buffer_kib * 1024 // LINE_BYTES

    @property
    def in_memory(self) -> int:
        """Bursts that outlive their buffer's credit, in a slice, in the DRAM queue or at a bank."""
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
    def bursts(self) -> int:
        """Bursts that exist at the same time."""
        row_bursts = _most_bursts(int(self.p["tile_lines"]))
        reads = self.misses * _most_bursts(int(self.p["llc_line"]))
        stores = int(self.p["workgroups"] * self.p["tile_rows"]) * row_bursts
        written = int(self.p["write_backs"]) + self.flushed
        return reads + stores + written + self.moved + self.in_memory + SLACK

    @property
    def flushed(self) -> int:
        """Bursts that the cache writes back at once at the end of a kernel, or to make room for reads, beyond those at
        which stores wait: every other sector may be dirty."""
        return self.llc_entries * ceil_div(int(self.p["llc_line"]), 2) if self.plan.sequential else 0

    @property
    def moved(self) -> int:
        """Bursts of communication that are read, or wait at the memory: of one line each in the worst case."""
        return self.dma_lines + 2 * self.kernel_lines + 2 * self.rx_lines

    @property
    def rows(self) -> int:
        incoming = 2 * self.rx_lines + self.in_memory if self.plan.max_carried_lines else 0
        return self.dma_lines + self.kernel_lines + self.egress_lines + incoming + SLACK

    @property
    def packets(self) -> int:
        """Packets that may be under way: four windows' worth of one line each. Unless some are sent again, no more than
        the receiver has room for."""
        window_ps = int(self.p["link_latency"]) * 1_000_000 // int(self.p["memory_mhz"])
        lines = 4 * window_ps * int(self.p["link_den"]) // (int(self.p["link_num"]) * LINE_BYTES)
        if not self.p["retry"]:
            lines = min(lines, self.rx_lines)
        return 1 << (lines + SLACK).bit_length()

    @property
    def credits(self) -> int:
        """Four windows' worth of one credit message per cycle."""
        return 1 << int(4 * self.p["link_latency"] + 64).bit_length()

    @property
    def output(self) -> int:
        """Bytes that grow with the output: the order and maps of tiles, a count of updates and a number per line, the
        latter for all GPUs."""
        grid, counts = self.plan.grid, 0 if self.plan.sequential else self.plan.grid.lines
        numbers = 4 * grid.lines // self.plan.simulated if self.plan.max_carried_lines else 0
        return 32 * grid.tiles + counts + numbers

    @property
    def data(self) -> int:
        """Bytes of the carried lines: partial products and memory, and what makes one GPU's in FP32 and checks them."""
        return self.plan.max_carried_lines * (2 * LINE_BYTES + 3 * LINE_BYTES // self.plan.simulated)

    @property
    def memory(self) -> dict[str, int]:
        """Bytes of the arrays that can be large, by the options or keys of the machine that they grow with."""
        burst, row = state.BURST.itemsize, state.ROW.itemsize
        if self.plan.max_carried_lines:
            row += BURST_LINES * LINE_BYTES
        requests = self.bursts - self.flushed - self.moved
        sent = state.PACKET.itemsize * self.packets * (1 + int(self.p["retry"]))
        return {
            "--m x --n": self.output,
            "--data-lines": self.data,
            "gpu.cus x gpu.workgroups_per_cu x gpu.slab_k x gpu.prefetch_slabs": requests * burst + 60 * self.misses,
            "llc.capacity_kib / llc.line_bytes": 40 * self.llc_entries + self.flushed * burst,
            "link.gb_s x link.latency_ns": sent + state.CREDIT.itemsize * self.credits,
            ", ".join(_MOVED): self.moved * burst + self.rows * row,
        }
