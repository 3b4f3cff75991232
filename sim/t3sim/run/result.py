"""The result record: what ``result.json`` holds. It is the same, byte for byte, on any computer and thread count.

Traffic is the mean over the simulated GPUs of enabled bytes; ``init_write`` stays outside ``total``. Fields without
meaning for a policy are null. Real time is not part of the record; it goes to ``timing.json``.
"""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat

from t3sim import __version__
from t3sim.common.json_text import json_text
from t3sim.common.output import write_atomically
from t3sim.common.strict_record import StrictRecord
from t3sim.inputs.tiling import Tiling
from t3sim.inputs.workload import Workload

from .provenance import Provenance


class WorkloadRecord(StrictRecord):
    """The GEMM. ``k`` is the largest inner dimension on one GPU, ``k_smallest`` the smallest, ``k_total`` their sum."""

    model: str
    sublayer: str
    tp: int
    m: int
    n: int
    k: int
    k_smallest: int
    k_total: int
    dtype: Literal["fp16"] = "fp16"

    @classmethod
    def of(cls, workload: Workload) -> Self:
        """The record of ``workload``."""
        smallest, largest = workload.k_range
        return cls(
            model=workload.model, sublayer=workload.sublayer, tp=workload.tp, m=workload.m, n=workload.n,
            k=largest, k_smallest=smallest, k_total=workload.k,
        )  # fmt: skip


class GemmRecord(StrictRecord):
    """The GEMM kernel: its workgroup tile, workgroups, stages (``waves``) of them on the GPU, and the predicted time,
    by which the tile was chosen (t3sim.inputs.tiling)."""

    tile_rows: int
    tile_cols: int
    workgroups: int
    waves: int
    predicted_ns: float

    @classmethod
    def of(cls, tiling: Tiling) -> Self:
        """The record of ``tiling``."""
        return cls(
            tile_rows=tiling.rows,
            tile_cols=tiling.cols,
            workgroups=tiling.workgroups,
            waves=tiling.waves,
            predicted_ns=tiling.predicted_ns,
        )


class TimeNs(StrictRecord):
    """Times in ns of the GPU that finishes last. ``total``: from GEMM launch; exposed: no workgroup resident,
    communication moving; ``init_write``: what the driver's clearing of the tracked output takes at the DRAM's peak
    rate, before the launch and outside ``total`` (null when nothing is cleared)."""

    total: PositiveFloat
    gemm: PositiveFloat
    reduce_scatter: NonNegativeFloat
    all_gather: NonNegativeFloat
    exposed_communication: NonNegativeFloat
    init_write: float | None = None


class TrafficBytes(StrictRecord):
    """Mean DRAM bytes of one GPU by cause; ``total`` is the sum of all but ``init_write``."""

    gemm_read: float
    gemm_write: float
    rs_read: float
    rs_write: float
    ag_read: float
    ag_write: float
    init_write: float
    total: float


class TrackerRecord(StrictRecord):
    """What the tracker counted and fired, summed over the simulated GPUs (``peak_entries``: the largest)."""

    updates: int
    tiles: int
    triggers: int
    peak_entries: int
    overflowed_chunks: int


class BlocksRecord(StrictRecord):
    """DMA blocks fired because all their tiles were counted, and because their chunk was complete after an overflow."""

    by_tile: int
    by_chunk: int


class RtlRecord(StrictRecord):
    """Clock cycles of the compiled Verilog, summed over its parts: all, evaluated, and skipped because idle.

    ``evaluated_by_part``: those evaluated, by the parts' names in :class:`t3sim.hardware.abi.Hardware`.
    """

    cycles: int
    cycles_evaluated: int
    cycles_skipped: int
    evaluated_by_part: dict[str, int]


class DataCheck(StrictRecord):
    """Output elements compared bit by bit with the reference reduction, without the padding behind rows that end within
    a line; and how many differed, padding included, which must stay as it was."""

    elements: int
    mismatches: int


