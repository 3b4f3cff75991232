"""How much of a simulation's work is done, from which the time to go follows; contention stretches simulated time.

Work is what the simulator spends its time on: requests of the GEMM to the LLC, of which the shape says how many there
are, and lines of all other causes, of which closed forms do. Lines of the GEMM's reads come with its requests.
"""

from t3hdl.interface.layouts import LINE_BYTES

from t3sim.collective.ring import closed_forms
from t3sim.engine.gpu_state import GpuState
from t3sim.engine.state import IDLE
from t3sim.inputs.geometry import ELEMENT_BYTES

from .plan import RunPlan
from .request import CAUSES
from .system import System

REQUEST, LINE, LINE_AFTER_T3 = 1, 2, 1
"""Relative real time of a request, a line, and a line of the all-gather after T3, when nothing else is on its way:
measured on eleven runs of paper size under five policies, in which the time left was right within a third."""


def work_done(system: System) -> float:
    """The part of the work that is done, 0 to 1."""
    plan, done, total = system.plan, 0.0, 0.0
    for number, gpu in enumerate(system.gpus):
        requests = REQUEST * _requests(plan, number)
        done += requests * _gemm_done(gpu)
        total += requests
    moved = sum(gpu.bytes_by_cause for gpu in system.gpus)
    for cause, size in closed_forms(plan.request.policy, plan.gpus, plan.grid.output_bytes).items():
        weight = LINE if plan.sequential or not cause.startswith("ag") else LINE_AFTER_T3
        done += weight * int(moved[CAUSES.index(cause)]) / 32
        total += weight * size * plan.simulated / plan.gpus / 32
    return min(1.0, done / total)


def _requests(plan: RunPlan, number: int) -> float:
    """LLC requests of one GPU's GEMM."""
    grid = plan.grid
    per_workgroup = plan.request.workload.k_of(number) * (grid.tile_rows + grid.tile_cols) * ELEMENT_BYTES
    return grid.tiles * per_workgroup / (plan.entry_lines * LINE_BYTES)


def _gemm_done(gpu: GpuState) -> float:
    """The part of a GPU's slabs that is computed."""
    slabs, resident = int(gpu.gemm["slabs"]), gpu.workgroups["state"] != IDLE
    done = int(gpu.gemm["tiles_done"]) * slabs + int(gpu.workgroups["slab"][resident].sum())
    return done / (int(gpu.output["tiles"]) * slabs)
