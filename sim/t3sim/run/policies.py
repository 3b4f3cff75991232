"""Runs as people ask for them: one policy or several, checked, and written to a folder."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from t3sim.common.json_text import json_text
from t3sim.common.output import write_atomically
from t3sim.inputs.machine.files import CONFIG

from .ideal import COMPUTED, ideal_overlap
from .records import Comparison
from .request import OnProgress, Policy, RunRequest, RunResult
from .result import Result, write_result
from .timeline_record import TimelineRecord

Watch = Callable[[str], AbstractContextManager[OnProgress]]
"""From a label to a context that shows the progress of the run with that label."""


def run(request: RunRequest, watch: Watch) -> RunResult:
    """Simulates ``request``; an ideal policy simulates those that it is computed from."""
    return run_policies(request, (request.policy,), watch)[request.policy]


def run_policies(request: RunRequest, policies: Sequence[Policy], watch: Watch) -> dict[Policy, RunResult]:
    """The results of ``policies``, in their order, for what is otherwise the same request."""
    from .simulate import simulate  # here, because it takes seconds to import

    results: dict[Policy, RunResult] = {}

    def result_of(policy: Policy) -> RunResult:
        if policy not in results:
            if policy in COMPUTED:
                base, reduction = COMPUTED[policy]
                results[policy] = ideal_overlap(policy, result_of(base), result_of(reduction))
            else:
                with watch(policy) as on_progress:
                    results[policy] = simulate(replace(request, policy=policy), on_progress)
        return results[policy]

    return {policy: result_of(policy) for policy in policies}


def failures(result: Result) -> list[str]:
    """What is wrong with a result: accounting identities that do not hold, output elements that differ."""
    found = [
        f"{result.policy}: identity {name} does not hold" for name, holds in result.identities.items() if holds is False
    ]
    if result.data_check and result.data_check.mismatches:
        check = result.data_check
        found.append(f"{result.policy}: {check.mismatches} of {check.elements} output elements differ")
    return found


def speedups(results: Sequence[Result]) -> list[float | None]:
    """Speedup over the sequential policy of each result; None if that is not among them."""
    base = next((result.time_ns.total for result in results if result.policy == "sequential"), None)
    return [None if base is None else base / result.time_ns.total for result in results]


def write_run(request: RunRequest, result: RunResult, folder: Path) -> None:
    """Writes ``result.json``, ``config.toml``, ``timing.json``, and the timeline if there is one, as numbers and as a
    picture of GPU 0."""
    from .timeline import draw_timeline  # here and below, because it takes seconds to import

    record = result.record
    write_result(record, folder / "result.json")
    header = (
        f"# {request.workload.title}, policy {record.policy}, hardware {record.hardware}, seed {record.seed}"
        f"{', mirror' if record.mirror else ''}\n"
    )
    write_atomically(folder / CONFIG, header + request.machine.to_toml())
    write_atomically(folder / "timing.json", json_text({"wall_seconds": result.wall.model_dump()}))
    if result.timeline is not None:
        write_atomically(folder / "timeline.json", TimelineRecord.of(result.timeline).text())
        draw_timeline(record, result.timeline, folder / "timeline.png")


def write_comparison(request: RunRequest, results: dict[Policy, RunResult], folder: Path) -> None:
    """Writes ``compare.json``, ``comparison.png``, and a folder for each policy."""
    from .timeline import draw_comparison

    for policy, result in results.items():
        (folder / policy).mkdir()
        write_run(request, result, folder / policy)
    records = [result.record for result in results.values()]
    gains = speedups(records)
    content = Comparison(
        speedup_over_sequential={record.policy: gain for record, gain in zip(records, gains, strict=True)},
        runs={record.policy: record for record in records},
    )
    write_atomically(folder / "compare.json", json_text(content.model_dump(by_alias=True)))
    draw_comparison(records, gains, folder / "comparison.png")
