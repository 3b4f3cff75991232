"""What people call the sublayer of a record."""

from t3sim.inputs.workload import CUSTOM
from t3sim.run.result import WorkloadRecord


def sublayer_name(work: WorkloadRecord, before_sizes: str = "") -> str:
    """For example ``t-nlg fc2``; a GEMM that is given by its sizes is ``128 x 64 x 256`` after ``before_sizes``."""
    if work.model == CUSTOM:
        return f"{before_sizes}{work.m} x {work.n} x {work.k_total}"
    return f"{work.model} {work.sublayer}"


def sublayer_title(work: WorkloadRecord) -> str:
    """The same with the degree, for example ``t-nlg fc2 TP 8``."""
    return f"{sublayer_name(work)} TP {work.tp}"
