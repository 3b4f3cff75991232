"""A GPU's measured GEMMs beside the model's on a machine file: times, and how copies slow them.

The model has no copies of their own beside a GEMM. What stands for them is T3's traffic (policy ``t3``), with lines
that cost the memory a write, as a product's copies do: the DMA engine reads and the neighbour's lines arrive while the
GEMM runs. It has the rate of the machine's link, because on a slower one the GEMM waits for its own first chunk, which
goes over the link. The slowdown beside fewer copies is in proportion. In T3 the output passes the cache by, which is
part of the slowdown, too.

A GPU at its limit of power lowers its clock, which no machine file knows. So the model runs at the clock that the CUs
had, too, and slowdowns are those of that clock.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from t3hdl.export.identity import hardware_identity

from t3sim import __version__
from t3sim.inputs.geometry import ELEMENT_BYTES
from t3sim.inputs.machine.machine import Machine
from t3sim.run.policies import Watch, run_policies
from t3sim.run.provenance import Provenance
from t3sim.run.request import Policy, RunRequest
from t3sim.run.result import TimeNs

from .gpu_record import GpuRecord, Shape

AS_WRITES = {"hbm.nmc_update_cycles": 1}
"""An update holds its bank group no longer than a write."""
MachineWith = Callable[[dict[str, Any]], Machine]
"""From settings ("section.key" -> value) to the machine with them."""


@dataclass(frozen=True, kw_only=True)
class Slowdown:
    """By how much copies lengthen the GEMM, measured and in the model: they came at ``copies_gb_s`` each way, of the
    ``asked_gb_s`` that were asked for."""

    asked_gb_s: float
    copies_gb_s: float
    measured: float
    modelled: float


@dataclass(frozen=True, kw_only=True)
class GpuRow:
    """One GEMM: the clock of the GPU's CUs; times in us, of the model at the machine's clock and at that of the GPU.

    ``t3_slowdown``: by how much T3's traffic lengthens the GEMM in the model; ``t3_gb_s``: its mean rate each way.
    ``slowdowns`` by the copies' rate: the model's are in proportion to these two.
    """

    names: tuple[str, ...]
    tp: int
    m: int
    n: int
    k: int
    clock_mhz: float
    measured_us: float
    model_us: float
    model_at_clock_us: float
    t3_gb_s: float
    t3_slowdown: float
    slowdowns: tuple[Slowdown, ...]

    @property
    def error(self) -> float:
        """Relative, of the model at the machine's clock, without copies."""
        return self.model_us / self.measured_us - 1

    @property
    def error_at_clock(self) -> float:
        """Relative, of the model at the GPU's clock, without copies."""
        return self.model_at_clock_us / self.measured_us - 1


def compare(record: GpuRecord, machine_with: MachineWith, watch: Watch) -> list[GpuRow]:
    """A row for every shape of the record. Raises ValueError if the machine cannot run it."""
    return [_row(shape, machine_with, watch) for shape in record.shapes]


def comparison(record: GpuRecord, machine: Machine, rows: Sequence[GpuRow]) -> dict[str, Any]:
    """What ``validate.json`` holds. ``hardware``: version and netlist of the T3 hardware in the model."""
    return {
        "schema": 2, "opent3": __version__, "device": record.device.name, "measured": record.measured,
        "machine": machine.name, "provenance": Provenance.of(machine).model_dump(mode="json"),
        "hardware": hardware_identity(),
        "shapes": [
            asdict(row) | {"error": row.error, "error_at_clock": row.error_at_clock} for row in rows
        ],
    }  # fmt: skip


def _row(shape: Shape, machine_with: MachineWith, watch: Watch) -> GpuRow:
    alone = shape.timings[0]
    clock = {"gpu.clock_mhz": round(alone.clock_mhz)}
    model = _times(shape, machine_with({}), "sequential", watch).gemm / 1e3
    at_clock = _times(shape, machine_with(clock), "sequential", watch).gemm / 1e3
    t3 = _times(shape, machine_with(clock | AS_WRITES), "t3", watch)
    sent_bytes = shape.m * shape.n * ELEMENT_BYTES * (shape.tp - 1) / shape.tp
    t3_gb_s = sent_bytes / max(t3.gemm, t3.reduce_scatter)  # of a longer reduce-scatter, a part comes after the GEMM
    t3_slowdown = t3.gemm / 1e3 / at_clock
    slowdowns = tuple(
        Slowdown(
            asked_gb_s=timing.asked_gb_s, copies_gb_s=timing.copies_gb_s, measured=median(shape.slowdowns(timing)),
            modelled=1 + (t3_slowdown - 1) * timing.copies_gb_s / t3_gb_s,
        )
        for timing in shape.timings[1:]
    )  # fmt: skip
    return GpuRow(
        names=shape.names, tp=shape.tp, m=shape.m, n=shape.n, k=shape.k, clock_mhz=alone.clock_mhz,
        measured_us=alone.us, model_us=model, model_at_clock_us=at_clock, t3_gb_s=t3_gb_s, t3_slowdown=t3_slowdown,
        slowdowns=slowdowns,
    )  # fmt: skip


def _times(shape: Shape, machine: Machine, policy: Policy, watch: Watch) -> TimeNs:
    """Times on one GPU, its traffic mirrored."""
    request = RunRequest(workload=shape.workload(), machine=machine, policy=policy, hardware="golden", mirror=True)
    title = f"{shape.names[0]} TP {shape.tp}"
    return run_policies(request, (policy,), lambda name: watch(f"{title}, {name}"))[policy].record.time_ns
