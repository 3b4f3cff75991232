"""``t3 verilog``: the hardware as files."""

from pathlib import Path

import click
from opent3 import hardware_with
from rich.console import Console
from t3hdl.config import PRESETS
from t3hdl.interface.parts import TABLE

from t3sim.common.output import output_folder

from .console import say_where, step_progress
from .errors import FOLDER, Failure


@click.command()
@click.option("--preset", default="paper", help=f"Configuration: {', '.join(PRESETS)}.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one hardware parameter, such as tracker_sets=512.",
)
@click.option(
    "--part", "parts", multiple=True, help=f"Part to write, repeatable: {', '.join(TABLE)}.  [default: unit, nmc]"
)
@click.option(
    "--prefix", default="", show_default=False, metavar="NAME", help="What the name of every module begins with."
)
@click.option("--init-memories", is_flag=True, help="Memories begin with zeros: for simulation.")
@click.option("--out", "-o", type=FOLDER, required=True, help="Folder for the Verilog files.")
def verilog(
    preset: str, settings: tuple[str, ...], parts: tuple[str, ...], prefix: str, init_memories: bool, out: Path
) -> None:
    """Write the hardware of one GPU as Verilog.

    t3_unit.v is one per GPU, t3_nmc.v one for each bank group. Beside them: t3.f (file list), t3.json (parameters,
    ports, latencies, registers), t3_assertions.sv (to be bound), t3.sdc (constraints), t3.core (FuseSoC), t3.rdl and
    t3_registers.h (registers).

    With --prefix left_ modules and files are called left_t3_unit and so on, but for the registers' files, which are the
    same in every configuration: two configurations can then be in one design.

    Without --init-memories memories and their output registers are unknown until they are written, as in hardware. A
    simulator with unknown values, such as Icarus or one of gates, then shows X where nothing is used yet.
    """
    from t3hdl.export.verilog import PARTS, STEPS, VerilogError, check_prefix, generate

    config = hardware_with(preset, settings)
    parts = tuple(dict.fromkeys(parts)) or ("unit", "nmc")
    if unknown := [part for part in parts if part not in PARTS]:
        raise ValueError(f"--part must be of {', '.join(PARTS)}, not {', '.join(unknown)}")
    check_prefix(prefix)
    console = Console(stderr=True)
    try:
        with output_folder(out) as folder, step_progress(console, "verilog", len(parts) * len(STEPS)) as show:
            generate(config, folder, parts, show, prefix=prefix, init_memories=init_memories)
    except VerilogError as error:
        raise Failure(str(error)) from error
    say_where(out)
