"""``python -m docs.pages [NAME...]``: writes the generated pages again, all of them without a name."""

import os
from importlib import import_module

import click
from t3hdl.export.synthesis import SynthesisError
from t3sim.common.output import write_atomically

PAGES = (
    "registers",
    "parts",
    "area",
    "machine",
    "constants",
    "proofs",
    "mutation",
    "testbenches",
    "faults",
    "boards",
    "map",
    "played.reader",
    "today",
    "readme",
    "tracker_waits",
    "speed",
    "gpu",
    "validation",
)
"""Modules with ``PAGE`` and ``page()``, and names of pages. area and validation measure, which takes minutes; the
others read sources, and what is kept in docs/results."""


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(PAGES))
def main(names: tuple[str, ...]) -> None:
    """Write the generated pages NAMES, all of them by default."""
    for name in names or PAGES:
        module = import_module(f"docs.pages.{name}")
        try:
            write_atomically(module.PAGE, module.page())
        except (OSError, ValueError, SynthesisError) as error:
            raise click.ClickException(f"{name}: {error}") from error
        click.echo(f"written: {os.path.relpath(module.PAGE)}")


if __name__ == "__main__":
    main()
