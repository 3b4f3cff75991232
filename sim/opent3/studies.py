"""The paper's evaluation, and the map of machines on which memory arbitration gains time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from t3sim.common.json_text import json_text
from t3sim.common.output import output_folder, write_atomically
from t3sim.inputs import arguments
from t3sim.inputs.machine.files import CONFIG, Machine
from t3sim.study.arbitration.axes import known_axes, plan_of
from t3sim.study.arbitration.random_gemms import MOST, random_points
from t3sim.study.arbitration.record import MAPPED, ArbitrationMap, map_record
from t3sim.study.evaluation import Evaluation
from t3sim.study.reproduction import Reproduction, reproduction
from t3sim.study.suite import PUBLISHED_RULE, QUICK_TABLES, TABLES, Point, sweep_points
from t3sim.study.sweep import Sweep
from t3sim.study.traffic_record import FILE as TRAFFIC
from t3sim.study.traffic_record import TrafficRecord, reproduction_traffic

from .frames import curve_frame, record_frame
from .many import ManyOptions, points_of, run_all, suite_of

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

MAP_POINTS = (("mega-gpt-2", "t-nlg"), ("8", "16"), ("op", "fc2", "ip"))
"""Models, degrees and sublayers of a map: those of the paper's evaluation, twelve GEMMs, FC-1 being FC-2's."""
QUICK_MAP_POINTS = (("mega-gpt-2", "t-nlg"), ("8", "16"), ("op", "fc2"))
"""Of each of these the layer where the paper has contention, and the one where it has none: eight GEMMs."""
MAX_LAUNCHES = 8


@dataclass(frozen=True, kw_only=True)
class ReproductionResult:
    """Published figures and ours; ``record`` is all of ``reproduce.json``, ``traffic`` of ``traffic.json``."""

    record: Reproduction
    evaluation: Evaluation

    @property
    def failures(self) -> list[str]:
        """Accounting identities that do not hold, by run; empty if all are sound."""
        return self.record.failures

    def frame(self) -> pd.DataFrame:
        """A row for each published figure: ``published``, ``measured``, its band (``low``, ``high``), ``verdict``."""
        return record_frame(self.record.figures)

    def run_frame(self) -> pd.DataFrame:
        """A row for each run: ``variant`` of the machine, ``speedup`` over sequential, and ``result.*``, the record."""
        return record_frame(self.record.runs)

    def model_frame(self) -> pd.DataFrame:
        """A row for each whole model, phase, attention and policy; empty without the table ``end-to-end``."""
        return record_frame(self.record.models)

    @property
    def traffic(self) -> TrafficRecord:
        """DRAM bytes of GPU 0 over time, by cause, of every simulated run."""
        return reproduction_traffic(self.evaluation, self.record.tables)

    def traffic_frame(self) -> pd.DataFrame:
        """A row for each bin of each simulated run: ``variant``, ``model``, ``sublayer``, ``tp``, ``policy``,
        ``start_ns``, and DRAM bytes of GPU 0 by cause."""
        return curve_frame(self.traffic)

    def table(self) -> RenderableType:
        """What ``t3 reproduce`` prints, for Rich: its tables, and every published figure beside ours."""
        from rich.console import Group  # here and below, because they take a while to import
        from t3sim.study.tables import TABLE_MAKERS, figures_table

        made = [TABLE_MAKERS[name](self.evaluation) for name in self.record.tables if name in TABLE_MAKERS]
        measured = [figure for figure in self.record.figures if figure.measured is not None]
        others = len(self.record.figures) - len(measured)
        left = [f"{others} published figures are of tables that were not run"] if others else []
        figures = [figures_table(measured)] if measured else []
        return Group(*(part for table in made for part in (table, "")), *figures, *left)

    def save(self, folder: str | Path) -> None:
        """Writes what ``t3 reproduce -o`` writes. Raises ValueError if ``folder`` holds what is not t3's."""
        with output_folder(arguments.path("folder", folder)) as inside:
            self._write(inside)

    def _write(self, folder: Path) -> None:
        from t3sim.study.charts import draw_charts

        write_atomically(folder / "reproduce.json", json_text(self.record.model_dump(by_alias=True)))
        write_atomically(folder / TRAFFIC, self.traffic.text())
        write_atomically(folder / CONFIG, self.evaluation.suite.machine_of("base").to_toml())
        draw_charts(self.evaluation, self.record.tables, folder)


def reproduce(
    tables: Sequence[str] = (),
    *,
    quick: bool = False,
    out: str | Path | None = None,
    **options: Unpack[ManyOptions],
) -> ReproductionResult:
    """Compares every published result of the paper with the simulation.

    Memory arbitrates by the paper's rule; what this project's gives is measured besides. ``tables``: names of
    :data:`TABLES`, all without. ``quick``: TP 8 and 16 only, one GPU of every ring. The hardware is "rtl" by default.
    Finished runs are kept and are not repeated. A figure outside its band is no error. Raises ValueError and
    RunsFailedError as :func:`sweep`.
    """
    options["settings"] = _by_the_published_rule(options.get("settings"))
    known, only = QUICK_TABLES if quick else TABLES, arguments.items("tables", tables, str, "names of tables")
    if unknown := [name for name in only if name not in known]:
        raise ValueError(f"--only must name tables of {', '.join(known)}, not {', '.join(unknown)}")
    wanted = [name for name in known if not only or name in only]
    suite = suite_of(options, hardware="rtl", quick=quick)
    with output_folder(arguments.path_of("out", out)) as folder:
        evaluation = Evaluation(suite, run_all(suite.experiments(wanted), options))
        result = ReproductionResult(record=reproduction(evaluation, wanted), evaluation=evaluation)
        if folder is not None:
            result._write(folder)
    return result


