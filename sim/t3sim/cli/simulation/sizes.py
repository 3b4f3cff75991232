"""The options ``--m``, ``--n`` and ``--k``: a GEMM by its sizes."""

from collections.abc import Callable, Mapping
from typing import Any

import click

NAMES = ("m", "n", "k")


def size_options(command: Callable) -> Callable:
    """The options ``--m``, ``--n`` and ``--k``."""
    options = (
        click.option("--m", type=int, help="Rows of a GEMM of your own (tokens); with --n and --k, without a model."),
        click.option("--n", type=int, help="Columns of its output."),
        click.option("--k", type=int, help="Its whole inner dimension, which is split over the GPUs."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def refuse_sizes(options: Mapping[str, Any], why: str) -> None:
    """Raises ValueError, which says ``why``, if there is a size."""
    if any(options[name] is not None for name in NAMES):
        raise ValueError(why)


def sizes_of(options: Mapping[str, Any]) -> dict[str, int] | None:
    """The sizes, None if there are none. Raises ValueError if some are missing."""
    sizes = {name: options[name] for name in NAMES}
    missing = [f"--{name}" for name, size in sizes.items() if size is None]
    if len(missing) == len(NAMES):
        return None
    if missing:
        raise ValueError(f"a GEMM of your own needs --m, --n and --k; missing: {', '.join(missing)}")
    return sizes
