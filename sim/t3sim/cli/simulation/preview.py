"""The option ``--preview``: the same comparison with one GPU mirrored first, for a table and pictures early."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import opent3
from opent3 import Workload
from opent3.runs import Options

from t3sim.common.output import output_folder
from t3sim.inputs.transformer.transformer import SizedModel
from t3sim.run.request import Policy

from ..console import plain_console
from ..errors import OUT_FOLDER, Interrupted
from .results import show, watch


def preview_option(command: Any) -> Any:
    """The option ``--preview``."""
    return click.option(
        "--preview",
        type=OUT_FOLDER,
        metavar="DIRECTORY",
        help="First simulate one GPU and reflect its traffic, which is quicker, and write that comparison here.",
    )(command)


def preview_of(
    preview: Path | None, out: Path | None, work: Workload, policies: tuple[Policy, ...], passed: Options
) -> Options | None:
    """The options of the preview; None without one. Raises ValueError for what has none, before anything is opened."""
    if preview is None:
        return None
    if passed["mirror"]:
        raise ValueError("--preview simulates one GPU first, and with --mirror there is no more: leave one of them out")
    if out is not None:
        places = [Path(os.path.realpath(folder)) for folder in (preview, out)]
        if any(place.is_relative_to(other) for place, other in (places, reversed(places))):
            raise ValueError(f"--preview must be neither in the folder of --out nor around it, and {preview} is")
    early: Options = {**passed, "mirror": True, "data_lines": None, "events": False}
    opent3.requests_of(work, policies, **early)
    return early


@contextmanager
def previewed(
    preview: Path | None, early: Options | None, work: Workload, policies: tuple[Policy, ...], own: SizedModel | None
) -> Iterator[None]:
    """Simulates, writes and prints the preview, if there is one, before the block; it is kept if the block fails.

    Raises Interrupted, which says where the preview is, if the user interrupts the block.
    """
    if preview is None or early is None:
        yield
        return
    with output_folder(preview) as folder:
        found = opent3.compare(work, policies, watch=lambda label: watch(f"preview of {label}"), **early)
        found.write_into(folder)
    console = plain_console()
    console.print("Preview: one GPU, whose own traffic stands for its neighbours'. It is no result of the whole ring.")
    show(found, preview, own=own)
    console.print(f"Now all {work.tp} GPUs.\n")
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted(f"interrupted; only the preview was written, in {preview}") from error
