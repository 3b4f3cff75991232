"""How many records of everything one simulated GPU needs at most, so that no legal machine can exhaust a pool."""

from dataclasses import dataclass
from typing import Self

from t3hdl.config import T3Config
from t3hdl.interface.layouts import BURST_LINES, LINE_BYTES

from t3sim.engine.link import CREDIT, PACKET
from t3sim.engine.llc import LLC_ENTRY
from t3sim.engine.requests import BURST
from t3sim.engine.row_segments import ROW
from t3sim.inputs.geometry import ceil_div
from t3sim.inputs.limits import check_memory

from .plan import RunPlan, constants, movers

IN_SLICE = 24
"""Bursts of one channel between its request queues and its DRAM queue, and at its banks, at most."""
SLACK = 1024
"""Spare entries of every pool."""


def check_fits(plan: RunPlan) -> None:
    """Refuses (ValueError) a plan whose simulation takes more memory than this computer has. Takes none itself."""
    sizes = Sizes.of(plan, 0)
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
    """The limits of one GPU of ``plan``, from the constants of its models and movers."""

    plan: RunPlan
    config: T3Config
    constants: dict[str, dict[str, int]]
    movers: tuple[dict[str, int], dict[str, int]]

    @classmethod
    def of(cls, plan: RunPlan, gpu: int) -> Self:
        """The limits of GPU ``gpu``."""
        return cls(plan, plan.config, constants(plan, gpu), movers(plan, gpu))

    @property
    def in_memory(self) -> int:
        """Bursts that outlive their buffer's credit, in a slice, in the DRAM queue or at a bank."""
        return self.config.slices * (self.plan.queue_lines + IN_SLICE)

    @property
    def slab_lines(self) -> int:
        """LLC lines that a slab takes."""
        line_bytes, output = 32 * self.constants["llc"]["entry_lines"], self.constants["output"]
        blocks = sum(ceil_div(2 * output[side], line_bytes) for side in ("tile_rows", "tile_cols"))
        return self.constants["gemm"]["slab_k"] * (blocks + 2)

    @property
    def misses(self) -> int:
        """LLC lines that all workgroups wait for."""
        gemm = self.constants["gemm"]
        return gemm["places"] * gemm["slots"] * self.slab_lines

    @property
    def llc_entries(self) -> int:
        return self.constants["llc"]["sets"] * self.constants["llc"]["ways"]

    @property
    def llc_lines(self) -> int:
        """LLC lines of all buffers, of which the inputs' B is the last."""
        plan = self.plan
        end = plan.bases["b"] + plan.request.workload.k_range[1] * plan.input_pitch(plan.grid.n)
        return ceil_div(end, self.constants["llc"]["entry_lines"])

    @property
    def bursts(self) -> int:
        """Bursts that exist at the same time."""
        llc, places = self.constants["llc"], self.constants["gemm"]["places"]
        reads = self.misses * _most_bursts(llc["entry_lines"])
        written = llc["most_write_backs"] + self.flushed
        return reads + places * self.tile_bursts + written + self.moved + self.in_memory + SLACK

    @property
    def tile_bursts(self) -> int:
        """Bursts of the stores of a tile. One that passes through the cache is written back entry by entry."""
        output, entry = self.constants["output"], self.constants["llc"]["entry_lines"]
        rows, lines = output["tile_rows"], output["tile_lines"]
        if not self.plan.sequential:
            return rows * _most_bursts(lines)
        return rows * (1 + ceil_div(lines - 1, entry)) * _most_bursts(min(lines, entry))

    @property
    def flushed(self) -> int:
        """Bursts that the cache writes back at once at the end of a kernel, or to make room for reads, beyond those at
        which workgroups wait: every other sector may be dirty."""
        return self.llc_entries * ceil_div(self.constants["llc"]["entry_lines"], 2) if self.plan.sequential else 0

    @property
    def moved(self) -> int:
        """Bursts of communication that are read, or wait at the memory: of one line each in the worst case."""
        dma, kernel = (mover["buffer_lines"] for mover in self.movers)
        return dma + 2 * kernel + 2 * self.constants["link"]["receive_lines"]

    @property
    def rows(self) -> int:
        incoming = 2 * self.constants["link"]["receive_lines"] + self.in_memory if self.plan.max_carried_lines else 0
        outgoing = sum(mover["buffer_lines"] for mover in self.movers) + self.constants["egress"]["buffer_lines"]
        return outgoing + incoming + SLACK

    @property
    def packets(self) -> int:
        """Packets that may be under way: four windows' worth of one line each. Unless some are sent again, no more than
        the receiver has room for."""
        link = self.constants["link"]
        window_ps = link["latency_cycles"] * 1_000_000 // link["memory_mhz"]
        lines = 4 * window_ps * link["byte_ps_den"] // (link["byte_ps_num"] * LINE_BYTES)
        if not link["retry"]:
            lines = min(lines, link["receive_lines"])
        return 1 << (lines + SLACK).bit_length()

    @property
    def credits(self) -> int:
        """Four windows' worth of one credit message per cycle."""
        return 1 << (4 * self.constants["link"]["latency_cycles"] + 64).bit_length()

    @property
    def output(self) -> int:
        """Bytes that grow with the output: the order and maps of tiles, a count of updates and a number per line, the
        latter for all GPUs; and where the cache holds its lines, if it does."""
        grid, counts = self.plan.grid, 0 if self.plan.sequential else self.plan.grid.lines
        numbers = 4 * grid.lines // self.plan.simulated if self.plan.max_carried_lines else 0
        cached = 4 * grid.lines // self.constants["llc"]["entry_lines"] if self.plan.sequential else 0
        return 32 * grid.tiles + counts + numbers + cached

    @property
    def inputs(self) -> int:
        """Bytes that say where the cache holds the lines of the inputs. What it never holds takes no memory."""
        plan = self.plan
        pitch = plan.input_pitch(plan.grid.m) + plan.input_pitch(plan.grid.n)
        return 4 * plan.request.workload.k_range[1] * pitch // self.constants["llc"]["entry_lines"]

    @property
    def data(self) -> int:
        """Bytes of the carried lines: partial products and memory, and what makes one GPU's in FP32 and checks them."""
        return self.plan.max_carried_lines * (2 * LINE_BYTES + 3 * LINE_BYTES // self.plan.simulated)

    @property
    def memory(self) -> dict[str, int]:
        """Bytes of the arrays that can be large, by the options or keys of the machine that they grow with."""
        burst, row = BURST.itemsize, ROW.itemsize
        if self.plan.max_carried_lines:
            row += BURST_LINES * LINE_BYTES
        requests = self.bursts - self.flushed - self.moved
        sent = PACKET.itemsize * self.packets * (1 + self.constants["link"]["retry"])
        return {
            "--m x --n": self.output,
            "(--m + --n) x --k": self.inputs,
            "--data-lines": self.data,
            "gpu.cus x gpu.workgroups_per_cu x gpu.slab_k x gpu.prefetch_slabs": requests * burst + 36 * self.misses,
            "llc.capacity_kib / llc.line_bytes": (LLC_ENTRY.itemsize + 8) * self.llc_entries + self.flushed * burst,
            "link.gb_s x link.latency_ns": sent + CREDIT.itemsize * self.credits,
            ", ".join(_MOVED): self.moved * burst + self.rows * row,
        }
