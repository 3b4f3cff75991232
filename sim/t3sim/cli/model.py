"""``t3 model``: where the time of a whole model goes, and how much of it an overlap can hide."""

from pathlib import Path
from typing import Any

import click
import opent3
from opent3 import (
    ATTENTIONS,
    MAX_TP,
    MODEL_PHASES,
    MODELS,
    AttentionKernels,
    Backend,
    Phase,
    parse_settings,
)

from .console import plain_console, say_where
from .errors import out_option
from .many import kept_runs, where_options
from .simulation.machine_options import machine_options
from .simulation.own_model import model_of, own_model_options, print_assumptions
from .simulation.results import fail_if_wrong

DEFAULT = "t-nlg"
"""Model without ``--model`` and ``--hf``."""


@click.command()
@click.option("--model", help=f"Model: {', '.join(MODELS)}.  [default: {DEFAULT}]")
@own_model_options
@click.option("--tp", type=int, help=f"Tensor-parallel GPUs, 2 to {MAX_TP}.  [default: the paper's lowest; --hf: 8]")
@click.option("--phase", default="training", help=f"What runs: {' or '.join(MODEL_PHASES)}; with --hf also decode.")
@click.option("--attention", default="unfused", help=f"Attention: {' or '.join(ATTENTIONS)}.")
@click.option("--optimizer", is_flag=True, help="Add one Adam step to the training phase.")
@machine_options("golden")
@where_options
@out_option
def model(
    model: str | None, tp: int | None, phase: Phase, attention: AttentionKernels, optimizer: bool, hardware: Backend,
    machine: str, settings: tuple[str, ...], jobs: int, scheduler: str | None, out: Path | None, **tokens: Any,
) -> None:  # fmt: skip
    """Show where the time of a whole model goes.

    The all-reduced sublayers are simulated, everything else is a roofline. One GPU of the ring is simulated. Finished
    runs are kept, as with reproduce.
    """
    own = model_of({**tokens, "phase": phase}, phase_is_own=False)
    if own is not None and model is not None:
        raise ValueError("give either --hf or --model, not both")
    changes = parse_settings(settings)
    with kept_runs("model") as show:
        result = opent3.model(
            own or model or DEFAULT, tp, phase, attention=attention, optimizer=optimizer, machine=machine,
            settings=changes, hardware=hardware, jobs=jobs, scheduler=scheduler, on_status=show, out=out,
        )  # fmt: skip
    console, time, used = plain_console(), result.time, result.machine
    console.print(f"{time.model}, TP {time.tp}, {time.phase}, {attention} attention, on machine {used.title}")
    if own is not None:
        console.print(opent3.size_text(own))
    print_assumptions(console, own, time.tp, used)
    console.print()
    console.print(result.table())
    say_where(out)
    fail_if_wrong(result.failures)
