"""The page of today's machines: ``python -m docs.pages today`` writes it from the sweep that is kept beside it.

``python -m docs.pages.today`` runs that sweep again, some minutes, and writes the page.
"""

import os
from pathlib import Path

import click
import opent3
from opent3 import MachineSummary, Policy, SweepResult
from t3sim.common.json_text import json_text
from t3sim.common.output import output_folder, write_atomically
from t3sim.run.records import read_record
from t3sim.run.result import Result
from t3sim.study.sweep import SweepRecord, SweptVariant

from docs.pages import RESULTS
from docs.pages.shared.kept import made_by
from docs.pages.shared.markdown import paragraph, table

PAGE = RESULTS / "machines-of-today.md"
KEPT = RESULTS / "machines" / "sweep.json"
MACHINES = tuple(name for name in opent3.preset_names() if name.endswith("-like"))
SIZE = {"m": 8192, "n": 8192, "k": 28672, "tp": 8}
"""FC-2 of a model of Llama 3's sizes with 70 billion parameters, on 8192 tokens."""
POLICIES: tuple[Policy, ...] = ("t3", "t3-mca", "ideal-overlap")

_HEAD = """\
# Machines of today

What the presets of [today's machines](../guides/machine.md#machines-of-today) give, as an orientation. **They are
unvalidated**: the products have no T3 hardware and no updates near memory, and no published result of T3 is for such a
machine.

The sublayer is FC-2 of a model of Llama 3's sizes with 70 billion parameters, on {m} tokens: {m} x {n} x {k} on {tp}
GPUs, one of them simulated and its traffic mirrored, on {hardware} hardware. Times are in us, GEMM to all-gather those
of `sequential`; *of the matrix rate* is the GEMM's rate over the machine's peak. Written by
`python -m docs.pages today` from `docs/results/machines/sweep.json`, which `python -m docs.pages.today` measures; on
one machine it is

    t3 compare --m {m} --n {n} --k {k} --tp {tp} --mirror --hardware golden --machine h100-like

"""


def measured() -> SweepResult:
    """The sweep, run now."""
    point = opent3.custom_point(**SIZE)
    return opent3.sweep(opent3.on_machines(MACHINES), [point], POLICIES)


def page() -> str:
    """The text of :data:`PAGE`, from the sweep that is kept. Raises ValueError if it cannot be read."""
    return text(read_record(KEPT, SweepRecord), KEPT)


def text(record: SweepRecord, path: Path) -> str:
    """The page of a sweep, whose record is in ``path``."""
    head = _HEAD.format(**SIZE, hardware=record.hardware)
    columns = [_column(variant) for variant in record.variants]
    rows = [(title, *(column[title] for column in columns)) for title in columns[0]]
    head += "".join(map(paragraph, made_by(record, path)))
    return head + table(("", *(f"`{item.name}`:" for item in record.variants)), rows) + "\n" + _remark(record)


def _column(variant: SweptVariant) -> dict[str, str]:
    """What is said of a machine, by title."""
    runs = _runs(variant)
    alone = runs["sequential"].time_ns
    times = {
        "GEMM": alone.gemm, "reduce-scatter": alone.reduce_scatter, "all-gather": alone.all_gather,
        "`sequential`": alone.total, **{f"`{policy}`": runs[policy].time_ns.total for policy in POLICIES},
    }  # fmt: skip
    best = max(alone.total / runs[policy].time_ns.total for policy in ("t3", "t3-mca"))
    return {
        "of the matrix rate": f"{100 * _of_the_rate(variant):.0f} %",
        **{title: f"{ns / 1e3:.0f}" for title, ns in times.items()},
        "best speedup": f"{best:.3f}",
    }


def _runs(variant: SweptVariant) -> dict[str, Result]:
    return {run.result.policy: run.result for run in variant.runs}


def _of_the_rate(variant: SweptVariant) -> float:
    """The GEMM's rate over the peak of the machine's matrix units."""
    peak = MachineSummary.of(opent3.load_machine(variant.name)).fp16_tflop_s
    work = 2 * SIZE["m"] * SIZE["n"] * SIZE["k"] / SIZE["tp"]
    return work / _runs(variant)["sequential"].time_ns.gemm / 1e3 / peak


def _remark(record: SweepRecord) -> str:
    """What the rates of the GEMM are to be read with."""
    slowest = min(record.variants, key=_of_the_rate)
    return paragraph(
        "Products lose more of their matrix rate to power than these models, which know of none. "
        f"`{slowest.name}` loses most of it here: one slab is fetched ahead, as in the paper's machine, which does not "
        "hide a load's latency behind so fast a matrix unit (`gpu.prefetch_slabs`)."
    )


@click.command()
def main() -> None:
    """Run the sweep, keep its record, and write the page."""
    record = measured().record
    with output_folder(KEPT.parent) as folder:
        write_atomically(folder / KEPT.name, json_text(record.model_dump(by_alias=True)))
    write_atomically(PAGE, page())
    click.echo(f"written: {os.path.relpath(KEPT)}, {os.path.relpath(PAGE)}")


if __name__ == "__main__":
    main()
