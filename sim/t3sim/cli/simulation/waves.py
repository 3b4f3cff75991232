"""``t3 waves``: waveforms of parts of one GPU's T3 unit, in a window of a run."""

from typing import Any, get_args

import click
import opent3
from opent3 import POLICIES, Policy
from opent3.waveforms import AROUND_CLOCKS, Format

from ..console import say_where
from ..errors import FOLDER, Mismatch, is_given
from ..start.completion import values
from .options import chosen, simulation_options
from .results import watch


@click.command()
@simulation_options
@click.option("--out", "-o", type=FOLDER, required=True, help="Folder for the files.")
@click.option("--policy", default="t3-mca", shell_complete=values(POLICIES), help=f"Policy: {', '.join(POLICIES)}.")
@click.option("--gpu", type=int, default=0, help="The GPU whose unit is shown.")
@click.option(
    "--parts",
    default="tracker,trigger",
    help="Parts of the unit, separated by commas; slice is all slices, slice.3 one.",
)
@click.option("--from-ns", type=float, help="Where the window begins, in ns since the launch of the GEMM.")
@click.option("--to-ns", type=float, help="Where the window ends; the run ends there, too.")
@click.option(
    "--around",
    type=int,
    metavar="TRIGGER",
    default=1,
    help=f"Instead of --from-ns and --to-ns: {AROUND_CLOCKS} clocks before and after this trigger of the GPU.",
)
@click.option(
    "--internals/--no-internals", default=True, help="With RTL: also registers, memories and wires in the parts."
)
@click.option("--golden/--no-golden", default=True, help="With RTL: also the ports of the golden model, compared.")
@click.option(
    "--format", "waveform", type=click.Choice(get_args(Format)), default="vcd", help="VCD is text, FST compressed."
)
def waves(
    policy: Policy, gpu: int, parts: str, from_ns: float | None, to_ns: float | None, around: int, internals: bool,
    golden: bool, waveform: Format, **options: Any,
) -> None:  # fmt: skip
    """Write waveforms of parts of one GPU's T3 unit in a run.

    They show the ports of the parts and the signals inside them, clock by clock. The simulation is that of t3 run, up
    to the end of the window. The folder gets rtl.vcd (or rtl.fst), rtl.gtkw for GTKWave and rtl.sucl for Surfer, which
    group the signals by stream, and the same three files of the golden model. Exit code 1 if RTL and golden model
    differ at a port.

    \b
    t3 waves --machine toy --m 256 --n 64 --k 64 --tp 4 --out out/waves
    gtkwave out/waves/rtl.gtkw
    """
    work, passed, _ = chosen(options)
    found = opent3.waves(
        work,
        options["out"],
        policy,
        gpu=gpu,
        parts=parts,
        from_ns=from_ns,
        to_ns=to_ns,
        around=around if is_given("around") else None,
        internals=internals if is_given("internals") else None,
        golden=golden if is_given("golden") else None,
        form=waveform,
        watch=watch,
        **passed,
    )
    click.echo(found.summary)
    if found.compared and found.difference is None:
        click.echo("the ports of RTL and golden model are identical in every clock (idle and wake_at may differ)")
    say_where(options["out"])
    if found.difference is not None:
        raise Mismatch(found.difference)