class StreamContention(StrictRecord):
    """One of the two streams into memory: accepted lines, and bursts of them, some of them updates (0 in records from
    before they were counted); the lines' wait before issue, and memory clocks that its lines waited at a slice: the
    other stream's line had its turn, the threshold, a full DRAM queue, or the tracker, which had not taken the tokens
    of earlier updates."""

    lines: int
    bursts: int = 0
    update_bursts: int = 0
    mean_wait_ns: float
    p99_wait_ns: float
    blocked_by_other_stream_cycles: int
    blocked_by_threshold_cycles: int
    blocked_by_full_queue_cycles: int
    blocked_by_tracker_cycles: int


class Waits(StrictRecord):
    """Memory clocks that a stream's lines waited at the memory slices, over all channels, by what they waited for; as
    the sums of :class:`StreamContention`."""

    other_stream: int
    threshold: int
    full_queue: int
    tracker: int


class StageWaits(StrictRecord):
    """Waits of both streams from the first dispatch of stage ``first_stage`` (at ``start_ns``, on the first GPU) until
    the next row begins. The last row begins with the end of the GEMM (on the last GPU)."""

    first_stage: int
    start_ns: float
    compute: Waits
    communication: Waits


class DramUse(StrictRecord):
    """Data bus use (fraction of the total time), row outcomes, and read/write turnarounds. ``atomic_reads``: lines read
    besides the traffic because updates are atomics; ``mode_switches``: changes between memory and compute mode.
    ``conflicts``: row conflicts by the cause of the line that needed another row, and the cause of the line that moved
    last in the open one; those that were counted only. None in records from before they were."""

    bus_use: float
    row_hits: int
    row_misses: int
    row_conflicts: int
    turnarounds: int
    atomic_reads: int = 0
    mode_switches: int = 0
    conflicts: dict[str, dict[str, int]] | None = None


class Contention(StrictRecord):
    """Where time was lost. ``cu_stall_ns``: mean CU time lost by cause; link times are of the busiest GPU;
    ``window_stall_ns``: longest time of any GPU with stores held because their chunk was not live yet;
    ``compute_first``: whether the arbiter let compute go first; ``stages``: waits over time. Both are None in records
    from before they were kept."""

    compute: StreamContention
    communication: StreamContention
    dram: DramUse
    cu_stall_ns: dict[str, float]
    link_busy_ns: float
    link_idle_ns: float
    window_stall_ns: float
    compute_first: bool | None = None
    stages: list[StageWaits] | None = None


class Result(StrictRecord):
    """One simulation's result.

    ``identities``: accounting identity -> it held; None if nothing was observed. ``machine`` is a name, which two
    machine files may share; ``provenance`` says what was simulated.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    opent3: str = __version__
    policy: str
    hardware: str
    machine: str
    provenance: Provenance | None = None
    mirror: bool
    seed: int
    gpus_simulated: int
    workload: WorkloadRecord
    gemm: GemmRecord
    time_ns: TimeNs
    traffic_bytes_per_gpu: TrafficBytes
    tracker: TrackerRecord | None
    blocks: BlocksRecord | None
    rtl: RtlRecord | None
    data_check: DataCheck | None
    contention: Contention | None
    identities: dict[str, bool | None]

    @property
    def settings(self) -> dict[str, Any]:
        """The machine's values that were changed for this run; empty in records from before these were kept."""
        return self.provenance.settings if self.provenance else {}

    def to_json(self) -> str:
        """The text of ``result.json``: fields in the order of this class, deterministic."""
        return json_text(self.model_dump(by_alias=True))


class WallSeconds(StrictRecord):
    """Real time of a run in seconds: building the hardware, and simulating."""

    build: float
    simulate: float


def write_result(result: Result, path: Path) -> None:
    """Writes ``result.json`` in one step: the file is either whole or absent."""
    write_atomically(path, result.to_json())
