"""The option ``--trace``: a trace of the run for Perfetto."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from t3sim.common.manifest import EMPTY, Manifest
from t3sim.run.ideal import COMPUTED
from t3sim.run.request import Policy, RunResult

from ..console import plain_console

WriteTrace = Callable[[Mapping[Policy, RunResult]], None]
VIEWER = "https://ui.perfetto.dev"


def trace_option(command: Any) -> Any:
    """The option ``--trace``."""
    return click.option(
        "--trace",
        type=click.Path(path_type=Path),
        metavar="FILE.pftrace",
        help=f"Write what every GPU does when, for {VIEWER}.",
    )(command)


def check_traceable(policies: Sequence[Policy]) -> None:
    """Refuses (ValueError) to trace what is computed rather than simulated."""
    if all(policy in COMPUTED for policy in policies):
        raise ValueError(f"--trace needs a policy that is simulated, and {policies[0]} is computed from others")


@contextmanager
def trace_output(trace: Path | None, out: Path | None, folder: Path | None) -> Iterator[WriteTrace]:
    """Opens the trace before the work, so that one that may not be written is refused then; yields what writes it.

    A trace inside of ``out`` is one of that folder's files: it goes to ``folder``, in which they are made.
    """
    if trace is None:
        yield lambda _: None
        return
    from t3sim.trace.file import check_name, trace_file  # here and below: Perfetto's messages take a while to load

    check_name(trace)
    if folder is not None and out is not None and trace.resolve().is_relative_to(out.resolve()):
        name = trace.resolve().relative_to(out.resolve())
        inside = folder / name
        if os.path.lexists(trace) and not (Manifest.read(out) or EMPTY).holds(out, name.as_posix()):
            raise ValueError(f"--trace {trace} is there and is no file that t3 wrote: choose another name")

        def write_inside(results: Mapping[Policy, RunResult]) -> None:
            inside.parent.mkdir(parents=True, exist_ok=True)
            with trace_file(inside) as file:
                _write(results, file)

        yield write_inside
        return
    with trace_file(trace) as file:
        yield lambda results: _write(results, file)


def _write(results: Mapping[Policy, RunResult], file: Any) -> None:
    from t3sim.trace.perfetto import write_trace
    from t3sim.trace.tracks import processes

    write_trace(processes(result.events for result in results.values() if result.events is not None), file)


def say_trace(trace: Path | None) -> None:
    """Says where the trace is, and what shows it."""
    if trace is not None:
        plain_console().print(f"trace written to {trace}: open it at {VIEWER}")
