"""``t3 validate``: checks of models and hardware against what is known."""

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click
import opent3
from opent3.options import usable_cores
from opent3.tables import alu_table, gpu_table, tracker_table, validation_table
from rich.console import Console
from t3hdl.config import PRESETS

from t3sim.common.user_input import shortened

from .console import case_progress, count_progress, plain_console, say_where
from .errors import FILE, Mismatch, is_given, kept_if_interrupted, out_option, refuse_given
from .simulation.machine_options import hardware_option
from .simulation.results import watch


@click.group()
def validate() -> None:
    """Compare a model or the hardware with references."""


@validate.command("hbm")
@click.option("--traces", type=FILE, help="Traces (.npz). [default: those of the package]")
@click.option("--reference", type=FILE, help="Cycles (.json). [default: those of the package]")
@click.option("--tolerance", type=float, default=0.03, help="Largest relative error.")
@click.option("--refresh/--no-refresh", default=True, help="With or without refresh.")
def validate_hbm(traces: Path | None, reference: Path | None, tolerance: float, refresh: bool) -> None:
    """Compare the HBM2 model with a cycle-level DRAM simulator.

    Replays traces of Ramulator 2.1; exit code 1 if the time of one is off by more than the tolerance.
    """
    rows = opent3.validate_hbm(traces, reference, tolerance=tolerance, refresh=refresh)
    plain_console().print(validation_table(rows))
    off = [row.name for row in rows if not row.within]
    if off:
        raise Mismatch(f"off by more than {tolerance:g}: {', '.join(off)}")


@validate.command("alu")
@click.option("--dtype", help="Data type: fp16, bf16, fp32 or int32. [default: all built; with --exhaustive fp16]")
@click.option("--op", help="Operation: add, min or max. [default: all]")
@click.option("--exhaustive", is_flag=True, help="Every pair of a 16-bit dtype.")
@click.option(
    "--random", type=int, metavar="N", help="Every pair of special values, and N random pairs, at most 2**32."
)
@click.option("--seed", type=int, default=0, help="Seed of the random pairs.")
@click.option(
    "--alone-every",
    type=click.IntRange(1),
    metavar="N",
    help="Repeat one case in N alone in its line. [default: 1, and one in each line for many cases]",
)
@click.option("--preset", default="paper", help=f"Configuration: {', '.join(PRESETS)}.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change one hardware parameter.")
@click.option("--threads", type=click.IntRange(1), default=usable_cores, show_default="usable cores")
@out_option
def validate_alu(
    dtype: str | None, op: str | None, exhaustive: bool, random: int | None, seed: int, alone_every: int | None,
    preset: str, settings: tuple[str, ...], threads: int, out: Path | None,
) -> None:  # fmt: skip
    """Check the results and flags of the compiled NMC ALU.

    Exit code 1 if a case comes out wrong. Cases come from standard input, as Berkeley TestFloat's testfloat_gen prints
    them (`a b result flags`), or are made with the golden model's results.
    """
    cases = None if exhaustive or random is not None else sys.stdin
    if cases is not None and cases.isatty():
        raise ValueError("give cases on standard input, or --exhaustive, or --random")
    rows = opent3.validate_alu(
        cases, exhaustive=exhaustive, random=random, dtype=dtype, op=op, seed=seed, alone_every=alone_every,
        preset=preset, settings=settings, threads=threads, watch=_watch_check, out=out,
    )  # fmt: skip
    console = plain_console()
    console.print(alu_table(rows))
    for text in (text for row in rows for text in row.texts()):
        console.print(text, soft_wrap=True, highlight=False)
    say_where(out)
    wrong = sum(row.differences for row in rows)
    if wrong:
        raise Mismatch(f"{wrong} of {sum(row.cases for row in rows)} cases came out wrong")


def _watch_check(check: Any) -> AbstractContextManager[Any]:
    return case_progress(Console(stderr=True), check.title, check.cases)


@validate.command("gpu")
@click.option("--from", "recorded", type=FILE, help="Take measurements from this gpu.json instead of this GPU.")
@click.option("--machine", help="Machine file of that GPU, to compare with. [default: measure only]")
@click.option("--set", "settings", multiple=True, metavar="SECTION.KEY=VALUE", help="Change one machine value.")
@click.option("--rates", default="0,12,24,48", show_default=True, help="Rates of copies each way, in GB/s.")
@click.option(
    "--samples", type=click.IntRange(1, 1000), default=5, show_default=True, help="Samples, of which the median counts."
)
@click.option("--tolerance", type=float, help="Largest relative error of a time. [default: none]")
@out_option
def validate_gpu(
    recorded: Path | None, machine: str | None, settings: tuple[str, ...], rates: str, samples: int,
    tolerance: float | None, out: Path | None,
) -> None:  # fmt: skip
    """Compare the paper's GEMMs on this CUDA GPU with the model.

    They are timed alone and beside copies to and from the host. Needs PyTorch (extra `gpu`), unless --from has what
    was measured. Exit code 1 if a time without copies, at the machine's clock, is off by more than the tolerance.
    """
    if recorded is not None:
        refuse_given(("rates", "samples"), "--from has what was measured")
    if machine is None and recorded is None and (tolerance is not None or settings):
        raise ValueError("--tolerance and --set are of a comparison: give --machine")
    if tolerance is not None and not 0 < tolerance <= 1:
        raise ValueError(f"--tolerance must be above 0 and at most 1 (0.05 is 5 %), not {tolerance:g}")
    kept: list[Any] = []
    with (
        kept_if_interrupted(kept, f"only what was measured was written, in {out}"),
        count_progress(Console(stderr=True), "GEMMs", "shapes") as show,
    ):
        found = opent3.validate_gpu(
            recorded, machine=machine, settings=opent3.parse_settings(settings),
            rates=_rates(rates) if is_given("rates") else None, samples=samples if is_given("samples") else None,
            watch=watch, on_shape=show, on_measured=None if out is None else kept.append, out=out,
        )  # fmt: skip
    plain_console().print(gpu_table(found.measured, found.rows))
    say_where(out)
    if off := [row.names[0] for row in found.rows if tolerance is not None and abs(row.error) > tolerance]:
        raise Mismatch(f"off by more than {tolerance:g}: {', '.join(off)}")


def _rates(text: str) -> tuple[float, ...]:
    """The rates that ``--rates`` names."""
    try:
        return tuple(float(rate) for rate in text.split(","))
    except ValueError:
        raise ValueError(
            f"--rates must be numbers with commas between them, as 0,12,24, not {shortened(text)}"
        ) from None


@validate.command("tracker")
@click.option("--quick", is_flag=True, help="Small hardware and the toy machine alone: a minute.")
@hardware_option("golden")
@out_option
def validate_tracker(quick: bool, hardware: opent3.Backend, out: Path | None) -> None:
    """Count the cycles in which an access waits for the tracker.

    Two contexts at the memory's rate on hardware of several sizes, and with deeper token queues; GEMMs whose stores
    come fast, unaligned, short, or of chunks that have overflowed. Nothing is held against a bound: every regime in
    which an access waited is shown with the reason.
    """
    with count_progress(Console(stderr=True), "tracker", "regimes") as show:
        found = opent3.validate_tracker(quick=quick, hardware=hardware, on_regime=show, out=out)
    plain_console().print(tracker_table(found))
    say_where(out)
