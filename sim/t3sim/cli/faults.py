"""``t3 faults``: one fault in each run of a small co-simulation, and what becomes of it."""

from pathlib import Path

import click
from rich.console import Console

from t3sim.common.output import output_folder, write_atomically
from t3sim.faults.classes import CLASSES, KINDS
from t3sim.faults.classes import jobs as jobs_of
from t3sim.run.result import json_text

from .console import short_runs_progress
from .errors import Failure, Interrupted, Mismatch, out_option, refuse_given
from .reproduce import say_where, where_options, wide_console


def _chosen(context: click.Context, parameter: click.Parameter, text: str) -> tuple[str, ...]:
    """The classes that the option names."""
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in CLASSES]
    if unknown or len(set(names)) != len(names):
        raise ValueError(f"--classes must be some of {', '.join(CLASSES)}, each once, not {text!r}")
    return names


@click.command()
@click.option(
    "--faults",
    "count",
    type=click.IntRange(1, 10_000_000),
    default=1000,
    help="Faults for the system with protection; the one without gets a tenth.",
)
@click.option("--classes", default=",".join(CLASSES), callback=_chosen, help="Classes of faults, by commas.")
@click.option("--protect/--no-protect", default=None, help="Only the system with, or without, protection.")
@click.option("--repeat", metavar="KIND:NUMBER", help="Only this fault, with what became of it in words.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of all faults.")
@where_options
@out_option
def faults(
    count: int, classes: tuple[str, ...], protect: bool | None, repeat: str | None, seed: int, jobs: int,
    scheduler: str | None, out: Path | None,
) -> None:  # fmt: skip
    """Inject one fault into each of many small runs, and classify it.

    A fault is masked, corrected, detected or silent. The small runs are a ring of three GPUs on a toy machine, once
    with SECDED, parity and link retries, once without; bits of slices, token network, registers and NMC units (class
    `around`) are inverted in small benches of those parts. Finished runs are kept: the same command goes on where
    it was interrupted. Exit code 1 if a fault that the protection is for does silent harm.
    """
    from t3sim.faults.campaign import CampaignError, run_campaign
    from t3sim.faults.report import draw, fault_table, record_of

    variants = (True, False) if protect is None else (protect,)
    if repeat is not None:
        refuse_given(("count", "classes", "jobs", "scheduler", "out"), "--repeat runs one fault and writes nothing")
        _repeat(repeat, variants, seed)
        return
    todo = jobs_of(count, classes, variants)
    with output_folder(out) as folder:
        try:
            with short_runs_progress(Console(stderr=True), "faults", len(todo)) as show:
                found = run_campaign(todo, seed, jobs, show, scheduler)
        except CampaignError as error:
            raise Failure(str(error)) from error
        except KeyboardInterrupt as error:
            raise Interrupted("interrupted; finished runs are kept, and the same command goes on from there") from error
        record = record_of(seed, found)
        if folder is not None:
            write_atomically(folder / "faults.json", json_text(record.model_dump(by_alias=True)))
            draw(record, folder / "faults")
    wide_console().print(fault_table(record))
    say_where(out)
    if record.broken:
        first = "; ".join(f"{item.kind} {item.number} ({item.text}): {item.outcome}" for item in record.broken[:5])
        raise Mismatch(f"{len(record.broken)} of {record.model_faults} faults did silent harm with protection: {first}")


def _repeat(name: str, variants: tuple[bool, ...], seed: int) -> None:
    """Prints what one fault does."""
    from t3sim.faults.bench import Bench
    from t3sim.faults.report import VARIANTS
    from t3sim.faults.setup import FaultSetup

    kind, _, number = name.partition(":")
    if kind not in KINDS or not number.isdecimal():
        raise ValueError(f"--repeat must be KIND:NUMBER with a kind of {', '.join(KINDS)}, not {name!r}")
    for protected in variants:
        verdict = Bench(FaultSetup(protected)).run(kind, int(number), seed)
        named = f", named by: {', '.join(verdict.named)}" if verdict.named else ""
        click.echo(f"{VARIANTS[protected]}: {verdict.label}, {verdict.text}: {verdict.outcome}{named}")
