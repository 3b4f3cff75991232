"""The rule of the backlog in numbers: how much, and for how long, communication may wait under ``t3-mca``.

Both follow from what is predicted before the run: the GEMM's time at the machine's peak rates, and the link's time.
"""

from t3sim.inputs.geometry import ceil_div

from .plan import RunPlan

MOST_BACKLOG = MOST_PATIENCE = 65535
"""DMA blocks, and PATIENCE_CYCLES, that the register holds."""
PATIENCE_CYCLES = 64
"""Memory clocks in which the register counts a wait."""


def backlog_blocks(plan: RunPlan) -> int:
    """DMA blocks, ready or under way, from which communication is behind: more than a stage makes at once, and than the
    link can send in the time that it has (:func:`spare_ns`)."""
    machine = plan.request.machine
    if machine.arbiter.backlog_blocks:
        return machine.arbiter.backlog_blocks
    chunk = plan.partition.chunks[0]
    blocks = plan.blocks(chunk)
    count = blocks.row_blocks * blocks.col_blocks
    of_a_stage = ceil_div(machine.gpu.cus * machine.gpu.workgroups_per_cu * count, chunk.tiles)
    block_ns = plan.grid.chunk_lines(chunk) / count * plan.line_ns
    return min(max(2, of_a_stage, int(spare_ns(plan) / block_ns)), MOST_BACKLOG)


def backlog_patience(plan: RunPlan) -> int:
    """For how long DMA blocks may wait before communication is behind, in PATIENCE_CYCLES: half of :func:`spare_ns`, so
    that the other half is left to catch up, but at least twice what a stage takes the link."""
    machine, grid = plan.request.machine, plan.grid
    given = machine.arbiter.backlog_patience_ns
    places = machine.gpu.cus * machine.gpu.workgroups_per_cu
    stage_ns = places * grid.tile_rows * grid.tile_lines * plan.line_ns
    cycles = plan.cycles(given or max(2 * stage_ns, spare_ns(plan) / 2))
    return min(ceil_div(cycles, PATIENCE_CYCLES), MOST_PATIENCE)


def spare_ns(plan: RunPlan) -> float:
    """By what a chunk may be late: its share of the GEMM, as predicted, takes so much longer than its transfer. If it
    is later than that, the neighbour has made its own part of the chunk before, and waits."""
    return max(0.0, plan.request.tiling.predicted_ns - plan.ring_ns) / plan.gpus
