"""Small runs of the whole system on the toy machine, shared by the tests of the co-simulator."""

from typing import Any

from t3sim.common.cache import BuildError
from t3sim.hardware.rtl.toolchain import find_toolchain
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import custom_workload
from t3sim.run.request import RunRequest, RunResult
from t3sim.run.simulate import simulate

Size = tuple[int, int, int, int]
"""m, n, k, tp."""

POLICIES = ("sequential", "t3", "t3-mca")
RINGS = ("sequential-pipelined", "sequential-nmc")
"""The other baselines, whose parts are mostly those of ``sequential``: they run where that makes a difference."""
EVEN: Size = (256, 256, 512, 4)
"""Four chunks of the same shape."""
BASE: Size = (256, 200, 512, 4)
ODD: Size = (200, 136, 130, 3)
"""K is not divisible, chunks are unequal, the last tile row and column are cut."""
EIGHT: Size = (256, 200, 512, 8)
"""As many chunks as the toy hardware has descriptors, twice as many as its window holds."""


def request(size: Size, policy: str, overrides: dict[str, Any] | None = None, **choices: Any) -> RunRequest:
    """A run of the golden model (unless ``hardware`` says otherwise) that carries data in every line."""
    choices = {"hardware": "golden"} | choices
    if not choices.get("mirror"):
        choices = {"data_lines": 1 << 30} | choices
    m, n, k, tp = size
    return RunRequest(
        workload=custom_workload(m, n, k, tp), machine=load_machine("toy", overrides), policy=policy, **choices
    )


def run(size: Size, policy: str, overrides: dict[str, Any] | None = None, **choices: Any) -> RunResult:
    """Simulate :func:`request`."""
    return simulate(request(size, policy, overrides, **choices))


def missing_compiler() -> str:
    """Why the rtl backend cannot be built here, with the remedy; empty if it can."""
    try:
        find_toolchain()
    except BuildError as error:
        return str(error)
    return ""


def check(result: RunResult) -> None:
    """Every accounting identity holds, and every line of every GPU is what the ring must leave."""
    record = result.record
    assert [name for name, holds in record.identities.items() if holds is False] == []
    if record.policy in ("sequential", "sequential-pipelined") or record.mirror:
        assert record.data_check is None
        return
    workload = record.workload
    assert record.data_check is not None
    assert record.data_check.elements == workload.m * workload.n * workload.tp
    assert record.data_check.mismatches == 0
