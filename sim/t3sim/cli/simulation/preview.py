"""The option ``--preview``: the same comparison with one GPU mirrored first, for a table and pictures early."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from opent3 import Comparison, SizedModel

from ..console import plain_console
from ..errors import FOLDER
from .results import show


def preview_option(command: Any) -> Any:
    """The option ``--preview``."""
    return click.option(
        "--preview",
        type=FOLDER,
        metavar="DIRECTORY",
        help="First simulate one GPU and reflect its traffic, which is quicker, and write that comparison here.",
    )(command)


def shown_preview(preview: Path | None, own: SizedModel | None, seen: list[Path]) -> Callable[[Comparison], None]:
    """What adds the folder of a preview, which is written, to ``seen``, and prints the preview."""

    def on_preview(found: Comparison) -> None:
        if preview is not None:
            seen.append(preview)
        console = plain_console()
        console.print(
            "Preview: one GPU, whose own traffic stands for its neighbours'. It is no result of the whole ring."
        )
        show(found, preview, own=own)
        console.print(f"Now all {next(iter(found.runs.values())).request.workload.tp} GPUs.\n")

    return on_preview
