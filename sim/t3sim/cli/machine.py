"""``t3 machine``: the presets, a machine's values with their sources, and a file to begin one's own with."""

import shlex

import click
import opent3
from opent3 import caution, load_machine, parse_settings, preset_names

from t3sim.common.fitted_table import FittedTable
from t3sim.common.user_input import one_line, readable

from .console import plain_console


@click.group()
def machine() -> None:
    """List the presets, show a machine, or begin one of your own."""


@machine.command("list")
def list_machines() -> None:
    """Show the presets side by side."""
    table = FittedTable(
        "name", "CUs", "clock (MHz)", "FP16 TFLOP/s", "LLC (MiB)", "memory (GB/s)", "link (GB/s)", "comparable with",
        text=["comparable with"],
    )  # fmt: skip
    for item in opent3.machine_summaries():
        table.add_row(
            item.name, f"{item.cus}", f"{item.clock_mhz}", f"{item.fp16_tflop_s:.4g}", f"{item.llc_mib:.4g}",
            f"{item.memory_gb_s:.0f}", f"{item.link_gb_s:g}", item.compared_with,
        )  # fmt: skip
    plain_console().print(table)


@machine.command()
@click.argument("name")
@click.option("--set", "settings", multiple=True, metavar="SECTION.KEY=VALUE", help="Change one machine value.")
def show(name: str, settings: tuple[str, ...]) -> None:
    """Show every value of a machine with its unit and source.

    NAME is a preset or a TOML file. What is shown is a file that --machine takes.
    """
    found = load_machine(name, parse_settings(settings))
    for text in caution(found):
        click.echo(f"# {one_line(text)}")
    click.echo(found.to_toml(), nl=False)


@machine.command()
@click.argument("name")
@click.option("--base", default="paper", help=f"The preset to begin with: {', '.join(preset_names())}.")
def new(name: str, base: str) -> None:
    """Write NAME.toml, a machine file with every key as a comment.

    Change a line where your machine differs from its base. A file that exists is left as it is.
    """
    path = opent3.new_machine(name, base)
    click.echo(one_line(f"written to {readable(path)}: --machine {shlex.quote(readable(path))} takes it as it is"))
