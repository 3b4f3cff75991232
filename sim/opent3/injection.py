"""One fault in each run of a small co-simulation, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING

from t3sim.common.json_text import json_text
from t3sim.common.output import output_folder, write_atomically
from t3sim.faults.classes import CLASSES, KINDS
from t3sim.faults.classes import jobs as fault_cases
from t3sim.inputs import arguments
from t3sim.study.runner import RunsFailedError

from .many import jobs_of

if TYPE_CHECKING:  # they take seconds to import
    from rich.console import RenderableType
    from t3sim.faults.bench import Verdict
    from t3sim.faults.report import Record


@dataclass(frozen=True, kw_only=True)
class FaultResult:
    """What became of the faults of a campaign; ``record`` is all of ``faults.json``."""

    record: Record

    @property
    def failures(self) -> list[str]:
        """Faults that the protection is for and that did silent harm with it, as a command repeats them."""
        return [f"{item.kind} {item.number} ({item.text}): {item.outcome}" for item in self.record.broken]

    def table(self) -> RenderableType:
        """What ``t3 faults`` prints, for Rich: how the faults of each class ended."""
        from t3sim.faults.report import fault_table  # here and below, because it takes seconds to import

        return fault_table(self.record)

    def _write(self, folder: Path) -> None:
        from t3sim.faults.report import draw

        write_atomically(folder / "faults.json", json_text(self.record.model_dump(by_alias=True)))
        draw(self.record, folder / "faults")


def faults(
    count: int = 1000,
    classes: Sequence[str] = tuple(CLASSES),
    protect: bool | None = None,
    *,
    seed: int = 0,
    jobs: int | None = None,
    scheduler: str | None = None,
    on_done: Callable[[int, int], None] | None = None,
    out: str | Path | None = None,
) -> FaultResult:
    """Injects one fault into each of many small runs, and classifies it.

    About ``count`` faults of the ``classes`` for the system with protection, and a tenth for the one without; with
    ``protect`` only for the one that it names. ``on_done``: called with how many runs are done, and of how many. The
    others are those of :class:`Workers`. Raises ValueError, and RunsFailedError if some runs did not finish.
    """
    from t3sim.faults.campaign import CampaignError, run_campaign
    from t3sim.faults.report import record_of

    classes = arguments.items("classes", classes, str, "classes of faults")
    if not classes or len(set(classes)) != len(classes) or any(name not in CLASSES for name in classes):
        raise ValueError(f"--classes must be some of {', '.join(CLASSES)}, each once, not {','.join(classes)!r}")
    if arguments.integer("count", count) < 1:
        raise ValueError(f"count must be at least 1, not {count}")
    arguments.instance("protect", protect, (bool, NoneType), "True, False or None")
    seed = _seed(seed)
    processes, scheduler = jobs_of({"jobs": jobs, "scheduler": scheduler})
    todo = fault_cases(count, classes, (True, False) if protect is None else (protect,))
    with output_folder(arguments.path_of("out", out)) as folder:
        try:
            found = run_campaign(
                todo, seed, processes, lambda done: on_done(done, len(todo)) if on_done else None, scheduler
            )
        except CampaignError as error:
            raise RunsFailedError(str(error)) from error
        result = FaultResult(record=record_of(seed, found))
        if folder is not None:
            result._write(folder)
    return result


def _seed(seed: int) -> int:
    """The seed as a whole number. Raises ValueError if it is none, or negative."""
    found = arguments.integer("seed", seed)
    if found < 0:
        raise ValueError(f"seed must be at least 0, not {found}")
    return found


def fault(kind: str, number: int, *, protect: bool = True, seed: int = 0) -> Verdict:
    """One fault of a campaign again, with what became of it. Raises ValueError for an unknown kind."""
    from t3sim.faults.bench import Bench
    from t3sim.faults.setup import FaultSetup

    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    arguments.instance("protect", protect, bool, "True or False")
    number, seed = arguments.integer("number", number), _seed(seed)
    return Bench(FaultSetup(protect)).run(kind, number, seed)
