"""``t3 run`` and ``t3 compare``: one sublayer under one policy, or several."""

from pathlib import Path
from typing import Any

import click
import opent3
from opent3 import COMPARED, POLICIES, Comparison, Policy

from ..errors import kept_if_interrupted, out_option
from ..start.completion import values
from .options import chosen, names, simulation_options
from .preview import preview_option, shown_preview
from .results import fail_if_wrong, show, watch
from .trace import trace_option


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
    work, passed, own = chosen(options)
    found = opent3.run(work, policy, watch=watch, out=options["out"], trace=trace, **passed)
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
    work, passed, own = chosen(options)
    seen: list[Path] = []
    with kept_if_interrupted(seen, f"only the preview was written, in {preview}"):
        found = opent3.compare(
            work, policies, watch=watch, out=options["out"], trace=trace, preview=preview,
            on_preview=shown_preview(preview, own, seen), **passed,
        )  # fmt: skip
    show(found, options["out"], trace, own)
    fail_if_wrong(found.failures)
