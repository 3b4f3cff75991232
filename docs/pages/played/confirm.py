"""Whether today's simulator gives what kept records say: ``python -m docs.pages.played.confirm FOLDER...``.

A record takes hours, and a change of the simulator seldom moves its figures. Results that are drawn by chance are run
again and compared number by number; if all are the same, the folder keeps how many were (``confirmed.json``), and pages
say so. If one differs, nothing is kept: the record must be measured again.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import click
from opent3.many import run_all
from t3sim.common.json_text import json_text
from t3sim.common.output import write_atomically
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import CUSTOM, custom_workload
from t3sim.run.ideal import COMPUTED
from t3sim.run.records import read_record
from t3sim.run.result import Result
from t3sim.study.arbitration.axes import LATER_NS, Plan
from t3sim.study.arbitration.record import MAPPED, ArbitrationMap, Cell
from t3sim.study.evaluation import Evaluation
from t3sim.study.experiment import Experiment
from t3sim.study.reproduction import Reproduction
from t3sim.study.sources import digest_for, is_current
from t3sim.study.store import Store
from t3sim.study.suite import Point, Suite, custom_point
from t3sim.study.sweep import Sweep, SweepRecord, Variant

from docs.pages.shared.kept import CONFIRMED, Confirmed, digest_of

_SAYS_WHO = {"schema_version", "opent3", "provenance", "workload"}
"""Fields of a run's record that name what made it, and for what: they decide no figure."""


class Again(Protocol):
    """A result of a record, and how it is had again."""

    @property
    def title(self) -> str:
        """For people."""

    def experiments(self) -> list[Experiment]:
        """The runs that it needs."""

    def differences(self, store: Store) -> list[str]:
        """Where the runs, which are finished, give something else than the record."""


@dataclass(frozen=True, kw_only=True)
class AgainCell:
    """A cell of a map: a GEMM on a machine."""

    record: ArbitrationMap
    machine: int
    gemm: int

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.record.titles[self.gemm]} on {self.record.machines[self.machine].name}"

    @property
    def _kept(self) -> Cell:
        return self.record.machines[self.machine].cells[self.gemm]

    @property
    def _point(self) -> Point:
        work = self.record.gemms[self.gemm]
        if work.model == CUSTOM:
            return custom_point(work.m, work.n, work.k_total, work.tp)
        return Point(model=work.model, sublayer=work.sublayer, tp=work.tp)

    def _sweep(self) -> Sweep:
        """Every launch of the machine."""
        record, machine = self.record, self.record.machines[self.machine]
        suite = Suite(
            machine=record.machine, settings=record.settings, hardware=record.hardware, quick=True, seed=record.seed
        )
        first = load_machine(record.machine, record.settings).gpu.kernel_launch_ns
        launches = tuple(first + later for later in LATER_NS[: self._kept.launches])
        variants = {machine.name: Variant(settings=machine.settings)}
        plan = Plan(variants=variants, changes={machine.name: ()}, singles={}, launches=launches)
        return Sweep(suite=suite, variants=plan.runs(), points=(self._point,), policies=MAPPED)

    def experiments(self) -> list[Experiment]:
        """The runs that the cell needs."""
        return self._sweep().experiments()

    def differences(self, store: Store) -> list[str]:
        """Where the cell would be another one."""
        evaluations = [Evaluation(suite, store) for _, suite in self._sweep().suites()]
        again = Cell.of(evaluations, self._point)
        return list(_differences(self._kept.model_dump(), again.model_dump(), self.title))


@dataclass(frozen=True)
class AgainRun:
    """A simulated run, whose record is kept as it is."""

    kept: Result

    @property
    def title(self) -> str:
        """For people."""
        work = self.kept.workload
        return f"{self.kept.policy} on {work.m} x {work.n} x {work.k_total}, TP {work.tp}, {self.kept.machine}"

    def experiments(self) -> list[Experiment]:
        """The run."""
        kept, work = self.kept, self.kept.workload
        return [
            Experiment(
                workload=custom_workload(work.m, work.n, work.k_total, work.tp),
                machine=load_machine(kept.machine, kept.settings),
                policy=kept.policy, hardware=kept.hardware, mirror=kept.mirror, seed=kept.seed,
            )
        ]  # fmt: skip

    def differences(self, store: Store) -> list[str]:
        """Where its record would be another one."""
        (experiment,) = self.experiments()
        found = store.get(experiment)
        assert found is not None
        kept, again = (record.model_dump(exclude=_SAYS_WHO) for record in (self.kept, found.record))
        return list(_differences(kept, again, self.title))


