"""The same sublayers on many machines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from t3sim.common.json_text import json_text
from t3sim.common.output import output_folder, write_atomically
from t3sim.inputs import arguments
from t3sim.inputs.machine.files import CONFIG, Machine, load_machine
from t3sim.inputs.transformer.transformer import SizedModel
from t3sim.run.request import Policy
from t3sim.study.suite import Point
from t3sim.study.sweep import BASE, Sweep, SweepRecord, Variant, axes_of, product_of, sweep_record
from t3sim.study.traffic_record import FILE as TRAFFIC
from t3sim.study.traffic_record import TrafficRecord, sweep_traffic

from .frames import curve_frame, record_frame
from .many import ManyOptions, points_of, run_all, suite_of

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType


def vary(values: Mapping[str, Sequence[object]]) -> dict[str, Variant]:
    """A machine for every combination of values, ``{"link.gb_s": [75, 150]}``; the last key changes fastest.

    Raises ValueError for more than 256 machines, no value, a value that comes twice, or one that no machine can have.
    """
    given = arguments.settings("values", values)
    axes = {key: [(_name(key, item), item) for item in _plain(key, items)] for key, items in given.items()}
    return product_of(axes)


def on_machines(names: Iterable[str | Path]) -> dict[str, Variant]:
    """Several presets or machine files, each as it is. Raises ValueError if one is named twice, or is no machine."""
    found = [str(name) for name in arguments.items("names", names, (str, os.PathLike), "presets or machine files")]
    if len(set(found)) != len(found):
        raise ValueError(f"names must have each machine once, not {', '.join(found)}")
    for name in found:
        load_machine(name)
    return {name: Variant(machine=name) for name in found}


def varied(texts: Iterable[str]) -> dict[str, Variant]:
    """The same from texts as ``t3 sweep --vary`` takes them: ``["link.gb_s=75,150", "dma.block=tile,chunk"]``.

    Raises ValueError as :func:`vary`, and for a text of another form.
    """
    return product_of(axes_of(arguments.items("texts", texts, str, "texts, as link.gb_s=75,150")))


def _plain(key: str, items: Sequence[object]) -> list[Any]:
    """The values as Python's own numbers, texts and lists: a machine's record is JSON."""
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise ValueError(f"{key} must have a list of values, not {items!r}")
    return [item.tolist() if isinstance(item, np.generic | np.ndarray) else item for item in items]


def _name(key: str, value: object) -> str:
    """The value as a text. Raises ValueError for one that a machine's record, which is JSON, cannot hold."""
    try:
        return value if isinstance(value, str) else json.dumps(value)
    except TypeError as error:
        raise ValueError(f"{key} must have numbers, texts, truth values or lists of them, not {value!r}") from error


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """The runs on all machines; ``record`` is all of ``sweep.json`` or ``sensitivity.json``, ``traffic`` of
    ``traffic.json``, ``machine`` the first machine, of ``config.toml``."""

    record: SweepRecord
    traffic: TrafficRecord
    machine: Machine

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

    def traffic_frame(self) -> pd.DataFrame:
        """A row for each bin of each simulated run: ``variant``, ``model``, ``sublayer``, ``tp``, ``policy``,
        ``start_ns``, and DRAM bytes of GPU 0 by cause."""
        return curve_frame(self.traffic)

    def save(self, folder: str | Path) -> None:
        """Writes what ``t3 sweep -o`` writes. Raises ValueError if ``folder`` holds what is not t3's."""
        with output_folder(arguments.path("folder", folder)) as inside:
            self._write(inside)

    def table(self) -> RenderableType:
        """What ``t3 sweep`` prints, for Rich: the geometric means of every machine."""
        from t3sim.study.sweep_output import sweep_table  # here and below, because it takes seconds to import

        return sweep_table(self.record)

    def _write(self, folder: Path) -> None:
        from t3sim.study.sweep_output import draw_sensitivity, draw_sweep

        changes_one_at_a_time = self.record.variants[0].name == BASE and len(self.record.variants) > 1
        name, draw = ("sensitivity", draw_sensitivity) if changes_one_at_a_time else ("sweep", draw_sweep)
        write_atomically(folder / f"{name}.json", json_text(self.record.model_dump(by_alias=True)))
        write_atomically(folder / TRAFFIC, self.traffic.text())
        write_atomically(folder / CONFIG, self.machine.to_toml())
        draw(self.record, folder / name)


def sweep(
    variants: Mapping[str, Variant],
    points: Sequence[Point],
    policies: Sequence[Policy] = ("ideal-overlap", "t3", "t3-mca"),
    *,
    own: SizedModel | None = None,
    out: str | Path | None = None,
    **options: Unpack[ManyOptions],
) -> SweepResult:
    """Simulates ``policies`` at ``points`` on every variant of a machine, one GPU of every ring mirrored.

    ``variants``: of :func:`vary`, or of :func:`assumptions`, which changes the machine's assumptions one at a time.
    ``own``: the model whose sublayers the points name, if it is none of the paper's (:func:`own_points`). The hardware
    is "golden" by default. Finished runs are kept in the cache folder and are not repeated. Whether ``out`` can be
    written is checked before the first run.

    Raises ValueError for what cannot be simulated or written or if no scheduler answers, RunsFailedError if some runs
    did not finish.
    """
    arguments.items("variants", arguments.settings("variants", variants).values(), Variant, "machines, as of vary")
    work = Sweep(
        suite=suite_of(options, hardware="golden", quick=True, own=own),
        variants=variants,
        points=points_of(points, "own_points"),
        policies=arguments.items("policies", policies, str, "names of policies"),
    )
    with output_folder(arguments.path_of("out", out)) as folder:
        store = run_all(work.experiments(), options)
        _, first = next(work.suites())
        result = SweepResult(
            record=sweep_record(work, store), traffic=sweep_traffic(work, store), machine=first.machine_of("base")
        )
        if folder is not None:
            result._write(folder)
    return result
