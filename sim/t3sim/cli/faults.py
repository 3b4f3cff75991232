"""``t3 faults``: one fault in each run of a small co-simulation, and what becomes of it."""

from pathlib import Path

import click
import opent3
from opent3 import FAULT_CLASSES, FAULT_KINDS, FAULT_VARIANTS
from rich.console import Console

from .console import count_progress, plain_console, say_where
from .errors import Mismatch, out_option, refuse_given
from .many import keeping_runs, where_options
from .simulation.options import names


@click.command()
@click.option(
    "--faults",
    "count",
    type=click.IntRange(1, 10_000_000),
    default=1000,
    help="Faults for the system with protection; the one without gets a tenth.",
)
@click.option("--classes", default=",".join(FAULT_CLASSES), callback=names, help="Classes of faults, by commas.")
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
    if repeat is not None:
        refuse_given(("count", "classes", "jobs", "scheduler", "out"), "--repeat runs one fault and writes nothing")
        _repeat(repeat, (True, False) if protect is None else (protect,), seed)
        return
    with keeping_runs(), count_progress(Console(stderr=True), "faults", "runs") as show:
        result = opent3.faults(
            count, classes, protect, seed=seed, jobs=jobs, scheduler=scheduler, on_done=show, out=out
        )
    plain_console().print(result.table())
    say_where(out)
    if wrong := result.failures:
        first = "; ".join(wrong[:5])
        count = result.record.model_faults
        raise Mismatch(f"{len(wrong)} of {count} faults did silent harm with protection: {first}")


def _repeat(name: str, variants: tuple[bool, ...], seed: int) -> None:
    """Prints what one fault does."""
    kind, _, number = name.partition(":")
    if kind not in FAULT_KINDS or not number.isdecimal():
        raise ValueError(f"--repeat must be KIND:NUMBER with a kind of {', '.join(FAULT_KINDS)}, not {name!r}")
    for protected in variants:
        verdict = opent3.fault(kind, int(number), protect=protected, seed=seed)
        named = f", named by: {', '.join(verdict.named)}" if verdict.named else ""
        click.echo(f"{FAULT_VARIANTS[protected]}: {verdict.label}, {verdict.text}: {verdict.outcome}{named}")