def _by_the_published_rule(settings: Mapping[str, object] | None) -> dict[str, object]:
    """The settings with the rule of arbitration that the published numbers are of. ValueError for another rule."""
    given = dict(arguments.settings("settings", settings))
    for key, value in PUBLISHED_RULE.items():
        if given.get(key, value) != value:
            raise ValueError(
                f"--set {key} must be {value} here, not {given[key]}: published numbers are held against the paper's "
                "rule; what this project's rule gives is measured and shown beside it"
            )
    return {**PUBLISHED_RULE, **given}


@dataclass(frozen=True, kw_only=True)
class MapResult:
    """What arbitration is worth on every machine; ``record`` is all of ``map.json``, ``machine`` the one without a
    change, of ``config.toml``."""

    record: ArbitrationMap
    machine: Machine

    @property
    def failures(self) -> list[str]:
        """Accounting identities that do not hold, by machine; empty if all runs are sound."""
        return self.record.failures

    def frame(self) -> pd.DataFrame:
        """A row for each machine and GEMM: ``machine``, ``gemm``, ``gain``, the time of t3 over that of t3-mca, and
        what was measured of both policies; nested fields are columns with dots."""
        table = record_frame(place.cell for place in self.record.places())
        table.insert(0, "machine", [place.machine.name for place in self.record.places()])
        table.insert(1, "gemm", [place.gemm for place in self.record.places()])
        return table

    def table(self) -> RenderableType:
        """What ``t3 map`` prints, for Rich."""
        from t3sim.study.arbitration.gains import gains_table  # here and below, because they take seconds to import
        from t3sim.study.arbitration.table import map_table

        return map_table(self.record) if self._has_changes else gains_table(self.record)

    def save(self, folder: str | Path) -> None:
        """Writes what ``t3 map -o`` writes. Raises ValueError if ``folder`` holds what is not t3's."""
        with output_folder(arguments.path("folder", folder)) as inside:
            self._write(inside)

    def _write(self, folder: Path) -> None:
        from t3sim.study.arbitration.gains import draw_gains
        from t3sim.study.arbitration.pictures import draw_map

        write_atomically(folder / "map.json", json_text(self.record.model_dump(by_alias=True)))
        write_atomically(folder / CONFIG, self.machine.to_toml())
        (draw_map if self._has_changes else draw_gains)(self.record, folder)

    @property
    def _has_changes(self) -> bool:
        return bool(self.record.singles)


def map_points(
    models: Sequence[str] = (), degrees: Sequence[str] = (), sublayers: Sequence[str] = (), *, quick: bool = False
) -> tuple[Point, ...]:
    """GEMMs of a map; those of :data:`MAP_POINTS` where nothing is named. ValueError for an unknown name."""
    defaults = QUICK_MAP_POINTS if quick else MAP_POINTS
    return sweep_points(models or defaults[0], degrees or defaults[1], sublayers or defaults[2])


def arbitration_map(
    axes: Sequence[str] = (),
    points: Sequence[Point] | None = None,
    *,
    random: int = 0,
    launches: int = 1,
    quick: bool = False,
    out: str | Path | None = None,
    **options: Unpack[ManyOptions],
) -> MapResult:
    """What memory arbitration gains (t3-mca over t3) on a machine, with every change of the ``axes``, and with pairs.

    ``axes``: names of those of ``study/arbitration/axes.toml``, all without; ``["none"]``: the machine as it is.
    ``points``: the GEMMs (:func:`map_points`); ``random``: also the first so many of a fixed sequence of random GEMMs.
    ``launches``: runs of everything, each with the GEMM launched some ns later, of which the means are shown.
    ``quick``: fewer GEMMs, and no pairs of changes. The hardware is "golden" by default, one GPU of every ring is
    mirrored, and finished runs are kept. Raises ValueError and RunsFailedError as :func:`sweep`.
    """
    chosen = known_axes().of(arguments.items("axes", axes, str, "names of axes"))
    suite = suite_of(options, hardware="golden", quick=True)
    launches = arguments.integer("launches", launches)
    if not 1 <= launches <= MAX_LAUNCHES:
        raise ValueError(f"--launches must be in 1 to {MAX_LAUNCHES}, not {launches}")
    random = arguments.integer("random", random)
    if not 0 <= random <= MOST:
        raise ValueError(f"random must be in 0 to {MOST}, not {random}")
    plan = plan_of(chosen, suite.machine, suite.settings, quick=quick, launches=launches)
    given = map_points(quick=quick) if points is None else points_of(points, "map_points")
    work = Sweep(
        suite=suite,
        variants=plan.runs(),
        points=(*given, *random_points(suite.machine_of("base"), random)),
        policies=MAPPED,
    )
    with output_folder(arguments.path_of("out", out)) as folder:
        record = map_record(work, plan, chosen, run_all(work.experiments(), options), quick=quick)
        result = MapResult(record=record, machine=suite.machine_of("base"))
        if folder is not None:
            result._write(folder)
    return result
