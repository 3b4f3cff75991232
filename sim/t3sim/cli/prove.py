"""``t3 prove``: the proofs of the hardware."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from t3sim.common.json_text import json_text
from t3sim.common.output import output_folder, write_atomically

from .console import plain_console, proof_progress, shown
from .errors import FOLDER, Failure, Interrupted, Mismatch, refuse_given
from .many import jobs_option

if TYPE_CHECKING:
    from t3formal.prover.proof import Task, Verdict

EVENTS = 40
"""Lines of a counterexample that are printed; a longer one shows its end."""


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--quick", is_flag=True, help="Only proofs that take seconds, each at one size.")
@click.option("--list", "listed", is_flag=True, help="Say what would be proven, and prove nothing.")
@jobs_option("Proofs")
@click.option("--out", "-o", type=FOLDER, help="Folder for results and waveforms.")
def prove(names: tuple[str, ...], quick: bool, listed: bool, jobs: int, out: Path | None) -> None:
    """Prove the properties of the hardware, all or by NAME.

    NAME is a property or a part of the hardware; --list shows them. Exit code 1 if one is not proven. A counterexample
    is printed as what goes through the part's ports, cycle by cycle, and kept as waveforms, without --out in a new
    temporary folder.
    """
    from t3formal.prover.catalogue import chosen_proofs
    from t3formal.prover.netlist import ToolError, package_folder
    from t3formal.prover.run import tasks

    from .proof_tables import proof_list, proof_table, record, timing

    todo = tasks(chosen_proofs(names), quick=quick)
    if not todo:
        raise ValueError(f"none of {', '.join(names)} is a quick proof: leave out --quick")
    if listed:
        refuse_given(("jobs", "out"), "--list proves nothing")
        plain_console().print(proof_list(todo))
        return
    started = time.monotonic()
    try:
        package_folder()  # what is missing is said before anything begins
        if out is None:
            with _counterexamples() as place:
                verdicts = _run(todo, jobs, place)
        else:
            place = out
            with output_folder(out) as folder:
                verdicts = _run(todo, jobs, folder)
                write_atomically(folder / "proofs.json", json_text(record(verdicts)))
                write_atomically(folder / "timing.json", json_text(timing(verdicts, time.monotonic() - started)))
    except ToolError as error:
        raise Failure(str(error)) from error
    console = plain_console()
    console.print(proof_table(verdicts))
    count = f"{len(verdicts)} task{'' if len(verdicts) == 1 else 's'}"
    console.print(f"{count} in {time.monotonic() - started:.0f} s, {jobs} at a time")
    _report_failures(verdicts, place, console)


@contextmanager
def _counterexamples() -> Iterator[Path]:
    """A new temporary folder, which goes if nothing was found; it is named if the proofs do not come to their end."""
    place = Path(tempfile.mkdtemp(prefix="t3-counterexamples-"))
    try:
        yield place
    except BaseException as error:
        if any(place.iterdir()):
            found = f"the counterexamples that were found are in {place}"
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted(f"interrupted; {found}") from error
            click.echo(found, err=True)
        raise
    finally:
        if not any(place.iterdir()):
            place.rmdir()


def _run(todo: "list[Task]", jobs: int, keep: Path) -> "dict[Task, Verdict]":
    """All verdicts, in the order of ``todo``, with progress on stderr."""
    from t3formal.prover.run import prove as prove_all

    verdicts: dict[Task, Verdict] = {}
    started = time.monotonic()
    with proof_progress(Console(stderr=True), "prove", len(todo)) as show:
        for task, verdict in prove_all(todo, workers=jobs, keep=keep):
            verdicts[task] = verdict
            unproven = sum(verdict.outcome != "proven" for verdict in verdicts.values())
            show(len(verdicts), unproven, time.monotonic() - started, task.title)
    return {task: verdicts[task] for task in todo}


def _report_failures(verdicts: "dict[Task, Verdict]", place: Path, console: Console) -> None:
    """Prints every counterexample; then fails (exit code 1) if something is not proven."""
    for task, verdict in verdicts.items():
        found = verdict.counterexample
        if found is not None:
            console.print(f"\n{task.title}: {verdict.outcome} in cycle {verdict.frames - 1}", style="bold")
            for claim in found.claims:
                console.print(f"  does not hold: {claim}")
            console.print("  cycle  port                     what goes through it")
            if len(found.events) > EVENTS:
                console.print(f"  ({len(found.events) - EVENTS} earlier lines are left out)")
            for event in found.events[-EVENTS:]:
                console.print(f"  {event}", highlight=False, soft_wrap=True)
            if found.waves is not None:
                console.print(
                    f"  waveforms: gtkwave {shown(place / found.waves.name)}", soft_wrap=True, highlight=False
                )
    unproven = [task.title for task, verdict in verdicts.items() if verdict.outcome != "proven"]
    if unproven:
        raise Mismatch(f"not proven: {', '.join(unproven)}")