def _differences(kept: Any, again: Any, where: str) -> Iterator[str]:
    """Where two records differ; what a record from before has not is no difference."""
    if kept is None or kept in ([], {}, ""):
        return
    if isinstance(kept, dict) and isinstance(again, dict):
        for key, value in kept.items():
            yield from _differences(value, again.get(key), f"{where}, {key}")
    elif isinstance(kept, list) and isinstance(again, list) and len(kept) == len(again):
        for index, both in enumerate(zip(kept, again, strict=True)):
            yield from _differences(*both, f"{where}, {index}")
    elif kept != again:
        yield f"{where}: kept {kept}, now {again}"


def _of_map(record: ArbitrationMap) -> list[Again]:
    places = itertools.product(range(len(record.machines)), range(len(record.gemms)))
    return [AgainCell(record=record, machine=machine, gemm=gemm) for machine, gemm in places]


def _of_runs(results: Sequence[Result]) -> list[Again]:
    """Simulated runs, each once: GEMMs of one size are one run."""
    found = {again.experiments()[0].key: again for again in map(AgainRun, results) if again.kept.policy not in COMPUTED}
    return list(found.values())


def _results(folder: Path) -> tuple[Path, Any, str, list[Again]]:
    """The record of a folder: its file, itself, what its results are called, and all of them. ValueError for none."""
    if (path := folder / "map.json").exists():
        mapped = read_record(path, ArbitrationMap)
        return path, mapped, "cells (a GEMM on a machine)", _of_map(mapped)
    if (path := folder / "sweep.json").exists():
        swept = read_record(path, SweepRecord)
        return path, swept, "runs", _of_runs([run.result for item in swept.variants for run in item.runs])
    if (path := folder / "reproduce.json").exists():
        reproduced = read_record(path, Reproduction)
        return path, reproduced, "runs", _of_runs([run.result for run in reproduced.runs])
    raise ValueError(f"{folder} has no map.json, sweep.json or reproduce.json: name the folder of a kept record")


def confirm(folder: Path, draw: int, seed: int) -> list[str]:
    """Runs ``draw`` results of the folder's record again, all if it has no more; returns where they differ.

    If nowhere, writes ``confirmed.json``. A record of today's simulator needs none of it. Raises ValueError for a
    folder without a record, and what :func:`run_all` raises.
    """
    path, record, what, results = _results(folder)
    if is_current(record):
        return []
    drawn = random.Random(seed).sample(results, min(draw, len(results)))
    needed = {item.key: item for again in drawn for item in again.experiments()}
    store = run_all(list(needed.values()), {})
    differences = [text for again in drawn for text in again.differences(store)]
    if not differences:
        confirmed = Confirmed(
            record=digest_of(path), sources=digest_for(record.hardware), what=what, drawn=len(drawn), all=len(results),
            seed=seed,
        )  # fmt: skip
        write_atomically(folder / CONFIRMED, json_text(confirmed.model_dump(by_alias=True)))
    return differences


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--draw", default=22, show_default=True, type=click.IntRange(1), help="Results of each record.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Chooses which.")
def main(folders: tuple[Path, ...], draw: int, seed: int) -> None:
    """Run results of the records in FOLDERS again, and compare. Exit code 1 if one differs."""
    broken = False
    for folder in folders:
        try:
            differences = confirm(folder, draw, seed)
        except ValueError as error:
            raise click.ClickException(str(error)) from error
        click.echo(f"{folder}: " + ("the same" if not differences else f"{len(differences)} numbers differ"))
        for text in differences[:10]:
            click.echo(f"  {text}")
        broken |= bool(differences)
    raise SystemExit(broken)


if __name__ == "__main__":
    main()
