"""Published results on the validation page, from the files of ``t3 reproduce`` and its sensitivity sweep."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from t3sim.run.ideal import COMPUTED
from t3sim.run.records import read_record
from t3sim.run.result import Contention, DramUse, Result
from t3sim.study.records.titles import sublayer_title
from t3sim.study.reproduction import FigureRecord, Reproduction
from t3sim.study.sweep import SweepRecord, SweptVariant

from docs.pages.shared.kept import made_by
from docs.pages.shared.markdown import paragraph, table

_HOW = """\
Not measured yet. After `{command}`, `python -m docs.pages validation` puts every published number beside ours, with its
band and verdict, the causes of what is outside, and links to the charts.
"""
_RULES = """\
*Ours*, and the verdict, is with the paper's rule of arbitration (`arbiter.mca = paper`). Bands were set before the
first whole run. Two values of the machine were derived from published figures, which therefore confirm nothing here:
the link's rate from both gains of near-memory reduction, the order of tiles from the GEMM's reads.
"""
_OWN_RULE = "*Own rule* is what t3-mca gives with this project's rule (`arbiter.mca = backlog`)."
_VERDICTS = {"inside": "yes", "outside": "**no**"}


def published_section(folders: Mapping[str, Path], sensitivity: Path, page_folder: Path) -> str:
    """A part for each machine, by the folders of ``t3 reproduce``, and what each assumption moves, if it was measured.

    Links are relative to ``page_folder``. Raises ValueError if a folder lacks its file, or has one that is no record of
    this version.
    """
    parts = [
        f"### Machine `{machine}`\n\n" + reproduced_section(machine, folder, page_folder)
        for machine, folder in folders.items()
    ]
    if sensitivity.exists():
        swept = read_record(sensitivity, SweepRecord)
        parts.append("### What each assumption moves\n\n" + _sensitivity(swept.variants))
    return paragraph(_RULES) + "\n".join(parts)


def reproduced_section(machine: str, folder: Path, page_folder: Path) -> str:
    """What ``t3 reproduce`` found on ``machine``; if there is no ``folder``, how to get it. Raises ValueError."""
    if not folder.exists():
        return _HOW.format(command=f"t3 reproduce --machine {machine} -o docs/results/{folder.name}")
    path = folder / "reproduce.json"
    record = read_record(path, Reproduction)
    figures = [figure for figure in record.figures if figure.measured is not None]
    base = [run.result for run in record.runs if run.variant == "base"]
    parts = [
        paragraph(_provenance(record, path)).removesuffix("\n"),
        _figure_table(figures),
        _notes(record, figures),
        _contention(base).removesuffix("\n"),
        _near_memory(base).removesuffix("\n"),
        _row_conflicts(base),
        _mirror_table(base),
        _charts(folder, page_folder),
    ]
    return "\n".join(part for part in parts if part)


def _provenance(record: Reproduction, path: Path) -> str:
    settings = "".join(f", `{key}={value}`" for key, value in record.settings.items())
    computed = sum(run.result.policy in COMPUTED for run in record.runs)
    verdicts = [figure.verdict for figure in record.figures if figure.verdict in _VERDICTS]
    text = (
        f"From `t3 reproduce` of OpenT3 {record.opent3} on machine `{record.machine}`{settings}: T3 in "
        f"{record.hardware} hardware; {len(record.runs) - computed} results simulated (FC-1 is the GEMM of FC-2, and "
        f"simulated once), {computed} ideals computed from them, {len(record.failures)} accounting identities that "
        f"do not hold. Of {len(verdicts)} published numbers with a band {verdicts.count('inside')} come out."
    )
    return " ".join([text, *made_by(record, path)])


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{value:.2f}x" if unit == "x" else f"{value:.1f} %"


def _figure_table(figures: Sequence[FigureRecord]) -> str:
    """A row for each figure; without the column of this project's rule in a record from before that was measured."""
    heads = ["result", "published:", "ours:", "ours, own rule:", "band:", "inside"]
    rows = [list(_figure_row(figure)) for figure in figures]
    if any(figure.own_rule is not None for figure in figures):
        return paragraph(_OWN_RULE) + table(heads, rows)
    own = heads.index("ours, own rule:")
    for row in (heads, *rows):
        del row[own]
    return table(heads, rows)


