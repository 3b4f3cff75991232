"""Records made up so that what limits them is known."""

from typing import Any

from t3sim.run.request import Policy
from t3sim.run.result import Result

from tests.support.sample_result import sample_result


def crafted(policy: Policy = "t3-mca", **changes: Any) -> Result:
    """A record of 1000 ns of GEMM, a reduce-scatter of 600 and an all-gather of 400 whose link is busy half of the
    time, with CUs that never wait. ``changes`` name fields, by a dotted path with __ for the dots."""
    overlapped = policy in ("t3", "t3-mca")
    total = 1400.0 if overlapped else 2000.0
    content = sample_result(policy).model_dump(by_alias=True)
    content["time_ns"] |= {
        "total": total, "gemm": 1000.0, "reduce_scatter": 600.0, "all_gather": 400.0,
        "exposed_communication": 400.0 if overlapped else 1000.0,
    }  # fmt: skip
    content["traffic_bytes_per_gpu"] |= {"rs_write": 60.0, "ag_write": 40.0}
    if overlapped:
        content["tracker"]["triggers"] = 40
        content["blocks"] = {"by_tile": 40, "by_chunk": 0}
    nothing = dict.fromkeys(content["contention"]["compute"], 0) | {"lines": 100, "mean_wait_ns": 5.0}
    content["contention"] |= {
        "compute": nothing, "communication": dict(nothing), "cu_stall_ns": {"loads": 0.0, "stores": 0.0},
        "link_busy_ns": 500.0, "link_idle_ns": total - 500.0,
    }  # fmt: skip
    for path, value in changes.items():
        *parents, name = path.split("__")
        place = content
        for parent in parents:
            place = place[parent]
        assert name in place, path
        place[name] = value
    return Result.model_validate(content)
