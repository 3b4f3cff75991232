"""What goes into a simulation and what comes out of it: the contract between the engine and everything around it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from t3sim.inputs.arguments import instance, integer
from t3sim.inputs.geometry import Grid
from t3sim.inputs.limits import check_hardware, check_memory_side, check_size, grid_of
from t3sim.inputs.machine.files import Machine
from t3sim.inputs.tiling import Tiling, choose_tiling
from t3sim.inputs.workload import Workload

from .events import Queue, RunEvents
from .result import Result, WallSeconds

Policy = Literal[
    "sequential", "sequential-pipelined", "sequential-nmc", "t3", "t3-mca", "ideal-overlap", "ideal-overlap-nmc"
]
POLICIES: tuple[Policy, ...] = get_args(Policy)
"""GEMM, then reduce-scatter, then all-gather, chunk by chunk; the same with rings that forward slices as they arrive;
the same with a reduction near memory. T3 with alternating streams; T3 with the communication-aware arbiter.
max(GEMM, reduce-scatter) + all-gather without contention, with the reduce-scatter of ``sequential`` or of
``sequential-nmc``."""
TRACKED: tuple[Policy, ...] = ("t3", "t3-mca")
"""The policies in which the T3 hardware works; in the others it only passes requests on."""
COMPARED: tuple[Policy, ...] = ("sequential", "t3", "t3-mca", "ideal-overlap")
"""Default policies of a comparison."""

Backend = Literal["rtl", "golden"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
"""The T3 hardware as compiled Verilog, or as its cycle-exact model in Python."""

Cause = Literal["gemm_read", "gemm_write", "rs_read", "rs_write", "ag_read", "ag_write"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
"""Why a byte moves between a GPU and its DRAM."""
CAUSE_TITLES: dict[Cause, str] = {
    "gemm_read": "GEMM reads",
    "gemm_write": "GEMM writes",
    "rs_read": "RS reads",
    "rs_write": "RS writes",
    "ag_read": "AG reads",
    "ag_write": "AG writes",
}
"""The causes as people read them."""

IntervalKind = Literal["gemm", "stage", "reduce_scatter", "all_gather", "exposed"]


class SimulationError(Exception):
    """The simulated system did something that it never may; the message says what."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """One simulation. ``data_lines``: lines that carry data, None for the engine's choice (all, or a seeded sample);
    more than the output has mean all. ``events``: also keep what happened when, for a trace; the record is the same.
    ``contention``: observe what the two streams wait for at the memory; else the record has None there.

    Raises ValueError if a choice is unknown, a number is out of range, or workload and machine do not fit together.
    """

    workload: Workload
    machine: Machine
    policy: Policy
    hardware: Backend = "rtl"
    mirror: bool = False
    threads: int = 1
    seed: int = 0
    data_lines: int | None = None
    events: bool = False
    contention: bool = True

    def __post_init__(self) -> None:
        self._check_types()
        for name, value, known in (("policy", self.policy, POLICIES), ("hardware", self.hardware, BACKENDS)):
            if value not in known:
                raise ValueError(f"--{name} must be one of {', '.join(known)}, not {value!r}")
        if self.threads < 1:
            raise ValueError(f"--threads must be at least 1, not {self.threads}")
        if not 0 <= self.seed < 1 << 64:
            raise ValueError(f"--seed must be in 0 to 2**64 - 1, not {self.seed}")
        if self.data_lines is not None and self.data_lines < 0:
            raise ValueError(f"--data-lines must be at least 0, not {self.data_lines}")
        if self.mirror and self.data_lines is not None:
            raise ValueError("a mirrored neighbour has no data: leave out --data-lines, or use --no-mirror")
        self.workload.check_tiles(self.machine.gpu.tiles)
        self.machine.check_gpus(self.workload.tp)
        check_memory_side(self.machine, self.mirror)
        check_size(self.workload, self.grid)
        if self.policy in TRACKED:
            check_hardware(self.workload, self.machine, self.grid)

    def _check_types(self) -> None:
        instance("workload", self.workload, Workload, "a Workload, as of custom_workload or model_workload")
        instance("machine", self.machine, Machine, "a Machine, as of load_machine")
        for name in ("mirror", "events", "contention"):
            instance(name, getattr(self, name), bool, "True or False")
        for name in ("threads", "seed", *([] if self.data_lines is None else ["data_lines"])):
            option = f"--{name.replace('_', '-')}"
            object.__setattr__(self, name, integer(option, getattr(self, name)))

    @cached_property
    def tiling(self) -> Tiling:
        """The workgroup tile of the GEMM."""
        return choose_tiling(self.workload, self.machine)

    @cached_property
    def grid(self) -> Grid:
        """The output in workgroup tiles."""
        return grid_of(self.workload, self.machine, self.tiling)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a simulation is. ``work_done``: the part of its work, 0 to 1, to which real time is nearly proportional
    from the first report on; ``wall_seconds``: real time since the hardware is built."""

    simulated_ns: float
    work_done: float
    phase: str
    wall_seconds: float


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """How far something is that a run needs first: ``done`` parts of the ``hardware`` are ready, of ``total``, or
    ``done`` functions of the ``kernels`` are compiled, of nobody knows how many (None)."""

    name: Literal["hardware", "kernels"]
    done: int
    total: int | None


OnProgress = Callable[[Progress | Preparation], None]
"""Called now and then with how far a run is, or what it needs first; the latter also from other threads."""


def preparing(on_progress: OnProgress | None) -> Callable[[Literal["hardware", "kernels"], int, int | None], None]:
    """What tells ``on_progress`` of a :class:`Preparation`."""

    def show(name: Literal["hardware", "kernels"], done: int, total: int | None) -> None:
        if on_progress is not None:
            on_progress(Preparation(name=name, done=done, total=total))

    return show


@dataclass(frozen=True, kw_only=True)
class Interval:
    """From ``start_ns`` to ``end_ns`` GPU ``gpu`` was in ``kind``."""

    gpu: int
    kind: IntervalKind
    start_ns: float
    end_ns: float


@dataclass(frozen=True, kw_only=True)
class TriggerEvent:
    """At ``time_ns`` a block of ``chunk`` fired on GPU ``gpu``."""

    gpu: int
    chunk: int
    time_ns: float


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """What happened when, in bins of ``bin_ns``. Arrays are [gpu, bin].

    ``cu_busy``: mean fraction of CUs that compute. ``bytes``: DRAM bytes by cause. ``link_bytes``: bytes that left on
    the link. ``updates``: incoming near-memory updates performed, in lines; ``local_updates``: the GPU's own.
    ``queues``: what waits when the bin begins.
    """

    bin_ns: float
    cu_busy: NDArray[np.float64]
    bytes: dict[Cause, NDArray[np.float64]]
    link_bytes: NDArray[np.float64]
    updates: NDArray[np.float64]
    local_updates: NDArray[np.float64]
    queues: dict[Queue, NDArray[np.float64]]
    intervals: list[Interval]
    triggers: list[TriggerEvent]


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """A finished simulation: the record that ``result.json`` holds, its timeline, and real time.

    An ideal policy is computed, not simulated, and has no timeline. ``events`` are there if the request asked for them
    and the policy was simulated.
    """

    record: Result
    timeline: Timeline | None
    wall: WallSeconds
    events: RunEvents | None = None