def _figure_row(figure: FigureRecord) -> tuple[str, ...]:
    return (
        figure.title,
        _number(figure.published, figure.unit),
        _number(figure.measured, figure.unit),
        _number(figure.own_rule, figure.unit),
        figure.limits(lambda value: _number(value, figure.unit)),
        _VERDICTS.get(figure.verdict, figure.verdict),
    )


def _notes(record: Reproduction, figures: Sequence[FigureRecord]) -> str:
    """Why some are outside, or cannot be counted; and what is to be known of those inside."""
    missed = [figure for figure in figures if figure.verdict != "inside"]
    noted = [figure for figure in figures if figure.verdict == "inside" and record.remark(figure)]
    parts = [
        _list(record, "Outside, without a band, or not to be counted:", missed)
        if missed
        else "All are inside their bands.\n",
        _list(record, "Inside, and to be known:", noted) if noted else "",
    ]
    return "\n".join(part for part in parts if part)


def _list(record: Reproduction, head: str, figures: Sequence[FigureRecord]) -> str:
    lines = (f"- {figure.title}: {record.remark(figure) or 'cause not known'}" for figure in figures)
    return f"{head}\n\n" + "\n".join(lines) + "\n"


def _contention(results: Sequence[Result]) -> str:
    """What the streams cost each other under t3, without arbitration: ranges over the sublayers."""
    found = [result for result in results if result.policy == "t3" and result.contention is not None]
    groups = {
        "TP 8 and 16": [result for result in found if result.workload.tp <= 16],
        "TP 32 and 64": [result for result in found if result.workload.tp > 16],
    }
    texts = "; ".join(f"at {title}, {_costs(results)}" for title, results in groups.items() if results)
    if not texts:
        return ""
    return paragraph(f"What the streams cost each other, measured in the runs of `t3`, without arbitration: {texts}.")


def _costs(results: Sequence[Result]) -> str:
    """Of results whose waits were observed, at least one."""
    seen = [(result.time_ns.gemm, result.contention) for result in results if result.contention is not None]

    def between(value: Callable[[float, Contention], float]) -> str:
        values = [value(gemm_ns, contention) for gemm_ns, contention in seen]
        return f"{min(values):.1f} to {max(values):.1f}"

    use = between(lambda _, waits: 100 * waits.dram.bus_use)
    loads = between(lambda gemm_ns, waits: 100 * waits.cu_stall_ns["loads"] / gemm_ns)
    turn = between(lambda _, waits: waits.compute.blocked_by_other_stream_cycles / waits.compute.lines)
    room = between(lambda _, waits: waits.compute.blocked_by_full_queue_cycles / waits.compute.lines)
    return (
        f"the DRAM's data bus is in use for {use} % of the time, CUs wait for loads {loads} % of the GEMM's time, and "
        f"a line of compute waits {turn} memory clocks for communication's turn and {room} for room in the DRAM queue"
    )


def _near_memory(results: Sequence[Result]) -> str:
    """What a reduction near memory gains in an ideal overlap, of runs of one kind: whole rings, or mirrored GPUs."""
    totals: dict[tuple[str, bool], dict[str, float]] = {}
    for result in results:
        if result.policy in COMPUTED:
            kind = (sublayer_title(result.workload), result.mirror)
            totals.setdefault(kind, {})[result.policy] = result.time_ns.total
    plain, near = COMPUTED
    gains = {kind: both[plain] / both[near] - 1 for kind, both in totals.items() if len(both) == 2}
    some = sorted((kind for kind, gain in gains.items() if gain > 0), key=lambda kind: -gains[kind])
    if not some:
        return ""
    texts = ", ".join(f"{gains[kind]:.1%} for {kind[0]}{' (mirrored)' if kind[1] else ''}" for kind in some)
    rest = len(gains) - len(some)
    return paragraph(
        f"`{near}` over `{plain}`: {texts}."
        + (f" At the other {rest} sublayers the GEMM hides either reduction." if rest else "")
    )


