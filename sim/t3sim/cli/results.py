"""What the commands that simulate print: progress while they run, then the table, and where the rest is."""

from pathlib import Path
from typing import Any

from rich.console import Console

from t3sim.run.request import RunRequest
from t3sim.run.result import Result

from .console import plain_console, progress
from .errors import Mismatch
from .reproduce import say_where
from .tables import result_table, tiling_text
from .trace import say_trace


def watch(label: str) -> Any:
    """Progress of one run, on stderr."""
    return progress(Console(stderr=True), label)


def show(request: RunRequest, records: list[Result], out: Path | None, trace: Path | None = None) -> None:
    """Prints the table, and where results and trace are."""
    from t3sim.run import policies as runs  # here, because it takes seconds to import

    console = plain_console()
    machine, config = request.machine, request.machine.hardware.preset
    console.print(f"{request.workload.title} on machine {machine.name}, {request.hardware} hardware ({config})")
    console.print(tiling_text(records[0].gemm))
    console.print(result_table(records, runs.speedups(records)))
    say_where(out)
    say_trace(trace)


def fail_if_wrong(records: list[Result]) -> None:
    """Fails (exit code 1) if a result does not add up."""
    from t3sim.run import policies as runs

    wrong = [text for record in records for text in runs.failures(record)]
    if wrong:
        raise Mismatch("; ".join(wrong))
