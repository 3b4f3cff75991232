"""What workload and machine may not be together: a GEMM beyond what the simulator or its T3 hardware can hold.

Every rule is checked before anything is built or simulated, and its message names the option to change.
"""

import os
from collections.abc import Sequence

from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import BURST_LINES, LINE_BITS, LINE_BYTES

from .geometry import ELEMENT_BYTES, Chunk, Grid, Partition
from .machine.machine import Machine
from .tiling import Tiling
from .workload import Workload

MAX_WORKGROUPS = 1 << 20
"""Workgroup tiles of one output: the simulator keeps a list of them."""
MAX_BYTES = 1 << 36
"""Of one GPU's models for one purpose: they number their records in 32 bits."""
LONGEST_CYCLES = 1 << 40
"""Memory cycles that a run may take: compiled code multiplies times by rates in 64 bits."""
ADDENDS = 2
"""Updates per element of a tracked output in a ring: the local one and the incoming one."""


def grid_of(workload: Workload, machine: Machine, tiling: Tiling) -> Grid:
    """The output in workgroup tiles."""
    return Grid(
        m=workload.m, n=workload.n, tile_rows=tiling.rows, tile_cols=tiling.cols, wavefronts=machine.gpu.wavefronts
    )


def check_size(workload: Workload, grid: Grid) -> None:
    """Refuses (ValueError) a GEMM that the simulator cannot hold."""
    if grid.tiles > MAX_WORKGROUPS:
        raise ValueError(
            f"the output must have at most {MAX_WORKGROUPS} workgroup tiles, but {workload.m} x {workload.n} has "
            f"{grid.tiles} of {grid.tile_rows} x {grid.tile_cols}: lower --m or --n, or set larger gpu.tiles"
        )
    needed = (grid.m + grid.n) * workload.k_range[1] * ELEMENT_BYTES + 2 * grid.lines * LINE_BYTES
    room = LINE_BYTES << LINE_BITS - 1  # half of the addresses, so that padding fits besides
    if needed > room:
        raise ValueError(
            f"inputs and output of the GEMM must fit into {room >> 40} TiB of addresses on every GPU, but those of "
            f"{workload.m} x {workload.n} x {workload.k} take {needed / 2**40:.1f} TiB: lower --m, --n or --k"
        )


def check_memory_side(machine: Machine, mirror: bool) -> None:
    """Refuses (ValueError) hardware and links that the simulated memory and ring do not answer."""
    count_on = machine.hardware.config().count_on
    if count_on != "accepted":
        raise ValueError(
            f"the simulated memory does not report performed updates to the T3 hardware: hardware count_on must be "
            f"'accepted', not {count_on!r}"
        )
    if mirror and machine.link.retry:
        raise ValueError("link.retry needs a neighbour that answers: use --no-mirror, or set link.retry = false")


def check_hardware(workload: Workload, machine: Machine, grid: Grid) -> None:
    """Refuses (ValueError) a GEMM whose output the machine's T3 hardware cannot track."""
    config = machine.hardware.config()
    if workload.tp > config.descriptors:
        raise ValueError(
            f"--tp must be at most {config.descriptors} on machine {machine.name!r}, not {workload.tp}: its T3 "
            f"hardware (preset {machine.hardware.preset!r}) has {config.descriptors} descriptors, and needs one for "
            f"each GPU's chunk. Lower --tp, or --set hardware.descriptors={workload.tp}"
        )
    place = regs.DESCRIPTOR_LAYOUTS[0]
    for option, side, tiles, bits in (
        ("--m", grid.tile_rows, grid.rows, place["row1"].width),
        ("--n", grid.tile_cols, grid.cols, place["col1"].width),
    ):
        most = (1 << bits) - 1
        if tiles > most:
            raise ValueError(
                f"{option} must be at most {most * side}, not {getattr(workload, option[2:])}: the T3 hardware numbers "
                f"{most} tiles of {side} elements there. Lower it, or set larger gpu.tiles"
            )
    widest = (1 << regs.DESCRIPTOR_LAYOUTS[2]["pitch"].width) - 1
    if grid.pitch > widest:
        raise ValueError(
            f"--n must be at most {widest * LINE_BYTES // ELEMENT_BYTES}, not {workload.n}: the T3 hardware takes rows "
            f"of at most {widest} lines of {LINE_BYTES} bytes"
        )
    chunks = Partition(grid=grid, count=workload.tp, swizzle_rows=machine.gpu.swizzle_rows).chunks
    check_marks(max(chunks, key=lambda chunk: chunk.marks_log), config)
    tracked = sorted(map(grid.chunk_lines, chunks))[
        -(workload.tp - 1) :
    ]  # a GPU tracks all but the first that it sends
    check_window(tracked, max(chunk.marks_log for chunk in chunks), machine.link.receive_lines, config)
    check_count(ADDENDS * max(map(grid.chunk_lines, chunks)), config.chunk_count_bits, "chunk", "chunk_count_bits")
    check_count(ADDENDS * grid.profile(False, False, 0), config.tile_count_bits, "wavefront tile", "tile_count_bits")


