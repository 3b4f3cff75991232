"""Accounting identities: what two parts of a finished system counted independently must agree (docs/guides/results.md).

Each value is True, False, or None where the run observed nothing that could have made it False.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkKind
from t3hdl.interface.words import mask_of

from t3sim.collective.ring import closed_forms, ring_maps
from t3sim.engine.gpu_state import GpuState

from .observe import dram_totals
from .plan import RunPlan
from .request import CAUSES
from .system import System

Identities = dict[str, bool | None]
_ERRORS = mask_of(
    regs.Errors, "unmatched", "over_count", "over_total", "locked_write", "tile_twice", "too_large"
)  # fmt: skip


@dataclass(frozen=True)
class UnitCounters:
    """What one T3 unit counted, read over its bus after the run."""

    updates: int
    tiles: int
    triggers: int
    peak_entries: int
    overflowed_chunks: int
    errors: int
    """The bits of ERRORS that wrong counts or a wrong program set."""


def read_units(system: System) -> list[UnitCounters]:
    """The counters of every simulated GPU's unit; none for a policy that tracks nothing."""
    if system.plan.sequential:
        return []
    return [
        UnitCounters(
            updates=system.read(number, regs.UPDATES),
            tiles=system.read(number, regs.TILES),
            triggers=system.read(number, regs.TRIGGERS),
            peak_entries=system.read(number, regs.PEAK_ENTRIES),
            overflowed_chunks=system.read(number, regs.OVERFLOWED),
            errors=system.read(number, regs.ERRORS) & _ERRORS,
        )
        for number in range(len(system.gpus))
    ]


def identities(system: System, units: list[UnitCounters]) -> Identities:
    """All identities of a finished run; ``units`` as :func:`read_units` gives them."""
    found = _closed_forms(system)
    found["wall_is_compute_exposed_idle"] = all(_covers(gpu) for gpu in system.gpus)
    found["requests_all_answered"] = all(gpu.fabric["bursts_used"] == 0 for gpu in system.gpus)
    found["dram_lines_match_bytes"] = all(_lines_match(gpu) for gpu in system.gpus)
    if units:
        pairs = list(zip(system.gpus, units, strict=True))
        found["updates_counted_are_updates_sent"] = all(unit.updates == _updates_sent(gpu) for gpu, unit in pairs)
        found["tiles_counted_are_tiles_mapped"] = all(
            _tiles_match(system.plan, number, unit) for number, unit in enumerate(units)
        )
        found["triggers_are_blocks_mapped"] = all(
            unit.triggers == int(gpu.dma["triggers"]) == _blocks(system, number)
            for number, (gpu, unit) in enumerate(pairs)
        )
        found["dma_reads_see_all_counted_updates"] = (
            all(gpu.dma["premature_reads"] == 0 for gpu in system.gpus) if _dma_chunks(system.plan, 0) else None
        )
        found["no_hardware_error"] = all(unit.errors == 0 for unit in units)
    return found


def _closed_forms(system: System) -> Identities:
    """Bytes by cause; a mirrored GPU stands for all only if all chunks have its size."""
    plan = system.plan
    sums = cast("NDArray[np.int64]", sum(gpu.bytes_by_cause for gpu in system.gpus))
    if plan.request.mirror:
        sums = sums * plan.gpus
    comparable = not plan.request.mirror or _chunks_equal(plan)
    expected = closed_forms(plan.request.policy, plan.gpus, plan.grid.output_bytes)
    return {
        f"{cause}_closed_form": int(sums[CAUSES.index(cause)]) == value if comparable else None
        for cause, value in expected.items()
    }


def _chunks_equal(plan: RunPlan) -> bool:
    return len({plan.grid.chunk_bytes(chunk) for chunk in plan.partition.chunks}) == 1


def _covers(gpu: GpuState) -> bool:
    time = gpu.time
    return bool(time["compute_cycles"] + time["exposed_cycles"] + time["idle_cycles"] == time["finish_cycle"])


def _lines_match(gpu: GpuState) -> bool:
    """DRAM moved as many lines as requests carried bytes for (short lines count as whole).

    Besides them it reads one line for each update if updates are atomics, and none otherwise.
    """
    totals, atomic = dram_totals(gpu), bool(gpu.channel["distance"]["atomic"][0])
    lines = totals["reads"] + totals["writes"] + totals["updates"]
    moved = int(gpu.bytes_by_cause.sum())
    extra = totals["updates"] if atomic else 0
    return moved <= 32 * lines and int(gpu.wait.sum()) == lines and totals["atomic_reads"] == extra


def _updates_sent(gpu: GpuState) -> int:
    """Updates to the tracked output that the GEMM sent to its own memory, and those that came over the link."""
    return int(gpu.egress["updated_lines"]) + int(gpu.received[0].sum())


def _dma_chunks(plan: RunPlan, number: int) -> list[int]:
    """Chunks that the DMA engine of GPU ``number`` reads: none in a ring of two."""
    return [entry.chunk for entry in ring_maps(number, plan.gpus) if entry.kind == ChunkKind.DMA]


def _blocks(system: System, number: int) -> int:
    """DMA blocks that the driver mapped."""
    plan = system.plan
    return sum(plan.blocks(plan.partition.chunks[chunk]).count for chunk in _dma_chunks(plan, number))


def _tiles_match(plan: RunPlan, number: int, unit: UnitCounters) -> bool:
    """Every wavefront tile of a tracked chunk is counted once, but for those of chunks that overflowed the tracker."""
    grid = plan.grid
    tracked = [plan.partition.chunks[entry.chunk] for entry in ring_maps(number, plan.gpus) if entry.addends]
    mapped = sum(
        (chunk.col1 - chunk.col0) * grid.wavefront_tiles(bottom=row == grid.rows - 1)
        for chunk in tracked
        for row in range(chunk.row0, chunk.row1)
    )
    return unit.tiles <= mapped if unit.overflowed_chunks else unit.tiles == mapped
