"""One simulation from request to result: build the hardware, program and run the system, and draw up the record."""

import time
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from t3sim.collective.carried import carried_elements, owners, partial_products, ring_reference, to_words
from t3sim.engine import state
from t3sim.engine.prepare import open_prepared
from t3sim.engine.t3unit.words import instance_counts
from t3sim.hardware.abi import LoadedHardware

from .allocate import new_gpu
from .ideal import COMPUTED
from .identities import UnitCounters, identities, read_units
from .observe import contention, timeline
from .plan import RunPlan
from .provenance import Provenance
from .recorder import Recorder
from .request import CAUSES, OnProgress, Progress, RunRequest, RunResult, preparing
from .result import (
    BlocksRecord,
    DataCheck,
    GemmRecord,
    Result,
    RtlRecord,
    TimeNs,
    TrackerRecord,
    TrafficBytes,
    WallSeconds,
    WorkloadRecord,
)
from .sizes import check_fits
from .system import System
from .work import work_done

AnySystem = TypeVar("AnySystem", bound=System)

REPORT_SECONDS = 0.2
"""Real time between two reports of progress."""


def simulate(request: RunRequest, on_progress: OnProgress | None = None) -> RunResult:
    """Simulate ``request`` (any policy but the ideal ones, which are computed from sequential runs).

    Raises ValueError for a request that machine or hardware cannot hold, BuildError if the RTL cannot be compiled, and
    SimulationError if the simulated system gets stuck or breaks a rule of its own.
    """
    if request.policy in COMPUTED:
        sources = " and ".join(dict.fromkeys(COMPUTED[request.policy]))
        raise ValueError(f"policy {request.policy} is computed from {sources}, not simulated")
    begin = time.perf_counter()
    plan = RunPlan(request)
    check_fits(plan)  # before anything is built or takes memory
    hardware = open_prepared(plan.config, request.hardware, preparing(on_progress))
    try:
        built = time.perf_counter()
        system, partials = set_up(plan, hardware, System)
        system.program()
        recorder = Recorder(system) if request.events else None
        _run(system, request.threads, on_progress, built, recorder)
        wall = WallSeconds(build=built - begin, simulate=time.perf_counter() - built)
        record = _record(system, hardware, partials)
        events = recorder.events() if recorder is not None else None
        return RunResult(record=record, timeline=timeline(system), wall=wall, events=events)
    finally:
        hardware.close()


def set_up(
    plan: RunPlan, hardware: LoadedHardware, kind: type[AnySystem]
) -> tuple[AnySystem, list[NDArray[np.float16]]]:
    """The system, a ``kind``, before it is programmed; and each GPU's partial products for the carried lines."""
    request = plan.request
    partials = [
        partial_products(plan.carried, plan.grid, request.seed, gpu, request.workload.k_of(gpu))
        for gpu in range(plan.simulated)
    ]
    gpus = [new_gpu(plan, number, hardware, partials[number]) for number in range(plan.simulated)]
    return kind(plan, hardware, gpus), partials


def _run(
    system: System,
    threads: int,
    on_progress: OnProgress | None,
    start: float,
    recorder: Recorder | None,
) -> None:
    plan = system.plan
    reported = 0.0
    for cycle in system.run(threads):
        if recorder is not None:
            recorder.observe(cycle)
        now = time.perf_counter()
        if on_progress is not None and now - reported > REPORT_SECONDS:
            reported = now
            on_progress(
                Progress(
                    simulated_ns=plan.ns(cycle),
                    work_done=work_done(system),
                    phase=_phase(system),
                    wall_seconds=now - start,
                )
            )


def _phase(system: System) -> str:
    """What the slowest GPU does."""
    if any(gpu.gemm["end_cycle"] < 0 for gpu in system.gpus):
        return "GEMM" if system.plan.sequential else "GEMM and reduce-scatter"
    if any(gpu.comm["ag_first_cycle"] == state.NEVER_CYCLE for gpu in system.gpus):
        return "reduce-scatter"
    return "all-gather"


