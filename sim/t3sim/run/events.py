"""When what happened in a run, in memory clocks: what a trace shows beyond the totals of the record.

All cycles are those of the simulated memory clock since the launch of the GEMM, exact unless a field says otherwise.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

TransferKind = Literal["dma", "stores", "reduce_scatter", "all_gather"]
StepKind = Literal["reduce_scatter", "all_gather"]
Queue = Literal[
    "dram_mean", "dram_largest", "compute_bursts", "communication_bursts", "held_bursts", "tokens", "dma_blocks",
    "link_bytes",
]  # fmt: skip
QUEUES: tuple[Queue, ...] = get_args(Queue)
"""What waits on a GPU, in the order of the rows in :mod:`t3sim.engine.observed.queues`; docs/guides/results.md says
what each one is."""
QUEUE_TITLES: dict[Queue, tuple[str, str]] = {
    "dram_mean": ("DRAM queue, mean of channels", "lines"),
    "dram_largest": ("DRAM queue, largest", "lines"),
    "compute_bursts": ("compute at slices", "bursts"),
    "communication_bursts": ("communication at slices", "bursts"),
    "held_bursts": ("held until chunk is live", "bursts"),
    "tokens": ("tokens before tracker", "tokens"),
    "dma_blocks": ("DMA blocks ready or under way", "blocks"),
    "link_bytes": ("waiting for link", "bytes"),
}
"""The queues as people read them, and their units."""
Tiles = tuple[int, int, int, int]
"""A rectangle of workgroup tiles: first and last + 1 tile row, first and last + 1 tile column."""


@dataclass(frozen=True, kw_only=True)
class Trigger:
    """At ``cycle`` the DMA engine took the command of a block of ``chunk``. ``tiles`` is None if more commands came
    between two looks than the engine's queue holds, so that which block it was is lost."""

    cycle: int
    chunk: int
    tiles: Tiles | None


@dataclass(kw_only=True)
class Transfer:
    """Packets that a GPU sends its neighbour for one reason: a DMA command, a step of a collective kernel, or stores of
    the GEMM to the neighbour without a pause of the link's latency between them.

    ``command``: index of its trigger; None where it has none, or where a mirrored neighbour sends. ``lines`` and
    ``packets`` count each packet once, also if it is sent again. The first byte leaves at ``first_sent``, reckoned from
    the link's rate to within a clock; the last one at ``last_sent``; at ``first_arrived`` and ``last_arrived`` the
    first and the last packet are wholly at the neighbour.
    """

    kind: TransferKind
    chunk: int
    command: int | None
    packets: int = 0
    lines: int = 0
    first_sent: int
    last_sent: int
    first_arrived: int
    last_arrived: int


@dataclass(frozen=True, kw_only=True)
class KernelStep:
    """One rectangle that a collective kernel reads and sends on, or reduces in place (``local``).

    ``exact``: the cycles are; otherwise the step was seen between two looks, and lies within a link latency of them.
    """

    kind: StepKind
    chunk: int
    local: bool
    start: int
    end: int
    exact: bool


@dataclass(frozen=True, kw_only=True)
class GpuEvents:
    """One GPU. ``bins`` is [rows of engine.state's timeline, bins]; ``spans`` holds GEMM, reduce-scatter and
    all-gather, ``stages`` and ``exposed`` the intervals of these names. ``queues``: what waits when each bin begins.
    ``resident``: (cycle, workgroups) whenever a look found another number; looks are a link latency of activity apart.
    ``clocks``: CU clocks in a memory clock.
    """

    number: int
    neighbour: int
    bins: NDArray[np.int64]
    queues: dict[Queue, NDArray[np.float64]]
    cus: int
    clocks: float
    spans: dict[str, tuple[int, int]]
    stages: list[tuple[int, int]]
    exposed: list[tuple[int, int]]
    triggers: list[Trigger]
    transfers: list[Transfer]
    steps: list[KernelStep]
    resident: list[tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class RunEvents:
    """A whole run of a ring of ``ring`` GPUs. ``bin_cycles``: width of the bins; ``look_cycles``: the link's latency;
    ``mirror``: the one GPU receives what a neighbour of its kind would send.
    """

    policy: str
    ring: int
    clock_mhz: int
    bin_cycles: int
    look_cycles: int
    mirror: bool
    gpus: list[GpuEvents]
