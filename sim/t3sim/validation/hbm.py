"""The HBM model against a cycle-level DRAM simulator: replays its traces on one pseudo-channel and compares cycles."""

import json
import zipfile
import zlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile
from pydantic import ValidationError
from t3hdl.interface.layouts import BANK_GROUPS, BANKS_PER_GROUP, ROW_LINES

from t3sim.common.compiled import njit
from t3sim.common.user_input import read_file, shortened
from t3sim.dram.hbm import FOREVER, UPDATE, HbmState, accepts, enqueue_address, new_hbm_state, statistics, tick
from t3sim.inputs.machine.files import load_machine, one_line
from t3sim.inputs.machine.hbm import TIMINGS, HbmSection

MAX_BYTES = 1 << 30
"""Size of a file of traces or of cycles."""

COLUMNS = {"write": 2, "bank_group": BANK_GROUPS, "bank": BANKS_PER_GROUP, "row": 1 << 24, "column": ROW_LINES}
"""Columns of a trace, and the number of values that each may have."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One trace: what the model needed, what the reference needed, and the model's relative error."""

    name: str
    requests: int
    cycles: int
    reference_cycles: int
    row_hits: int
    reference_row_hits: int | None
    """None with refresh, where the reference has no counts."""
    error: float
    within: bool
    """Whether the size of ``error`` is at most the tolerance."""


@njit(cache=True, nogil=True)
def _replay(hbm, trace):
    """Cycles until the last request of ``trace`` is accepted: in each cycle one is offered, then the channel ticks."""
    now, wake = 1, 0
    for i in range(len(trace)):
        write, bank_group, bank, row, column = trace[i]
        while not accepts(hbm, 0, write):
            now = wake
            wake, _, _ = tick(hbm, 0, now)
            now += 1
        enqueue_address(hbm, 0, now, bank_group, bank, row, column, write, i)
        wake, _, _ = tick(hbm, 0, now)
        now += 1
    return now - 2


def _measure(parameters: HbmSection, trace: np.ndarray) -> tuple[int, HbmState]:
    as_measured = {
        "queue": "split",
        "read_lines": 32,
        "write_lines": 32,
        "drain_high": 0.8,
        "drain_low": 0.2,
        "service_order": "reads-first",
        "row_policy": "oldest",
        "age_limit_cycles": FOREVER,  # the reference has none, and so more than a machine may have
    }
    hbm = new_hbm_state(parameters.model_copy(update=as_measured), 1)
    return int(_replay(hbm, trace.astype(np.int64))), hbm


def memory_with_timings(timings: dict[str, Any], *, refresh: bool) -> HbmSection:
    """Machine `paper`'s memory with the timings of a table in clocks (extra keys such as ``tCK_ps`` are ignored).

    ValueError if a timing is missing or illegal.
    """
    if missing := [name for name in TIMINGS if name not in timings]:
        raise ValueError(f"timing table: {', '.join(missing)} missing; give every timing in clocks")
    given = {name: timings[name] for name in TIMINGS} | {"refresh": refresh}
    try:
        return HbmSection.model_validate(load_machine("paper").hbm.model_dump() | given)
    except ValidationError as error:
        raise ValueError(one_line("timing table", error)) from error


def replay(parameters: HbmSection, trace: np.ndarray, *, updates: bool = False) -> int:
    """Cycles that one channel needs to accept ``trace`` (rows of :data:`COLUMNS`), one request offered per cycle.

    As the reference was measured: a queue split into 32 reads and 32 writes, drain from 0.8 to 0.2, reads first, no
    age limit, whatever ``parameters`` say about the queue. ``updates``: the trace's writes are near-memory updates.
    ValueError if the trace has illegal values.
    """
    _check_trace("trace", trace)
    return _measure(parameters, trace * [UPDATE, 1, 1, 1, 1] if updates else trace)[0]


