"""Small simulations that are held against closed forms; seconds each, once the kernels are compiled."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from t3sim.collective.ring import closed_forms
from t3sim.inputs.geometry import ELEMENT_BYTES
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.machine.gpu import STORE_ROW_BYTES
from t3sim.inputs.machine.machine import Machine
from t3sim.inputs.workload import custom_workload
from t3sim.run.ideal import COMPUTED
from t3sim.run.plan import RunPlan
from t3sim.run.request import POLICIES, Policy, RunRequest
from t3sim.run.result import Result

from docs.pages.texts.ring_model import pass_ns

SIMULATED: tuple[Policy, ...] = tuple(policy for policy in POLICIES if policy not in COMPUTED)
TOY = (256, 256, 512)
"""M, N and K on the toy machine: 8 x 8 tiles, so 4 GPUs have equal chunks, which mirror mode needs to be exact."""
TOY_GPUS = 4
LINK_COLUMNS = STORE_ROW_BYTES // ELEMENT_BYTES
"""Columns of a chunk and of a tile, so that each row of a chunk is one packet."""
LINK_SETTINGS = {"link.gb_s": 50.0, "hbm.refresh": False, "gpu.tiles": ((LINK_COLUMNS, LINK_COLUMNS),)}
"""A slow link before the paper machine's memory, 20 times as fast, that never refreshes: the link decides."""
PAPER_RULE = {"arbiter.mca": "paper"}
SHAPES: dict[tuple[int, int, int, int], str] = {
    (16384, 3072, 1536, 8): "mega-gpt-2 fc2, the paper's largest here",
    (8192, 3072, 1536, 8): "the same with half the tokens",
    (16384, 2560, 1280, 8): "fc2 of a narrower model",
    (16384, 3584, 1792, 8): "fc2 of a wider model",
    (16384, 2048, 2048, 8): "",
    (16384, 2048, 3072, 8): "",
    (16384, 3072, 2048, 8): "",
    (8192, 2560, 2560, 8): "",
    (16384, 3072, 768, 4): "mega-gpt-2 op",
    (16384, 3072, 2304, 4): "mega-gpt-2 ip",
    (8192, 4256, 1064, 4): "t-nlg op",
}
"""M, N, K of a GPU and GPUs -> what they are: shapes around the one that moves least with T3."""


@dataclass(frozen=True, kw_only=True)
class ClosedForm:
    """Bytes of one cause, summed over all GPUs: ``expected`` by the closed form, and ``measured``."""

    policy: str
    cause: str
    expected: int
    measured: int


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One collective of a sequential run: ``chunk_bytes`` per step without headers, times in ns."""

    gpus: int
    chunk_bytes: int
    link_ns: float
    all_gather_ns: float
    reduce_scatter_ns: float

    @property
    def rest_per_step_ns(self) -> float:
        """What a step of the all-gather takes beyond the link."""
        return (self.all_gather_ns - self.link_ns) / (self.gpus - 1)


@dataclass(frozen=True, kw_only=True)
class Saving:
    """What t3-mca moves of what `sequential` moves, of one shape: all bytes, those without the GEMM's reads, and how
    many times fewer it reads for the GEMM."""

    all_bytes: float
    without_gemm_reads: float
    gemm_reads: float


def saving(m: int, n: int, k: int, gpus: int) -> Saving:
    """Of a GEMM with ``k`` on each of ``gpus``, of which one is simulated."""
    before, after = (
        _run(policy, load_machine("paper", PAPER_RULE), m, n, k * gpus, gpus, mirror=True).traffic_bytes_per_gpu
        for policy in ("sequential", "t3-mca")
    )
    return Saving(
        all_bytes=after.total / before.total,
        without_gemm_reads=(after.total - after.gemm_read) / (before.total - before.gemm_read),
        gemm_reads=before.gemm_read / after.gemm_read,
    )


def closed_form_rows() -> Iterator[ClosedForm]:
    """All causes that have a closed form, in all policies that are simulated, on the toy machine."""
    for policy in SIMULATED:
        record = toy_run(policy, mirror=False)
        output_bytes = ELEMENT_BYTES * TOY[0] * TOY[1]
        for cause, expected in closed_forms(policy, TOY_GPUS, output_bytes).items():
            measured = getattr(record.traffic_bytes_per_gpu, cause) * record.gpus_simulated
            yield ClosedForm(policy=policy, cause=cause, expected=expected, measured=round(measured))


@lru_cache
def toy_run(policy: Policy, mirror: bool) -> Result:
    """A small GEMM on the toy machine."""
    return _run(policy, load_machine("toy"), *TOY, TOY_GPUS, mirror)


def _run(policy: Policy, machine: Machine, m: int, n: int, k: int, gpus: int, mirror: bool = False) -> Result:
    from t3sim.run.simulate import simulate  # here, because it takes seconds to import

    return simulate(
        RunRequest(
            workload=custom_workload(m, n, k, gpus), machine=machine, policy=policy, hardware="golden", mirror=mirror
        )
    ).record


@lru_cache
def ring_pass(gpus: int, rows: int, **settings: Any) -> Pass:
    """The collectives of chunks of ``rows`` rows, one packet each. ``settings``: of the link, on :data:`LINK_SETTINGS`.

    The GEMM before them has an inner dimension of one column on each GPU.
    """
    machine = load_machine("paper", LINK_SETTINGS | {f"link.{key}": value for key, value in settings.items()})
    workload = custom_workload(rows, LINK_COLUMNS * gpus, gpus, gpus)
    plan = RunPlan(RunRequest(workload=workload, machine=machine, policy="sequential"))
    assert {plan.grid.chunk_bytes(chunk) for chunk in plan.partition.chunks} == {rows * STORE_ROW_BYTES}
    times = _run("sequential", machine, workload.m, workload.n, workload.k, gpus).time_ns
    wire = rows * (STORE_ROW_BYTES + machine.link.header_bytes)
    link = pass_ns(gpus=gpus, chunk_bytes=wire, gb_s=machine.link.gb_s, latency_ns=machine.link.latency_ns)
    return Pass(
        gpus=gpus,
        chunk_bytes=rows * STORE_ROW_BYTES,
        link_ns=link,
        all_gather_ns=times.all_gather,
        reduce_scatter_ns=times.reduce_scatter,
    )


def path_ns(machine: Machine) -> float:
    """What the first and last byte of a step take beside the link: read, crossbar and write, in an idle system.

    The kernel learns of what has arrived (a response), asks memory (a request), which closes and opens a row and reads,
    the line comes back (a response); at the other GPU memory closes and opens a row and writes.
    """
    hbm, fabric = machine.hbm, machine.fabric
    read = hbm.nRP + hbm.nRCDRD + hbm.nCL + hbm.nBL
    write = hbm.nRP + hbm.nRCDWR + hbm.nCWL + hbm.nBL
    return fabric.request_ns + 2 * fabric.response_ns + (read + write) * 1000 / hbm.clock_mhz
