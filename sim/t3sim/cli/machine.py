"""``t3 machine``: the presets, a machine's values with their sources, and a file to begin one's own with."""

from pathlib import Path

import click

from t3sim.common.fitted_table import FittedTable
from t3sim.common.user_input import one_line, readable
from t3sim.inputs.machine.describe import machine_template
from t3sim.inputs.machine.files import load_machine, parse_settings, preset_names
from t3sim.inputs.machine.standing import bandwidth_gb_s, caution, matrix_tflop_s, standing

from .console import plain_console

SUFFIX = ".toml"


@click.group()
def machine() -> None:
    """List the presets, show a machine, or begin one of your own."""


@machine.command("list")
def list_machines() -> None:
    """Show the presets side by side."""
    table = FittedTable(
        "name", "CUs", "clock (MHz)", "FP16 TFLOP/s", "LLC (MiB)", "memory (GB/s)", "link (GB/s)", "compared with",
        text=["compared with"],
    )  # fmt: skip
    for name in preset_names():
        found = load_machine(name)
        table.add_row(
            name, f"{found.gpu.cus}", f"{found.gpu.clock_mhz}", f"{matrix_tflop_s(found):.4g}",
            f"{found.llc.capacity_kib / 1024:.4g}", f"{bandwidth_gb_s(found):.0f}", f"{found.link.gb_s:g}",
            standing(found),
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
    path = _free_path(name)
    content = machine_template(base)
    try:
        with path.open("x", encoding="utf-8") as file:
            try:
                file.write(content)
                file.flush()
            except BaseException:
                path.unlink()
                raise
    except FileExistsError as error:
        raise ValueError(f"{readable(path)} exists, and is left as it is: choose another name") from error
    click.echo(one_line(f"written to {readable(path)}: --machine {readable(path)} takes it as it is"))


def _free_path(name: str) -> Path:
    """Where the machine ``name`` goes. Raises ValueError for a name that no file or another machine can have."""
    path = Path(name if name.endswith(SUFFIX) else f"{name}{SUFFIX}")
    if path.name == SUFFIX or not name.isprintable():
        raise ValueError(f"NAME must be the name of a new file, in printable characters, not {name!r}")
    if path.stem in preset_names():
        raise ValueError(f"NAME must not be that of a preset, {path.stem!r}, whose results yours would seem to be")
    return path
