"""How long a kernel that is not simulated takes: a roofline from the machine's own numbers.

A kernel takes the longer of its time on the matrix units and its time on the memory. Launches are left out, and what
the two cost each other.
"""

from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from t3sim.inputs.machine.files import Machine
from t3sim.inputs.machine.hbm import HbmSection
from t3sim.inputs.machine.standing import bandwidth_gb_s
from t3sim.inputs.tiling import Tiling, best_tiling

from .work import Gemm, Operator

READ_TRACE = "stream_read"
"""Reference trace with the access pattern of a GEMM, which mostly reads: a stream of reads."""
MIXED_TRACE = "mixed_stream_64"
"""Reference trace with that of an elementwise kernel: a stream of reads and one of writes, 64 lines of each in turn,
the longest turns of the reference traces, because a write-back cache gathers writes."""


@dataclass(frozen=True, kw_only=True)
class OperatorTime:
    """Roofline of an operator that runs ``count`` times: ns of one run on the matrix units and on the memory.

    ``busy_cus``: CUs that have a workgroup tile of the largest of its GEMMs, of the ``cus`` of a GPU.
    """

    operator: Operator
    count: int
    compute_ns: float
    memory_ns: float
    busy_cus: int
    cus: int

    @property
    def ns(self) -> float:
        """Time of one run: the slower of the two."""
        return max(self.compute_ns, self.memory_ns)

    @property
    def limit(self) -> str:
        """What the time is of: the memory, the matrix units, or those of the few CUs for which there are tiles."""
        if self.compute_ns <= self.memory_ns:
            return "memory"
        return "matrix units" if self.busy_cus == self.cus else f"tiles for {self.busy_cus} of {self.cus} CUs"

    @property
    def total_ns(self) -> float:
        """Time of all runs."""
        return self.count * self.ns


def operator_time(operator: Operator, machine: Machine, count: int = 1) -> OperatorTime:
    """The roofline of ``operator`` on one GPU of ``machine``."""
    tilings = [_tiling(gemm, machine) for gemm in operator.gemms]
    cus = machine.gpu.cus
    reads = operator.kind == "gemm" or operator.beside is not None
    rate = bandwidth_gb_s(machine) * achieved_fraction(machine, READ_TRACE if reads else MIXED_TRACE)
    memory = operator.bytes / rate
    if beside := operator.beside:
        alone = beside.bytes / rate
        memory = max(0.0, alone + memory - max(alone, gemm_ns(beside, machine)))
    return OperatorTime(
        operator=operator,
        count=count,
        compute_ns=sum(tiling.predicted_ns for tiling in tilings),
        memory_ns=memory,
        busy_cus=max((min(tiling.workgroups, cus) for tiling in tilings), default=0),
        cus=cus,
    )


def gemm_ns(gemm: Gemm, machine: Machine) -> float:
    """Matrix-unit time of ``gemm``: what the choice of its workgroup tile predicts, as for the simulated GEMM."""
    return _tiling(gemm, machine).predicted_ns


def _tiling(gemm: Gemm, machine: Machine) -> Tiling:
    return best_tiling((gemm.m, gemm.n, gemm.k), machine, count=gemm.count)


def achieved_fraction(machine: Machine, trace: str) -> float:
    """Part of the peak bandwidth that the machine's memory model achieves on a reference trace, refresh included if
    the machine has it. With the paper's machine within 3 % of the reference, Ramulator 2.1: 40,000 bus clocks in
    41,888 for ``stream_read``, in 52,203 for ``mixed_stream_64``."""
    one_channel = {"channels": 1, "clock_mhz": 1000}  # neither counts, and one memory is replayed once
    return _replayed_fraction(machine.hbm.model_copy(update=one_channel), trace)


@cache
def _replayed_fraction(parameters: HbmSection, trace: str) -> float:
    from t3sim.validation.hbm import replay  # here, because it takes seconds to import

    file = resources.files("t3sim.validation") / "reference" / "hbm2_traces.npz"
    with resources.as_file(file) as path, np.load(path) as traces:
        lines = traces[trace]
    return len(lines) * parameters.nBL / replay(parameters, lines)
