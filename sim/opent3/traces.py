"""Traces for Perfetto: files that are opened before the work and written after it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from t3sim.common.manifest import EMPTY, Manifest
from t3sim.run.ideal import COMPUTED
from t3sim.run.request import Policy, RunResult

RESULTS = (".json", ".toml", ".png", ".svg")
"""What the names of all other files of a run end with."""
WriteTrace = Callable[[Mapping[Policy, RunResult]], None]
"""Writes the trace of runs that kept their events."""


def check_traceable(policies: Sequence[Policy]) -> None:
    """Refuses (ValueError) to trace what is computed rather than simulated."""
    if all(policy in COMPUTED for policy in policies):
        raise ValueError(f"--trace needs a policy that is simulated, and {policies[0]} is computed from others")


@contextmanager
def trace_output(trace: Path | None, out: Path | None, folder: Path | None) -> Iterator[WriteTrace]:
    """Opens the trace, so that one that may not be written is refused here; yields what writes it.

    A trace inside of ``out`` is one of that output folder's files: it goes to ``folder``, in which they are made.
    Raises ValueError.
    """
    if trace is None:
        yield lambda _: None
        return
    from t3sim.trace.file import check_name, trace_file  # here and below: Perfetto's messages take a while to load

    check_name(trace)
    if folder is None or out is None or not trace.resolve().is_relative_to(out.resolve()):
        with trace_file(trace) as file:
            yield lambda results: _write(results, file)
        return
    name = trace.resolve().relative_to(out.resolve())
    _check_inside(trace, name, out)
    with tempfile.TemporaryDirectory(dir=folder) as probe, _file_below(Path(probe), name, trace):
        pass  # it can be written there

    def write_inside(results: Mapping[Policy, RunResult]) -> None:
        with _file_below(folder, name, trace) as file:
            _write(results, file)

    yield write_inside


def _check_inside(trace: Path, name: Path, out: Path) -> None:
    """Refuses (ValueError) a trace ``name`` inside of ``out`` in whose place, or on whose way, is or will be a file."""
    if os.path.lexists(trace) and not (Manifest.read(out) or EMPTY).holds(out, name.as_posix()):
        raise ValueError(f"--trace {trace} is there and is no file that t3 wrote: choose another name")
    for folder in name.parents[:-1]:
        if folder.suffix in RESULTS or (os.path.lexists(out / folder) and not (out / folder).is_dir()):
            raise ValueError(
                f"--trace must be in a folder of --out that is no file's name, not in {out / folder}: choose another"
            )


@contextmanager
def _file_below(folder: Path, name: Path, trace: Path) -> Iterator[Any]:
    """The file ``name`` in ``folder``, with new folders on its way; messages call it ``trace``."""
    from t3sim.trace.file import refusals, trace_file

    with refusals(trace):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    with trace_file(folder / name, trace) as file:
        yield file


def write_trace(results: Mapping[Policy, RunResult], path: Path) -> None:
    """Writes the trace of finished runs. Raises ValueError if it cannot be written, or if no run kept its events."""
    check_traceable(tuple(results))
    if all(result.events is None for result in results.values()):
        raise ValueError("a trace needs what happened when, which the run kept if it was called with events=True")
    with trace_output(path, None, None) as write:
        write(results)


def _write(results: Mapping[Policy, RunResult], file: Any) -> None:
    from t3sim.trace.perfetto import write_trace as write
    from t3sim.trace.tracks import processes

    write(processes(result.events for result in results.values() if result.events is not None), file)
