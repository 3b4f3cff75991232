"""The same sublayers on many machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
from t3sim.common.output import output_folder, write_atomically
from t3sim.inputs import arguments
from t3sim.inputs.transformer.transformer import SizedModel
from t3sim.run.request import Backend, Policy
from t3sim.run.result import json_text
from t3sim.study.runner import Status, run_missing
from t3sim.study.store import Store
from t3sim.study.suite import Point, Suite
from t3sim.study.sweep import BASE, Sweep, SweepRecord, Variant, product_of, sweep_record

from .frames import record_frame
from .runs import usable_cores

if TYPE_CHECKING:
    import pandas as pd

OnStatus = Callable[[Status], None]
"""Called about once a second with how far the runs are."""


def vary(values: Mapping[str, Sequence[object]]) -> dict[str, Variant]:
    """A machine for every combination of values, ``{"link.gb_s": [75, 150]}``; the last key changes fastest.

    Raises ValueError for more than 256 machines, no value, or a value that comes twice.
    """
    given = arguments.settings("values", values)
    axes = {key: [(_name(item), item) for item in _plain(key, items)] for key, items in given.items()}
    return product_of(axes)


def _plain(key: str, items: Sequence[object]) -> list[Any]:
    """The values as Python's own numbers, texts and lists: a machine's record is JSON."""
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise ValueError(f"{key} must have a list of values, not {items!r}")
    return [item.tolist() if isinstance(item, np.generic | np.ndarray) else item for item in items]


def _name(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """The runs on all machines; ``record`` is all of ``sweep.json`` or ``sensitivity.json``."""

    record: SweepRecord

    @property
    def failures(self) -> list[str]:
        """Accounting identities that do not hold, by machine; empty if all runs are sound."""
        return self.record.failures

    def frame(self) -> pd.DataFrame:
        """A row for each run: ``variant`` (name of the machine), ``speedup`` over the sequential policy, the record."""
        rows = [(variant.name, run) for variant in self.record.variants for run in variant.runs]
        table = record_frame(run.result for _, run in rows)
        table.insert(0, "variant", [name for name, _ in rows])
        table.insert(1, "speedup", [run.speedup for _, run in rows])
        return table

    def geomean_frame(self) -> pd.DataFrame:
        """A row for each machine: geometric means over the sublayers of speedups, GEMM reads and data movement."""
        table = record_frame(variant.geomeans for variant in self.record.variants)
        table.insert(0, "variant", [variant.name for variant in self.record.variants])
        return table

    def save(self, folder: str | Path) -> None:
        """Writes what ``t3 sweep -o`` writes. Raises ValueError if ``folder`` holds what is not t3's."""
        with output_folder(Path(folder)) as inside:
            self.write_into(inside)

    def write_into(self, folder: Path) -> None:
        """The same, into an open output folder (:func:`~t3sim.common.output.output_folder`)."""
        from t3sim.study.sweep_output import draw_sensitivity, draw_sweep  # here, because it takes seconds to import

        changes_one_at_a_time = self.record.variants[0].name == BASE
        name, draw = ("sensitivity", draw_sensitivity) if changes_one_at_a_time else ("sweep", draw_sweep)
        write_atomically(folder / f"{name}.json", json_text(self.record.model_dump(by_alias=True)))
        draw(self.record, folder / name)


def sweep(
    variants: Mapping[str, Variant],
    points: Sequence[Point],
    policies: Sequence[Policy] = ("ideal-overlap", "t3", "t3-mca"),
    *,
    own: SizedModel | None = None,
    machine: str = "paper",
    settings: Mapping[str, object] | None = None,
    hardware: Backend = "golden",
    seed: int = 0,
    jobs: int | None = None,
    scheduler: str | None = None,
    on_status: OnStatus | None = None,
    out: str | Path | None = None,
) -> SweepResult:
    """Simulates ``policies`` at ``points`` on every variant of a machine, one GPU of every ring mirrored.

    ``own``: the model whose sublayers the points name, if it is none of the paper's (:func:`own_points`).
    ``variants``: of :func:`vary`, or of :func:`assumptions`, which changes the machine's assumptions one at a time.
    ``jobs``: runs at a time, by default one for each usable core; results do not depend on it. ``scheduler``: address
    of a Dask scheduler whose workers do the runs instead. Finished runs are kept in the cache and are not repeated.
    Whether ``out`` can be written is checked before the first run.

    Raises ValueError for what cannot be simulated or written or if no scheduler answers, RunsFailedError if some runs
    did not finish.
    """
    if jobs is not None and arguments.integer("jobs", jobs) < 1:
        raise ValueError(f"jobs must be at least 1, not {jobs}")
    arguments.instance("scheduler", scheduler, (str, NoneType), "the address of a Dask scheduler, or None")
    arguments.instance("own", own, (SizedModel, NoneType), "a model, as of own_model, or None")
    arguments.items("variants", arguments.settings("variants", variants).values(), Variant, "machines, as of vary")
    suite = Suite(
        machine=machine,
        settings=arguments.settings("settings", settings),
        hardware=hardware,
        quick=True,
        seed=arguments.integer("seed", seed),
        own=own,
    )
    work = Sweep(
        suite=suite,
        variants=variants,
        points=arguments.items("points", points, Point, "Point, as of own_points"),
        policies=arguments.items("policies", policies, str, "names of policies"),
    )
    with output_folder(arguments.folder_of(out)) as folder:
        store = Store()
        run_missing(work.experiments(), store, jobs or usable_cores(), on_status or (lambda status: None), scheduler)
        result = SweepResult(record=sweep_record(work, store))
        if folder is not None:
            result.write_into(folder)
    return result