def _row_conflicts(results: Sequence[Result]) -> str:
    """Of the output projections at TP 32: whose rows are closed, and for whom."""
    rows = [
        _conflict_row(result, result.contention.dram)
        for result in results
        if result.policy in ("sequential", "t3") and result.contention and result.contention.dram.conflicts
        if (result.workload.sublayer, result.workload.tp) == ("op", 32)
    ]
    if not rows:
        return ""
    heads = ("sublayer", "policy", "lines:", "find another row open:", *(f"{title}:" for title in _MEETINGS))
    return paragraph(
        "Row conflicts at TP 32: lines that find another row open in their bank, in percent of all lines, by who "
        "they belong to and whose row is open. Communication is reduce-scatter and all-gather."
    ) + table(heads, rows)


_MEETINGS = {
    "GEMM closes the GEMM's": (True, True),
    "GEMM closes communication's": (True, False),
    "communication closes the GEMM's": (False, True),
    "communication closes its own": (False, False),
}
"""Whether the line that comes, and the row that is open, are the GEMM's."""


def _conflict_row(result: Result, dram: DramUse) -> tuple[str, ...]:
    lines = dram.row_hits + dram.row_misses + dram.row_conflicts
    counts = dict.fromkeys(_MEETINGS.values(), 0)
    for comes, rows in (dram.conflicts or {}).items():
        for is_open, count in rows.items():
            counts[comes.startswith("gemm"), is_open.startswith("gemm")] += count
    shares = (f"{100 * count / lines:.1f}" for count in (dram.row_conflicts, *counts.values()))
    return (sublayer_title(result.workload), result.policy, f"{lines / 1e6:.1f} M", *shares)


def _mirror_table(results: Sequence[Result]) -> str:
    """Sublayers that were simulated both as a whole ring and as one mirrored GPU."""
    totals: dict[tuple[str, str], dict[bool, float]] = {}
    for result in results:
        if result.policy not in COMPUTED:
            where = sublayer_title(result.workload), result.policy
            totals.setdefault(where, {})[result.mirror] = result.time_ns.total
    rows = [
        (*names, f"{both[False] / 1e3:,.1f}", f"{both[True] / 1e3:,.1f}", f"{both[True] / both[False] - 1:+.2%}")
        for names, both in totals.items()
        if len(both) == 2
    ]
    if not rows:
        return ""
    heads = ("sublayer", "policy", "ring, us:", "mirror, us:", "difference:")
    return "One mirrored GPU against the whole ring:\n\n" + table(heads, rows)


def _charts(folder: Path, page_folder: Path) -> str:
    """Links to the charts of the folder."""
    charts = sorted(folder.glob("*.png"))
    links = (f"[{chart.stem}]({os.path.relpath(chart, page_folder)})" for chart in charts)
    return f"Charts: {', '.join(links)}.\n" if charts else ""


def _sensitivity(variants: Sequence[SweptVariant]) -> str:
    """How each assumption moves the geometric means; the first variant is what the others are held against."""
    policies = list(variants[0].geomeans.speedups)
    rows = []
    for variant in variants:
        means = variant.geomeans
        values = {str(policy): f"{means.speedups[policy]:.3f}x" for policy in policies}
        if means.gemm_reads is not None:
            values |= {"gemm_reads": f"{means.gemm_reads:.2f}x", "data_movement": f"{means.data_movement:.2f}"}
        cells = (f"{value} ({variant.changes.get(name, 0):+.1f} %)" for name, value in values.items())
        rows.append((variant.name, variant.why, *cells))
    heads = ["assumption", "why", *(f"{policy}:" for policy in policies), "GEMM reads fewer:", "data moved:"]
    return (
        "Geometric means of the speedups, and of t3-mca's traffic against `sequential`, "
        "with the change against the first row.\n\n" + table(heads[: len(rows[0])], rows)
    )
