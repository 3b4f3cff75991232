"""``t3 validate``: checks of models and hardware against what is known."""

import os
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import get_args

import click
from rich.console import Console
from t3hdl.config import PRESETS

from t3sim.common.output import output_folder, write_atomically
from t3sim.common.user_input import shortened
from t3sim.inputs.machine.files import hardware_with, load_machine, parse_settings
from t3sim.inputs.workload import paper_shapes
from t3sim.run.records import read_record
from t3sim.run.request import Backend, OnProgress
from t3sim.run.result import json_text
from t3sim.validation.gpu_measure import check_rates, measure
from t3sim.validation.gpu_record import GpuRecord
from t3sim.validation.gpu_torch import open_device

from .console import case_progress, plain_console, progress, short_runs_progress
from .errors import Mismatch, out_option, refuse_given
from .reproduce import say_where
from .tables import alu_table, gpu_table, tracker_table, validation_table


@click.group()
def validate() -> None:
    """Compare a model or the hardware with references."""


@validate.command("hbm")
@click.option("--traces", type=click.Path(path_type=Path), help="Traces (.npz). [default: those of the package]")
@click.option("--reference", type=click.Path(path_type=Path), help="Cycles (.json). [default: those of the package]")
@click.option("--tolerance", type=float, default=0.03, help="Largest relative error.")
@click.option("--refresh/--no-refresh", default=True, help="With or without refresh.")
def validate_hbm(traces: Path | None, reference: Path | None, tolerance: float, refresh: bool) -> None:
    """Compare the HBM2 model with a cycle-level DRAM simulator.

    Replays traces of Ramulator 2.1; exit code 1 if the time of one is off by more than the tolerance.
    """
    from t3sim.validation.hbm import validate as replay_all

    if (traces is None) != (reference is None):
        raise ValueError("give both --traces and --reference, or neither")
    folder = Path(__file__).parents[1] / "validation" / "reference"
    rows = replay_all(
        traces or folder / "hbm2_traces.npz", reference or folder / "hbm2_reference.json", tolerance, refresh
    )
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
@click.option(
    "--threads", type=click.IntRange(1), default=lambda: len(os.sched_getaffinity(0)), show_default="usable cores"
)
@out_option
def validate_alu(
    dtype: str | None, op: str | None, exhaustive: bool, random: int | None, seed: int, alone_every: int | None,
    preset: str, settings: tuple[str, ...], threads: int, out: Path | None,
) -> None:  # fmt: skip
    """Check the results and flags of the compiled NMC ALU.

    Exit code 1 if a case comes out wrong. Cases come from standard input, as Berkeley TestFloat's testfloat_gen prints
    them (`a b result flags`), or are made with the golden model's results.
    """
    from t3sim.validation import alu as alus

    if exhaustive and random is not None:
        raise ValueError("give either --exhaustive or --random, not both")
    config = hardware_with(preset, settings)
    if exhaustive:
        checks = alus.exhaustive_checks(config, op, dtype, alone_every)
    elif random is not None:
        checks = alus.random_checks(config, op, dtype, count=random, seed=seed, every=alone_every)
    else:
        if sys.stdin.isatty():
            raise ValueError("give cases on standard input, or --exhaustive, or --random")
        checks = alus.text_check(config, op, dtype, sys.stdin, alone_every)
    rows: list[alus.Row] = []
    with output_folder(out) as folder:
        for check in checks:
            with case_progress(Console(stderr=True), check.title, check.cases) as watch, alus.open_alu(config) as part:
                rows.append(alus.run(part, check, threads=threads, watch=watch))
        if folder is not None:
            write_atomically(folder / "validate.json", json_text(alus.record(config, preset, rows)))
    console = plain_console()
    console.print(alu_table(rows))
    for text in (text for row in rows for text in row.texts()):
        console.print(text, soft_wrap=True, highlight=False)
    say_where(out)
    wrong = sum(row.differences for row in rows)
    if wrong:
        raise Mismatch(f"{wrong} of {sum(row.cases for row in rows)} cases came out wrong")


