"""``t3 demo``: what T3 does, on machines so small that it takes seconds."""

import textwrap
from pathlib import Path
from typing import Any

import click
import opent3
from opent3 import Backend
from rich.console import Console

from ..console import plain_console, shown
from ..errors import FOLDER, kept_if_interrupted
from ..simulation.machine_options import hardware_option
from ..simulation.results import fail_if_wrong, show, watch

SIZE: dict[str, Any] = {"m": 256, "n": 256, "k": 512, "tp": 4}
"""Four GPUs of the toy machine, each with a chunk of the same shape."""
SETTINGS: dict[str, Any] = {"hardware.tracker_ways": 8}
"""A tracker with room for every tile, so that blocks fire by their tiles; ``TOY`` is the same size and settings."""
OUT = Path("out/demo")
EXPLAINED = "t3-mca"
BEFORE = (
    "Four toy GPUs in a ring compute a GEMM and sum their outputs. sequential: first the GEMM, then the sum. t3: the "
    "memory controller counts the GEMM's stores, and each block is sent on as soon as it is complete. t3-mca: as t3, "
    "with an arbiter that tells compute from communication. ideal-overlap: the best that overlap could do."
)
TOY = "--machine toy --m 256 --n 256 --k 512 --tp 4 --set hardware.tracker_ways=8"
NEXT = (
    (f"t3 run {TOY} --trace toy.pftrace", "what every GPU does when, for ui.perfetto.dev"),
    (f"t3 compare {TOY} --set link.gb_s=5 --out out/slow", "the same with a slower link"),
    ("t3 explain out/slow", "what limited each policy"),
    ("t3 report out/slow", "all of it as one HTML page"),
    ("t3 compare", "a layer of a model on the machine of the paper: minutes"),
    ("t3 verilog --preset small --out rtl", "the hardware as Verilog"),
    ("t3 --help", "all commands"),
)
"""Commands to go on with, and what for."""


def continued(command: str, width: int) -> list[str]:
    """A command in lines of at most ``width`` columns that a shell reads as one, to be copied."""
    lines = textwrap.wrap(
        command,
        width - len(" \\"),
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


@click.command()
@hardware_option("golden")
@click.option("--out", "-o", type=FOLDER, default=OUT, help="Folder for results and report.")
def demo(hardware: Backend, out: Path) -> None:
    """Show in seconds what T3 does, on four toy GPUs.

    Compares the policies, says why they differ, and writes a report. The first time, it compiles for a minute or two.
    """
    console, introduced = plain_console(), False

    def watched(policy: str) -> Any:
        """The words before the first run, when nothing is left that could be refused."""
        nonlocal introduced
        if not introduced:
            console.print(f"{BEFORE}\n")
            introduced = True
        return watch(policy)

    options = opent3.Options(machine="toy", settings=SETTINGS, hardware=hardware, threads=1)
    found = opent3.compare(opent3.custom_workload(**SIZE), watch=watched, out=out, **options)
    with kept_if_interrupted(found.runs, f"the comparison was written, in {out}"):
        show(found, out)
        _explain_and_report(console, found, out)
    console.print()
    console.print("Next:")
    for command, purpose in NEXT:
        for line in continued(command, console.width):
            console.print(line, soft_wrap=True)
        console.print(f"      {purpose}")
    fail_if_wrong(found.failures)


def _explain_and_report(console: Console, found: opent3.Comparison, out: Path) -> None:
    """Prints why a policy is as fast as it is, writes the report, and says where it is."""
    console.print()
    console.print("Why:")
    console.print(str(opent3.Explanation(findings={EXPLAINED: opent3.explain(found).findings[EXPLAINED]})))
    console.print()
    console.print(f"Report, with charts to zoom: {shown(opent3.report(out))}")
