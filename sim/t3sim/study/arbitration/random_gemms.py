"""GEMMs that nobody chose: a hold-out for what was found on the paper's."""

import numpy as np

from t3sim.inputs.machine.files import Machine
from t3sim.inputs.workload import custom_workload
from t3sim.run.request import RunRequest
from t3sim.study.suite import Point, custom_point

DEGREES = (2, 4, 8, 16, 32, 64)
OUTPUT = (512, 16384)
"""Least and most rows and columns of an output."""
INNER = (512, 32768)
"""Least and most of the whole inner dimension."""
MOST_OUTPUT = 1 << 25
"""Most elements of an output: 64 MiB, as the largest of the paper's models at TP 8 and 16."""
MOST_WORK = 1 << 36
"""Most multiply-accumulates on one GPU: minutes of simulation."""
SEED = 1
"""To be raised when the rule of arbitration changes: what has been looked at is no hold-out for what follows."""
MOST = 1000
"""Most GEMMs of one map."""
MOST_DRAWS = 10 * MOST
"""A machine that runs fewer than MOST of so many gets no more."""


def random_points(machine: Machine, count: int) -> tuple[Point, ...]:
    """The first ``count`` of a fixed sequence of different GEMMs.

    Sizes are log-uniform in OUTPUT, OUTPUT and INNER, the degree is one of DEGREES. A GEMM above MOST_OUTPUT or
    MOST_WORK, or that ``machine`` cannot run, is drawn again. Raises ValueError if MOST_DRAWS do not give enough.
    """
    random, found, refusal = np.random.default_rng(SEED), dict[Point, None](), ""
    for _ in range(MOST_DRAWS):
        if len(found) == count:
            break
        m, n, k = (int(np.exp(random.uniform(*np.log(ends)))) for ends in (OUTPUT, OUTPUT, INNER))
        gemm = custom_workload(m, n, k, int(random.choice(DEGREES)))
        if gemm.m * gemm.n > MOST_OUTPUT or gemm.m * gemm.n * gemm.k_range[1] > MOST_WORK:
            continue
        try:
            RunRequest(workload=gemm, machine=machine, policy="t3-mca", mirror=True)
        except ValueError as error:
            refusal = str(error)
        else:
            found[custom_point(m, n, k, gemm.tp)] = None
    if len(found) < count:
        raise ValueError(
            f"--random must be at most {len(found)} on machine {machine.name!r}, not {count}: it cannot run more of "
            "the GEMMs that are drawn. Lower --random, or use a larger machine. The last GEMM that was refused: "
            f"{refusal}"
        )
    return tuple(found)