@validate.command("gpu")
@click.option("--from", "recorded", type=click.Path(path_type=Path), help="What was measured (gpu.json), not this GPU.")
@click.option("--machine", help="Machine file of that GPU, to compare with. [default: measure only]")
@click.option("--set", "settings", multiple=True, metavar="SECTION.KEY=VALUE", help="Change one machine value.")
@click.option("--rates", default="0,6,12,24", show_default=True, help="Rates of copies each way, in GB/s.")
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

    They are timed alone and beside copies. Needs PyTorch (extra `gpu`), unless --from has what was measured. Exit code
    1 if a time is off by more than the tolerance.
    """
    from t3sim.validation.gpu_model import compare, comparison

    if recorded is not None:
        refuse_given(("rates", "samples"), "--from has what was measured")
        if machine is None:
            raise ValueError("--from needs --machine, the machine to compare with")
    if machine is None and (tolerance is not None or settings):
        raise ValueError("--tolerance and --set are of a comparison: give --machine")
    if tolerance is not None and not 0 < tolerance <= 1:
        raise ValueError(f"--tolerance must be above 0 and at most 1 (0.05 is 5 %), not {tolerance:g}")
    changed, name = parse_settings(settings), machine or ""
    model = load_machine(name, changed) if machine is not None else None  # refused before a long measurement
    record = read_record(recorded, GpuRecord) if recorded is not None else _measure_gpu(_rates(rates), samples)
    rows = []
    with output_folder(out) as folder:
        if folder is not None and recorded is None:
            write_atomically(folder / "gpu.json", json_text(record.model_dump(mode="json", by_alias=True)))
        if model is not None:
            rows = compare(record, lambda more: load_machine(name, changed | more), _watch)
            if folder is not None:
                write_atomically(folder / "validate.json", json_text(comparison(record, model, rows)))
    plain_console().print(gpu_table(record, rows))
    say_where(out)
    if off := [row.names[0] for row in rows if tolerance is not None and abs(row.error) > tolerance]:
        raise Mismatch(f"off by more than {tolerance:g}: {', '.join(off)}")


def _watch(label: str) -> AbstractContextManager[OnProgress]:
    return progress(Console(stderr=True), label)


def _rates(text: str) -> tuple[float, ...]:
    """The rates that ``--rates`` names."""
    try:
        rates = [float(rate) for rate in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--rates must be numbers with commas between them, as 0,6,12, not {shortened(text)}"
        ) from None
    return check_rates(rates)


def _measure_gpu(rates: tuple[float, ...], samples: int) -> GpuRecord:
    """What this computer's GPU takes for the paper's shapes."""
    shapes, device, begin = paper_shapes(), open_device(), time.perf_counter()
    with case_progress(Console(stderr=True), "GEMMs", len(shapes)) as show:
        return measure(device, shapes, rates, samples, lambda done: show(done, time.perf_counter() - begin))


@validate.command("tracker")
@click.option("--quick", is_flag=True, help="Small hardware and the toy machine alone: a minute.")
@click.option(
    "--hardware", type=click.Choice(get_args(Backend)), default="golden", help="Compiled RTL, or its golden model."
)
@out_option
def validate_tracker(quick: bool, hardware: Backend, out: Path | None) -> None:
    """Count the cycles in which an access waits for the tracker.

    Two contexts at the memory's rate on hardware of several sizes, and GEMMs whose stores come fast, unaligned, short,
    or of chunks that have overflowed. Nothing is held against a bound: every regime in which an access waited is
    shown with the reason.
    """
    from t3sim.validation.memory_rate.contexts import CONTEXTS
    from t3sim.validation.memory_rate.measure import LARGE, SMALL, measure
    from t3sim.validation.memory_rate.regimes import REGIMES

    presets = SMALL if quick else (*LARGE, *SMALL)
    regimes = [regime for regime in REGIMES if not quick or regime.machine == "toy"]
    with output_folder(out) as folder:
        with short_runs_progress(Console(stderr=True), "regimes", len(presets) * len(CONTEXTS) + len(regimes)) as show:
            found = measure(hardware, presets, regimes, show)
        if folder is not None:
            write_atomically(folder / "tracker.json", json_text(found.model_dump(mode="json", by_alias=True)))
    plain_console().print(tracker_table(found))
    say_where(out)
