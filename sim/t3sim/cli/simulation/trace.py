"""The option ``--trace``: a trace of the run for Perfetto."""

from pathlib import Path
from typing import Any

import click

from ..console import plain_console, shown
from ..errors import FILE

VIEWER = "https://ui.perfetto.dev"


def trace_option(command: Any) -> Any:
    """The option ``--trace``."""
    return click.option(
        "--trace",
        type=FILE,
        metavar="FILE.pftrace",
        help=f"Write what every GPU does when, for {VIEWER}.",
    )(command)


def say_trace(trace: Path | None) -> None:
    """Says where the trace is, and what shows it."""
    if trace is not None:
        plain_console().print(f"trace written to {shown(trace)}: open it at {VIEWER}")
