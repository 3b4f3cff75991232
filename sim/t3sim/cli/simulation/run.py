"""``t3 run`` and ``t3 compare``: one sublayer under one policy, or several."""

from pathlib import Path
from typing import Any

import click
import opent3
from opent3 import POLICIES, Comparison

from t3sim.common.output import output_folder
from t3sim.run.request import COMPARED, Policy

from ..errors import out_option
from ..start.completion import values
from .options import chosen, names, simulation_options
from .preview import preview_of, preview_option, previewed
from .results import fail_if_wrong, show, watch
from .trace import check_traceable, trace_option, trace_output


@click.command()
@simulation_options
@out_option
@trace_option
@click.option("--policy", default="t3-mca", shell_complete=values(POLICIES), help=f"Policy: {', '.join(POLICIES)}.")
def run(policy: Policy, trace: Path | None, **options: Any) -> None:
    """Co-simulate one policy on one sublayer.

    The sublayer is one of --model or of --hf, or any GEMM (--m, --n, --k). sequential, sequential-pipelined (rings as
    in RCCL) and sequential-nmc (reduces near memory) run the GEMM, then the collectives. t3 overlaps them; t3-mca also
    arbitrates between their accesses to memory. ideal-overlap and ideal-overlap-nmc are computed: overlap without
    contention.

    \b
    t3 run --model gpt-3 --sublayer fc1 --tp 32 --mirror --out out/gpt-3
    t3 run --m 4096 --n 4096 --k 16384 --tp 8 --set link.gb_s=75 --mirror
    """
    work, passed, own = chosen(options, events=trace is not None)
    opent3.requests_of(work, (policy,), **passed)  # refuses what cannot be simulated before a folder is opened
    if trace is not None:
        check_traceable([policy])
    with output_folder(options["out"]) as folder, trace_output(trace, options["out"], folder) as write_trace:
        found = opent3.run(work, policy, watch=watch, **passed)
        if folder is not None:
            found.write_into(folder)
        write_trace({policy: found})
    show(Comparison(runs={policy: found}), options["out"], trace, own)
    fail_if_wrong(found.failures)


@click.command()
@simulation_options
@out_option
@trace_option
@preview_option
@click.option(
    "--policies", default=",".join(COMPARED), callback=names, shell_complete=values(POLICIES),
    help=f"Of {', '.join(POLICIES)}; separated by commas.",
)  # fmt: skip
def compare(policies: tuple[Any, ...], trace: Path | None, preview: Path | None, **options: Any) -> None:
    """Co-simulate several policies on one sublayer, side by side.

    The sublayer is one of --model or of --hf, or any GEMM (--m, --n, --k). `t3 run --help` says what each policy is.

    \b
    t3 compare --model t-nlg --sublayer fc2 --tp 8 --mirror --out out/t-nlg
    t3 report out/t-nlg
    """
    work, passed, own = chosen(options, events=trace is not None)
    opent3.requests_of(work, policies, **passed)
    if trace is not None:
        check_traceable(policies)
    early = preview_of(preview, options["out"], work, policies, passed)
    with (
        output_folder(options["out"]) as folder,
        trace_output(trace, options["out"], folder) as write_trace,
        previewed(preview, early, work, policies, own),
    ):
        found = opent3.compare(work, policies, watch=watch, **passed)
        if folder is not None:
            found.write_into(folder)
        write_trace(found.runs)
    show(found, options["out"], trace, own)
    fail_if_wrong(found.failures)
