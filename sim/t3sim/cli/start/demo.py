"""``t3 demo``: what T3 does, on machines so small that it takes seconds."""

from pathlib import Path
from typing import Any

import click
import opent3

from t3sim.common.output import output_folder
from t3sim.run.request import BACKENDS, Backend

from ..console import plain_console
from ..errors import OUT_FOLDER
from ..explain import print_findings
from ..simulation.results import fail_if_wrong, show, watch

SIZE: dict[str, Any] = {"m": 256, "n": 256, "k": 512, "tp": 4}
"""Four GPUs of the toy machine, each with a chunk of the same shape; ``TOY`` is the same."""
EXPLAINED = "t3-mca"
BEFORE = (
    "Four toy GPUs in a ring compute a GEMM and sum its output: first one after the other (sequential), then as T3 "
    "does it, counting stores in the memory controller and sending each block on as soon as it is complete (t3), with "
    "an arbiter that knows of communication (t3-mca), against the best that overlap could do (ideal-overlap)."
)
TOY = "--machine toy --m 256 --n 256 --k 512 --tp 4"
NEXT = (
    (f"t3 run {TOY} --trace toy.pftrace", "what every GPU does when, for ui.perfetto.dev"),
    (f"t3 compare {TOY} --set link.gb_s=5 --out out/slow", "the same with a slower link"),
    ("t3 explain out/slow", "what limited each policy"),
    ("t3 report out/slow", "all of it as one HTML page, with charts to zoom"),
    ("t3 compare", "a layer of a model on the machine of the paper: minutes"),
    ("t3 verilog --preset small --out rtl", "the hardware"),
    ("t3 --help", "all commands"),
)
"""Commands to go on with, and what for."""


@click.command()
@click.option("--hardware", default="golden", help=f"T3 hardware: {' or '.join(BACKENDS)}, which takes a C++ compiler.")
@click.option("--out", "-o", type=OUT_FOLDER, help="Folder for results; none are written without it.")
def demo(hardware: Backend, out: Path | None) -> None:
    """Show what T3 does, in seconds: compare the policies on four toy GPUs, and say why they differ.

    The first time, it compiles for a minute or two.
    """
    from t3sim.explain.folder import explain  # here, because it takes seconds to import

    console = plain_console()
    work, options = opent3.custom_workload(**SIZE), opent3.Options(machine="toy", hardware=hardware, threads=1)
    opent3.requests_of(work, ("t3-mca",), **options)  # what is refused is refused before anything is printed
    with output_folder(out) as folder:
        console.print(BEFORE)
        console.print()
        found = opent3.compare(work, watch=watch, **options)
        if folder is not None:
            found.write_into(folder)
    show(found, out)
    console.print()
    console.print("Why:")
    records = [run.record for run in found.runs.values()]
    print_findings({EXPLAINED: explain(records)[EXPLAINED]})
    console.print()
    console.print("Next:")
    for command, purpose in NEXT:
        console.print(f"  {command}")
        console.print(f"      {purpose}")
    fail_if_wrong(found.failures)
