"""Whether today's simulator gives what kept records say: ``python -m docs.pages.played.confirm FOLDER...``.

A record takes hours, and a change of the simulator seldom moves its figures. Results that are drawn at random are run
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
from t3sim.common.cache import BuildError
from t3sim.common.json_text import json_text
from t3sim.common.output import write_atomically
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import CUSTOM, custom_workload
from t3sim.run.ideal import COMPUTED
from t3sim.run.policies import failures
from t3sim.run.records import read_record
from t3sim.run.result import Result
from t3sim.study.arbitration.axes import LATER_NS, Plan
from t3sim.study.arbitration.record import MAPPED, ArbitrationMap, Cell
from t3sim.study.evaluation import Evaluation
from t3sim.study.experiment import Experiment
from t3sim.study.reproduction import Reproduction
from t3sim.study.runner import RunsFailedError
from t3sim.study.sources import digest_for, is_current
from t3sim.study.store import Store
from t3sim.study.suite import OVERLAP, Point, Suite, custom_point
from t3sim.study.sweep import Sweep, SweepRecord, Variant

from docs.pages.shared.kept import CONFIRMED, Confirmed, confirmed, digest_of

_NO_RESULT: dict[str, Any] = dict.fromkeys(("schema_version", "opent3", "provenance", "workload"), True) | {
    "rtl": {"cycles_evaluated", "cycles_skipped", "evaluated_by_part"}
}
"""Fields of a run's record that say what made it, for what, and with how many evaluations of the RTL. The sizes of the
workload are those it is run with."""


class Rerun(Protocol):
    """A result of a record, and how to run it again."""

    @property
    def title(self) -> str:
        """For people."""

    def experiments(self) -> list[Experiment]:
        """The runs that it needs."""

    def differences(self, store: Store) -> list[str]:
        """Where the runs, which are finished, give something else than the record, or break an identity."""


@dataclass(frozen=True, kw_only=True)
class CellRerun:
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
        """Where the cell would be another one, and what does not add up."""
        evaluations = [Evaluation(suite, store) for _, suite in self._sweep().suites()]
        again = Cell.of(evaluations, self._point)
        runs = (evaluation.record(self._point, policy) for evaluation in evaluations for policy in OVERLAP)
        broken = [f"{self.title}: {text}" for run in runs for text in failures(run)]
        return [*_differences(self._kept.model_dump(exclude_unset=True), again.model_dump(), self.title), *broken]


@dataclass(frozen=True)
class RunRerun:
    """A simulated run, whose record is kept as it is."""

    kept: Result

    @property
    def title(self) -> str:
        """For people."""
        work = self.kept.workload
        return f"{self.kept.policy} on {work.m} x {work.n} x {work.k_total}, TP {work.tp}, {self.kept.machine}"

    @property
    def experiment(self) -> Experiment:
        """The run."""
        kept, work = self.kept, self.kept.workload
        return Experiment(
            workload=custom_workload(work.m, work.n, work.k_total, work.tp),
            machine=load_machine(kept.machine, kept.settings),
            policy=kept.policy, hardware=kept.hardware, mirror=kept.mirror, seed=kept.seed,
        )  # fmt: skip

    def experiments(self) -> list[Experiment]:
        """The run alone."""
        return [self.experiment]

    def differences(self, store: Store) -> list[str]:
        """Where its record would be another one. What does not add up is part of it."""
        found = store.get(self.experiment)
        assert found is not None
        kept = self.kept.model_dump(exclude_unset=True, exclude=_NO_RESULT)
        return list(_differences(kept, found.record.model_dump(exclude=_NO_RESULT), self.title))


def _differences(kept: Any, again: Any, where: str) -> Iterator[str]:
    """Where ``again`` differs from ``kept``, which has what its file has: a field that a record from before lacks is no
    difference."""
    if isinstance(kept, dict) and isinstance(again, dict):
        for key, value in kept.items():
            if key in again:
                yield from _differences(value, again[key], f"{where}, {key}")
            else:
                yield f"{where}, {key}: kept {value}, and now absent"
    elif isinstance(kept, list | tuple) and isinstance(again, list | tuple) and len(kept) == len(again):
        for index, both in enumerate(zip(kept, again, strict=True)):
            yield from _differences(*both, f"{where}, {index}")
    elif kept != again:
        yield f"{where}: kept {kept}, now {again}"


def _of_map(record: ArbitrationMap) -> list[Rerun]:
    places = itertools.product(range(len(record.machines)), range(len(record.gemms)))
    return [CellRerun(record=record, machine=machine, gemm=gemm) for machine, gemm in places]


def _of_runs(results: Sequence[Result]) -> list[Rerun]:
    """Simulated runs, each once: GEMMs of one size are one run."""
    found = {rerun.experiment.key: rerun for rerun in map(RunRerun, results) if rerun.kept.policy not in COMPUTED}
    return list(found.values())


def _results(folder: Path) -> tuple[Path, Any, str, list[Rerun]]:
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


def confirm(folder: Path, draw: int) -> tuple[str, list[str]]:
    """Runs ``draw`` results of the folder's record again, all if it has no more; what to tell, and where they differ.

    The simulator's digest decides which are drawn, so that nobody chooses them. If nothing differs, ``confirmed.json``
    says so, unless it says it of more results; if something does, it is removed. A record of today's simulator needs
    none of it. Raises ValueError for a folder without a record, and what :func:`run_all` raises.
    """
    path, record, what, results = _results(folder)
    if is_current(record):
        return "of today's simulator", []
    sources, count = digest_for(record.hardware), min(draw, len(results))
    drawn = random.Random(sources).sample(results, count)
    needed = {item.key: item for rerun in drawn for item in rerun.experiments()}
    store = run_all(list(needed.values()), {})
    differences = [text for rerun in drawn for text in rerun.differences(store)]
    if differences:
        (folder / CONFIRMED).unlink(missing_ok=True)
        return f"{len(differences)} numbers differ", differences
    before = confirmed(record, path)
    if before is None or before.drawn < count:
        found = Confirmed(
            record_digest=digest_of(path), sources=sources, what=what, drawn=count, total=len(results)
        )  # fmt: skip
        write_atomically(folder / CONFIRMED, json_text(found.model_dump(by_alias=True)))
    return f"the same in {count} of {len(results)} {what}", []


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--draw", default=22, show_default=True, type=click.IntRange(1), help="Results of each record.")
def main(folders: tuple[Path, ...], draw: int) -> None:
    """Run results of the records in FOLDERS again, and compare. Exit code 1 if one differs."""
    broken = False
    for folder in folders:
        try:
            told, differences = confirm(folder, draw)
        except (ValueError, BuildError, RunsFailedError) as error:
            raise click.ClickException(f"{folder}: {error}") from error
        click.echo(f"{folder}: {told}")
        for text in differences[:10]:
            click.echo(f"  {text}")
        broken |= bool(differences)
    raise SystemExit(broken)


if __name__ == "__main__":
    main()