def validate(traces_npz: Path, reference_json: Path, tolerance: float, refresh: bool) -> list[Row]:
    """Replays every trace with the reference's timings and compares: one row per trace, in the file's order.

    ``tolerance`` is relative (0.05 is 5 %). ValueError if a file is missing or not what it should be, if a trace has no
    reference, or a reference no trace.
    """
    if not 0 < tolerance <= 1:
        raise ValueError(f"tolerance must be above 0 and at most 1 (0.05 is 5 %), not {tolerance}")
    traces = _load_traces(traces_npz)
    reference = _load_reference(reference_json)
    timings, results = reference["timings_in_clock_cycles"], reference["results"]
    for name in sorted(traces.keys() ^ results.keys()):
        where, lacks = (traces_npz, reference_json) if name in traces else (reference_json, traces_npz)
        raise ValueError(f"trace {name!r} is in {where} but not in {lacks}; use files that belong together")
    parameters = memory_with_timings(timings, refresh=refresh)
    return [_compare(name, traces[name], results[name], parameters, tolerance) for name in traces]


def _compare(name: str, trace: np.ndarray, result: dict[str, Any], parameters: HbmSection, tolerance: float) -> Row:
    key = "cycles_with_refresh" if parameters.refresh else "cycles"
    for needed in ("requests", key, "row_hits"):
        if type(result.get(needed)) is not int or result[needed] < 0:  # true is an int, too
            raise ValueError(
                f"reference of trace {name!r}: {needed!r} must be a count, not {shortened(result.get(needed))}"
            )
    if result["requests"] != len(trace) or result[key] < 1:
        raise ValueError(
            f"reference of trace {name!r} is for {result['requests']} requests in {result[key]} cycles, but the trace "
            f"has {len(trace)} requests; use files that belong together"
        )
    cycles, hbm = _measure(parameters, trace)
    error = cycles / result[key] - 1
    return Row(
        name=name,
        requests=len(trace),
        cycles=cycles,
        reference_cycles=result[key],
        row_hits=statistics(hbm, 0)["row_hits"],
        reference_row_hits=None if parameters.refresh else result["row_hits"],
        error=error,
        within=abs(error) <= tolerance,
    )


_NO_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""What zipfile raises for an archive that is broken, that it does not know, or that is encrypted."""


def _load_traces(path: Path) -> dict[str, np.ndarray]:
    try:
        archive = np.load(BytesIO(read_file(path, MAX_BYTES)), allow_pickle=False)
        if not isinstance(archive, NpzFile):
            raise ValueError("but one array")
        with archive:
            traces = {name: archive[name] for name in archive.files}
    except FileNotFoundError as error:
        raise ValueError(f"traces: no file {path}; give an .npz file of traces") from error
    except (OSError, ValueError, *_NO_ARCHIVE) as error:
        raise ValueError(f"traces: {path} is not an .npz file of arrays ({error})") from error
    if not traces:
        raise ValueError(f"traces: {path} has no arrays; give one array per trace")
    for name, trace in traces.items():
        _check_trace(f"traces: array {name!r} of {path}", trace)
    return traces


def _check_trace(what: str, trace: np.ndarray) -> None:
    columns = ", ".join(COLUMNS)
    if not isinstance(trace, np.ndarray):  # what of an archive is no array comes as bytes
        raise ValueError(f"{what} must be an array, not {shortened(trace)}")
    if trace.ndim != 2 or trace.shape[1] != len(COLUMNS) or len(trace) == 0 or trace.dtype.kind not in "iu":
        raise ValueError(
            f"{what} must be integers in rows of ({columns}), one row per request, not {trace.dtype} of shape "
            f"{trace.shape}"
        )
    for i, (column, values) in enumerate(COLUMNS.items()):
        low, high = int(trace[:, i].min()), int(trace[:, i].max())
        if low < 0 or high >= values:
            wrong = low if low < 0 else high
            raise ValueError(f"{what}: column {column!r} must be 0 to {values - 1}, not {wrong}")


def _load_reference(path: Path) -> dict[str, Any]:
    try:
        reference = json.loads(read_file(path, MAX_BYTES))
    except FileNotFoundError as error:
        raise ValueError(f"reference: no file {path}; give the .json file that belongs to the traces") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"reference: {path} is not a JSON file ({error})") from error
    for key in ("timings_in_clock_cycles", "results"):
        if not isinstance(reference, dict) or not isinstance(reference.get(key), dict):
            raise ValueError(f"reference: {path} has no table {key!r}; give timings and results as measured")
    for name, result in reference["results"].items():
        if not isinstance(result, dict):
            raise ValueError(f"reference: result {name!r} of {path} must be a table, not {shortened(result)}")
    return reference
