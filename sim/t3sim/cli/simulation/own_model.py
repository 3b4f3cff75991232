"""Options for a model of the user's own: ``--hf`` and the tokens that it is run on."""

from collections.abc import Callable
from typing import Any

import click
from opent3 import FAMILIES, PHASES, Machine, SizedModel, caution, notes, own_model
from rich.console import Console

from ..errors import FILE, refuse_given

TOKEN_OPTIONS = ("batch", "sequence")


def own_model_options(command: Callable) -> Callable:
    """The options ``--hf``, ``--batch`` and ``--sequence``."""
    options = (
        click.option("--hf", type=FILE, metavar="CONFIG.JSON",
                     help=f"A model of your own, in the Hugging Face format: {', '.join(FAMILIES)}."),
        click.option("--batch", type=int, default=8, help="With --hf: sequences at a time."),
        click.option("--sequence", type=int, default=1024, help="With --hf: tokens of each; in decode, in its cache."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def phase_option(command: Callable) -> Callable:
    """The option ``--phase`` of commands that run single sublayers."""
    text = f"With --hf: {', '.join(PHASES)}; gives the tokens (decode: one a sequence) and the sublayers."
    return click.option("--phase", default="training", help=text)(command)


def model_of(options: dict[str, Any], *, phase_is_own: bool = True) -> SizedModel | None:
    """The user's model, None without ``--hf``. Raises ValueError for what it may not be, and for options that would
    have no effect; ``phase_is_own``: so would ``--phase``."""
    if options["hf"] is None:
        refuse_given((*TOKEN_OPTIONS, *(("phase",) if phase_is_own else ())), "these options go with --hf")
        return None
    return own_model(options["hf"], options["phase"], options["batch"], options["sequence"])


def print_assumptions(console: Console, own: SizedModel | None, tp: int, machine: Machine | None) -> None:
    """A line for each thing that a reader of the table must know of model and machine; none for the paper's."""
    for text in (*(notes(own, tp) if own else ()), *(caution(machine) if machine else ())):
        console.print(text)
