"""What the commands that simulate print: progress while they run, then the table, and where the rest is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opent3 import Comparison, SizedModel, caution
from rich.console import Console

from ..console import plain_console, progress, say_where
from ..errors import Mismatch
from .own_model import print_assumptions
from .trace import say_trace


def watch(label: str) -> Any:
    """Progress of one run, on stderr."""
    return progress(Console(stderr=True), label)


def show(found: Comparison, out: Path | None, trace: Path | None = None, own: SizedModel | None = None) -> None:
    """Prints the table, and where results and trace are; ``own``: the user's model, whose assumptions come with it."""
    console = plain_console()
    request = next(iter(found.runs.values())).request
    machine, config = request.machine, request.machine.hardware.preset
    console.print(f"{request.workload.title} on machine {machine.title}, {request.hardware} hardware ({config})")
    print_assumptions(console, own, request.workload.tp, machine)
    console.print(found.table())
    for text in found.warnings:
        if text not in caution(machine):  # which stands above the figures
            console.print(text)
    say_where(out)
    say_trace(trace)


def fail_if_wrong(failures: Sequence[str]) -> None:
    """Fails (exit code 1) if a result does not add up."""
    if failures:
        raise Mismatch("; ".join(failures))