def _record(system: System, hardware: LoadedHardware, partials: list[NDArray[np.float16]]) -> Result:
    plan, request = system.plan, system.plan.request
    tracked = not plan.sequential
    evaluations = _evaluations(system, hardware) if request.hardware == "rtl" else None  # before the bus is read
    units = read_units(system)
    check = _check_data(system, partials) if len(plan.carried.lines) else None
    return Result(
        policy=request.policy,
        hardware=request.hardware,
        machine=request.machine.name,
        provenance=Provenance.of(request.machine),
        mirror=request.mirror,
        seed=request.seed,
        gpus_simulated=plan.simulated,
        workload=WorkloadRecord.of(request.workload),
        gemm=GemmRecord.of(request.tiling),
        time_ns=_times(system),
        traffic_bytes_per_gpu=_traffic(system),
        tracker=_tracker(units) if tracked else None,
        blocks=_blocks(system) if tracked else None,
        rtl=evaluations,
        data_check=check,
        contention=contention(system) if request.contention else None,
        identities=identities(system, units),
    )


def _blocks(system: System) -> BlocksRecord:
    by_tile, by_chunk = (sum(int(gpu.dma[name]) for gpu in system.gpus) for name in ("by_tile", "by_chunk"))
    return BlocksRecord(by_tile=by_tile, by_chunk=by_chunk)


def _times(system: System) -> TimeNs:
    """Times of the GPU that finishes last (the lowest number among equals), so that they add up."""
    plan = system.plan
    gpu = max(system.gpus, key=lambda gpu: gpu.time["finish_cycle"])
    gemm, comm, cleared = gpu.gemm, gpu.comm, _cleared_lines(system)
    return TimeNs(
        total=plan.ns(int(gpu.time["finish_cycle"])),
        gemm=plan.ns(int(gemm["end_cycle"] - gemm["start_cycle"])),
        reduce_scatter=plan.ns(int(comm["rs_last_cycle"] - comm["rs_first_cycle"])),
        all_gather=plan.ns(int(comm["ag_last_cycle"] - comm["ag_first_cycle"])),
        exposed_communication=plan.ns(int(gpu.time["exposed_cycles"])),
        init_write=None if plan.sequential else plan.ns(cleared * plan.line_cycles / system.config.slices),
    )


def _cleared_lines(system: System) -> float:
    """Mean lines that the driver clears on a GPU: all that is updated there, which is all but the remote chunk."""
    plan = system.plan
    chunks = plan.partition.chunks
    remote = [plan.grid.chunk_lines(chunks[(number + 1) % plan.gpus]) for number in range(plan.simulated)]
    return plan.grid.lines - sum(remote) / len(remote)


def _traffic(system: System) -> TrafficBytes:
    """Mean over the simulated GPUs; ``init_write`` is what the driver clears before it arms."""
    count = len(system.gpus)
    sums = sum(gpu.bytes_by_cause for gpu in system.gpus)
    values = {cause: float(sums[i]) / count for i, cause in enumerate(CAUSES)}
    cleared = 0.0 if system.plan.sequential else 32 * _cleared_lines(system)
    return TrafficBytes(**values, init_write=cleared, total=sum(values.values()))


def _tracker(units: list[UnitCounters]) -> TrackerRecord:
    """Totals of what the units counted."""
    return TrackerRecord(
        updates=sum(unit.updates for unit in units),
        tiles=sum(unit.tiles for unit in units),
        triggers=sum(unit.triggers for unit in units),
        peak_entries=max(unit.peak_entries for unit in units),
        overflowed_chunks=sum(unit.overflowed_chunks for unit in units),
    )


def _evaluations(system: System, hardware: LoadedHardware) -> RtlRecord:
    counts = instance_counts(hardware.config)
    instances = sum(counts.values())
    cycles = sum(instances * (int(gpu.time["finish_cycle"]) + int(gpu.unit["epoch_cycles"])) for gpu in system.gpus)
    by_part = dict(zip(counts, (int(n) for n in sum(gpu.evaluated for gpu in system.gpus)), strict=True))
    evaluated = sum(by_part.values())
    return RtlRecord(
        cycles=cycles, cycles_evaluated=evaluated, cycles_skipped=cycles - evaluated, evaluated_by_part=by_part
    )


def _check_data(system: System, partials: list[NDArray[np.float16]]) -> DataCheck:
    """Every carried line, on every GPU after the all-gather, against the ring's reduction in NumPy.

    Padding behind a row counts as a mismatch if something was written there, but not as elements that were checked.
    """
    plan = system.plan
    expected = to_words(ring_reference(partials, owners(plan.carried, plan.grid, plan.partition)))
    mismatches = 0
    for gpu in system.gpus:
        got = np.ascontiguousarray(gpu.memory).view(np.uint16)
        mismatches += int(np.count_nonzero(got != np.ascontiguousarray(expected).view(np.uint16)))
    elements = carried_elements(plan.carried, plan.grid)
    return DataCheck(elements=elements * len(system.gpus), mismatches=mismatches)