def check_marks(chunk: Chunk, config: T3Config) -> None:
    """Refuses a chunk with more tiles than the hardware has marks for, even if it were the only one."""
    if 1 << chunk.marks_log > config.tile_marks:
        raise ValueError(
            f"a chunk of this output has {chunk.rows} x {chunk.cols} workgroup tiles, which take "
            f"{1 << chunk.marks_log} tile marks, but the hardware has {config.tile_marks}: set hardware.tile_marks "
            f"to at least {1 << chunk.marks_log}, or use a larger TP"
        )


def check_window(incoming: Sequence[int], marks_log: int, receive_lines: int, config: T3Config) -> None:
    """Refuses chunks of which some become live late, if what comes for those may fill the receive buffer.

    The buffer would then hold nothing that can leave, and what the live chunks still wait for could not come: the ring
    would stand still. So it must have room for all of it, and a burst more.

    ``incoming`` : lines that arrive for each tracked chunk, in the order in which they become live. ``marks_log`` :
    log2 of the tile marks of the largest chunk (docs/hardware/trigger.md). ``receive_lines`` : room of the buffer.
    """
    slots = 1 << max(0, config.slot_bits - max(0, marks_log - config.share_bits))
    live = min(config.chunk_window, slots)
    early, room = sum(incoming[live:]), receive_lines - BURST_LINES
    if early > room:
        kib = -(-(early + BURST_LINES) * LINE_BYTES // 1024)
        marks = 1 << marks_log + (len(incoming) - 1).bit_length()
        raise ValueError(
            f"updates must find their chunk live, or room to wait: {len(incoming)} chunks of this output are tracked, "
            f"{live} are live at a time, and {kib} KiB may arrive for the others, but link.rx_buffer_kib is "
            f"{receive_lines * LINE_BYTES // 1024}. Set hardware.chunk_window to at least {len(incoming)} and "
            f"hardware.tile_marks to at least {marks}, or link.rx_buffer_kib to at least {kib}"
        )


def check_count(updates: int, bits: int, what: str, parameter: str) -> None:
    """Refuses (ValueError) more ``updates`` than a counter of the hardware holds."""
    if updates >= 1 << bits:
        raise ValueError(
            f"a {what} of this output takes {updates} updates, but the hardware's {parameter} counts to "
            f"{(1 << bits) - 1}: set hardware.{parameter} to at least {updates.bit_length()}"
        )


def check_memory(needed: dict[str, int], gpus: int) -> None:
    """Refuses (ValueError) a simulation whose models take more memory than this computer has.

    ``needed``: bytes of one GPU's models, by the options or keys of the machine that they grow with.
    """
    total, available = gpus * sum(needed.values()), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    largest = max(needed, key=lambda name: needed[name])
    if total > available or needed[largest] > MAX_BYTES:
        raise ValueError(
            f"simulating {gpus} GPU{'s' * (gpus > 1)} of this machine takes {total / 1e9:.1f} GB of memory, and this "
            f"computer has {available / 1e9:.1f} GB. Most of it ({gpus * needed[largest] / 1e9:.1f} GB) goes with "
            f"{largest}: lower that{', or use --mirror or a smaller --tp' * (gpus > 1)}"
        )
