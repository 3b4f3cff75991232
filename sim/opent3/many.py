"""Many runs at a time: what they share, who does them, and what is told while they are done."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import TypedDict

from t3sim.inputs import arguments
from t3sim.inputs.machine.files import Machine
from t3sim.inputs.transformer.transformer import SizedModel
from t3sim.run.request import Backend
from t3sim.run.result import Result
from t3sim.study.experiment import Experiment
from t3sim.study.runner import Status, run_missing
from t3sim.study.store import Outcome, Store
from t3sim.study.suite import Point, Suite

from .options import usable_cores


@dataclass(frozen=True, kw_only=True)
class Finished:
    """One run of many, as soon as it is done.

    ``record``: as in ``result.json``. ``machine``: with all values; ``machine.settings`` are those that were changed.
    ``kept``: it had run before, and was read from the cache folder.
    """

    record: Result
    machine: Machine
    kept: bool


OnStatus = Callable[[Status], None]
"""Called about once a second with how far the runs are."""
OnResult = Callable[[Finished], None]
"""Called with every simulated run, those first that are kept from before, the others in the order in which they finish.
What it raises ends the work; finished runs are kept."""


class Workers(TypedDict, total=False):
    """Who does many runs; all have defaults, and results depend on none of them.

    ``jobs``: processes of this computer, each of which does one run at a time (one for each usable core).
    ``scheduler``: address of a Dask scheduler, whose workers do the runs instead. ``on_status``, ``on_result``: called
    in the caller's thread, as :data:`OnStatus` and :data:`OnResult` say.
    """

    jobs: int | None
    scheduler: str | None
    on_status: OnStatus | None
    on_result: OnResult | None


class ManyOptions(Workers, total=False):
    """What many runs share, and who does them; all have defaults.

    ``machine``: a preset's name, or a TOML file ("paper"). ``settings``: its values that are changed, such as
    ``{"link.gb_s": 300}``. ``hardware``: the T3 hardware as compiled Verilog ("rtl") or as its cycle-exact model
    ("golden"). ``seed``: of data and samples (0). The others are those of :class:`Workers`.
    """

    machine: str | Path
    settings: Mapping[str, object] | None
    hardware: Backend
    seed: int


def jobs_of(options: Workers) -> tuple[int, str | None]:
    """Processes and scheduler. Raises ValueError for what they may not be."""
    jobs, scheduler = options.get("jobs"), options.get("scheduler")
    if jobs is not None and arguments.integer("jobs", jobs) < 1:
        raise ValueError(f"jobs must be at least 1, not {jobs}")
    arguments.instance("scheduler", scheduler, (str, NoneType), "the address of a Dask scheduler, or None")
    return jobs or usable_cores(), scheduler


def suite_of(options: ManyOptions, *, hardware: Backend, quick: bool, own: SizedModel | None = None) -> Suite:
    """What the runs share; ``hardware`` is the default, ``quick`` mirrors one GPU of every ring. Raises ValueError for
    an argument of another type than it must be."""
    machine = options.get("machine", "paper")
    arguments.instance("machine", machine, (str, os.PathLike), "the name of a preset, or a machine file")
    arguments.instance("own", own, (SizedModel, NoneType), "a model, as of own_model, or None")
    jobs_of(options)
    return Suite(
        machine=str(machine),
        settings=arguments.settings("settings", options.get("settings")),
        hardware=options.get("hardware", hardware),
        quick=quick,
        seed=arguments.integer("seed", options.get("seed", 0)),
        own=own,
    )


def points_of(points: object, source: str) -> tuple[Point, ...]:
    """``points``, as the function ``source`` makes them. Raises ValueError for what is none, or has something else in
    it than texts and a whole number."""
    found: tuple[Point, ...] = arguments.items("points", points, Point, f"Point, as of {source}")
    for point in found:
        arguments.instance("model of a Point", point.model, str, "a text")
        arguments.instance("sublayer of a Point", point.sublayer, str, "a text")
        arguments.integer("tp of a Point", point.tp)
    return found


def run_all(experiments: Sequence[Experiment], options: Workers) -> Store:
    """Does what is missing, and returns the store, which then has all.

    Raises BuildError if the cache cannot keep results, ValueError if no scheduler answers, RunsFailedError if some runs
    did not finish.
    """
    store, (jobs, scheduler) = Store(), jobs_of(options)
    on_status, on_result = options.get("on_status"), options.get("on_result")

    def tell(item: Experiment, outcome: Outcome, kept: bool) -> None:
        if on_result is not None:
            on_result(Finished(record=outcome.record, machine=item.machine, kept=kept))

    run_missing(experiments, store, jobs, on_status or (lambda status: None), scheduler, tell)
    return store
