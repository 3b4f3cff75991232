"""``t3 bench``: how fast the co-simulation is."""

from pathlib import Path
from typing import Any

import click
import opent3

from t3sim.common.output import output_folder, write_atomically
from t3sim.run.request import RunRequest
from t3sim.run.result import json_text

from ..console import plain_console
from ..errors import out_option, refuse_given
from ..reproduce import say_where
from ..tables import bench_tables, scaling_table
from .options import chosen, simulation_options
from .results import watch

QUICK = {"machine": "toy", "m": 256, "n": 200, "k": 512, "tp": 4}
"""What `bench --quick` measures."""


@click.command()
@simulation_options
@out_option
@click.option("--quick", is_flag=True, help="A toy machine and GEMM, for a fast look.")
@click.option("--ring", is_flag=True, help="Also all GPUs of the ring, on one thread and on two.")
@click.option("--scaling", is_flag=True, help="Instead: time and memory over GPUs and tokens, with a chart.")
def bench(quick: bool, ring: bool, scaling: bool, **options: Any) -> None:
    """Compare the co-simulation's speed with its targets.

    The workload is one sublayer under t3-mca, with one thread. It runs in mirror mode unless --no-mirror is given. A
    target that is missed does not change the exit code.
    """
    from t3sim.validation import bench as benches

    if options["mirror"] is None:
        options["mirror"] = True
    if quick:
        refuse_given((*QUICK, "model", "sublayer", "hf"), "--quick chooses machine and GEMM itself")
        options |= QUICK
    refuse_given(("threads",), "bench measures on one thread")
    work, passed, _ = chosen(options)
    (request,) = opent3.requests_of(work, ("t3-mca",), **passed)
    if scaling:
        refuse_given(("ring",), "--scaling measures one mirrored GPU at a time")
        _scaling(request, options["out"])
        return
    with output_folder(options["out"]) as folder:
        result = benches.bench(request, watch, ring)
        if folder is not None:
            write_atomically(folder / "bench.json", json_text(result.to_record()))
    console = plain_console()
    console.print(f"{request.workload.title}, t3-mca{', one GPU mirrored' if request.mirror else ''}")
    for table in bench_tables(result):
        console.print()
        console.print(table)
    say_where(options["out"])


def _scaling(request: RunRequest, out: Path | None) -> None:
    from t3sim.study.drawing import save
    from t3sim.validation.scaling import AXES, measure_scaling, scaling_figure

    with output_folder(out) as folder:
        found = measure_scaling(request, watch)
        if folder is not None:
            write_atomically(folder / "scaling.json", json_text(found.to_record()))
            save(scaling_figure(found), folder / "scaling")
    console = plain_console()
    for axis in AXES:
        console.print(scaling_table(found, axis))
        console.print()
    say_where(out)
