"""Published results on the validation page, from the files of ``t3 reproduce`` and its sensitivity sweep."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from t3sim.study.published import note_of
from t3sim.study.sources import source_digest

from docs.pages.markdown import paragraph, table

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
_IDEALS = ("ideal-overlap", "ideal-overlap-nmc")
_VERDICTS = {"inside": "yes", "outside": "**no**"}


def published_section(folders: Mapping[str, Path], sensitivity: Path, page_folder: Path) -> str:
    """A part for each machine, by the folders of ``t3 reproduce``, and what each assumption moves, if it was measured.

    Links are relative to ``page_folder``. Raises ValueError if a folder lacks a file, or has one that is not what it
    should be.
    """
    parts = [
        f"### Machine `{machine}`\n\n" + reproduced_section(machine, folder, page_folder)
        for machine, folder in folders.items()
    ]
    if sensitivity.exists():
        variants = _load(sensitivity, ("variants", "failures"))["variants"]
        parts.append("### What each assumption moves\n\n" + _sensitivity(variants))
    return paragraph(_RULES) + "\n".join(parts)


def reproduced_section(machine: str, folder: Path, page_folder: Path) -> str:
    """What ``t3 reproduce`` found on ``machine``; if there is no ``folder``, how to get it. Raises ValueError."""
    if not folder.exists():
        return _HOW.format(command=f"t3 reproduce --machine {machine} -o docs/results/{folder.name}")
    record = _load(folder / "reproduce.json", ("figures", "runs", "failures", "sources"))
    figures = [figure for figure in record["figures"] if figure["measured"] is not None]
    parts = [
        paragraph(_provenance(record)).removesuffix("\n"),
        _figure_table(figures),
        _notes(figures),
        _contention(record["runs"]).removesuffix("\n"),
        _near_memory(record["runs"]).removesuffix("\n"),
        _mirror_table(record["runs"]),
        _charts(folder, page_folder),
    ]
    return "\n".join(part for part in parts if part)


def _provenance(record: Mapping[str, Any]) -> str:
    settings = "".join(f", `{key}={value}`" for key, value in record["settings"].items())
    policies = [run["result"]["policy"] for run in record["runs"]]
    computed = sum(policy in _IDEALS for policy in policies)
    text = (
        f"From `t3 reproduce` of OpenT3 {record['opent3']} on machine `{record['machine']}`{settings}: T3 in "
        f"{record['hardware']} hardware; {len(policies) - computed} results simulated (FC-1 is the GEMM of FC-2, and "
        f"simulated once), {computed} ideals computed from them, {len(record['failures'])} accounting identities that "
        "do not hold."
    )
    return " ".join([text, *made_by(record["sources"])])


def made_by(sources: str) -> list[str]:
    """A sentence on a record whose simulator, by the digest of its ``sources``, is not this tree's; else none."""
    return [] if sources == source_digest() else ["**Made by an earlier simulator than this tree's.**"]


def _load(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}): give a folder of t3 reproduce -o") from error
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error})") from error
    missing = [key for key in keys if not isinstance(record, dict) or key not in record]
    if missing:
        raise ValueError(f"{path} has no {', '.join(missing)}: it is not of t3 reproduce")
    return record


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{value:.2f}x" if unit == "x" else f"{value:.1f} %"


def _figure_table(figures: Sequence[Mapping[str, Any]]) -> str:
    """A row for each figure; without the column of this project's rule in a record from before that was measured."""
    heads = ["result", "published:", "ours:", "ours, own rule:", "band:", "inside"]
    rows = [list(_figure_row(figure)) for figure in figures]
    if any(figure.get("own_rule") is not None for figure in figures):
        return paragraph(_OWN_RULE) + table(heads, rows)
    own = heads.index("ours, own rule:")
    for row in (heads, *rows):
        del row[own]
    return table(heads, rows)


def _figure_row(figure: Mapping[str, Any]) -> tuple[str, ...]:
    low, high = (_number(figure[end], figure["unit"]) for end in ("low", "high"))
    band = f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}" if high else ""
    return (
        figure["title"],
        _number(figure["published"], figure["unit"]),
        _number(figure["measured"], figure["unit"]),
        _number(figure.get("own_rule"), figure["unit"]),
        band,
        _VERDICTS.get(figure["verdict"], figure["verdict"]),
    )


def _notes(figures: Sequence[Mapping[str, Any]]) -> str:
    """Why some are outside, or cannot be counted; and what is to be known of those inside."""
    missed = [figure for figure in figures if figure["verdict"] != "inside"]
    noted = [figure for figure in figures if figure["verdict"] == "inside" and _note(figure)]
    parts = [
        _list("Outside, without a band, or not to be counted:", missed) if missed else "All are inside their bands.\n",
        _list("Inside, and to be known:", noted) if noted else "",
    ]
    return "\n".join(part for part in parts if part)


def _list(head: str, figures: Sequence[Mapping[str, Any]]) -> str:
    lines = (f"- {figure['title']}: {_note(figure) or 'cause not known'}" for figure in figures)
    return f"{head}\n\n" + "\n".join(lines) + "\n"


def _note(figure: Mapping[str, Any]) -> str:
    return note_of(figure["name"], figure["note"])


def _contention(runs: Sequence[Mapping[str, Any]]) -> str:
    """What the streams cost each other under t3, without arbitration: ranges over the sublayers."""
    found = [run["result"] for run in runs if run["variant"] == "base" and run["result"]["policy"] == "t3"]
    groups = {
        "TP 8 and 16": [result for result in found if result["workload"]["tp"] <= 16],
        "TP 32 and 64": [result for result in found if result["workload"]["tp"] > 16],
    }
    texts = "; ".join(f"at {title}, {_costs(results)}" for title, results in groups.items() if results)
    if not texts:
        return ""
    return paragraph(f"What the streams cost each other, measured in the runs of `t3`, without arbitration: {texts}.")


def _costs(results: Sequence[Mapping[str, Any]]) -> str:
    def between(value: Callable[[Mapping[str, Any]], float]) -> str:
        values = [value(result) for result in results]
        return f"{min(values):.1f} to {max(values):.1f}"

    def clocks(cause: str) -> str:
        key = f"blocked_by_{cause}_cycles"
        return between(lambda result: float(waits(result)[key] / waits(result)["lines"]))

    def waits(result: Mapping[str, Any]) -> Mapping[str, Any]:
        return dict(result["contention"]["compute"])

    loads = between(lambda result: 100 * result["contention"]["cu_stall_ns"]["loads"] / result["time_ns"]["gemm"])
    return (
        f"the DRAM's data bus is in use for {between(lambda r: 100 * r['contention']['dram']['bus_use'])} % of the "
        f"time, CUs wait for loads {loads} % of the GEMM's time, and a line of compute waits {clocks('other_stream')} "
        f"memory clocks for communication's turn and {clocks('full_queue')} for room in the DRAM queue"
    )


def _near_memory(runs: Sequence[Mapping[str, Any]]) -> str:
    """What a reduction near memory gains in an ideal overlap, of runs of one kind: whole rings, or mirrored GPUs."""
    totals: dict[tuple[str, bool], dict[str, float]] = {}
    for run in (run for run in runs if run["variant"] == "base"):
        result = run["result"]
        if result["policy"] in _IDEALS:
            kind = (_sublayer(result["workload"]), result["mirror"])
            totals.setdefault(kind, {})[result["policy"]] = result["time_ns"]["total"]
    plain, near = _IDEALS
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


def _sublayer(work: Mapping[str, Any]) -> str:
    return f"{work['model']} {work['sublayer']} TP {work['tp']}"


def _mirror_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Sublayers that were simulated both as a whole ring and as one mirrored GPU."""
    totals: dict[tuple[str, ...], dict[bool, float]] = {}
    for run in (run for run in runs if run["variant"] == "base"):
        result = run["result"]
        if result["policy"].startswith("ideal"):  # computed from the others
            continue
        totals.setdefault((_sublayer(result["workload"]), result["policy"]), {})[result["mirror"]] = result["time_ns"][
            "total"
        ]
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


def _sensitivity(variants: Sequence[Mapping[str, Any]]) -> str:
    """How each assumption moves the geometric means; the first variant is what the others are held against."""
    policies = list(variants[0]["geomeans"]["speedups"])
    rows = []
    for variant in variants:
        means = variant["geomeans"]
        values = {policy: f"{means['speedups'][policy]:.3f}x" for policy in policies}
        if means["gemm_reads"] is not None:
            values |= {"gemm_reads": f"{means['gemm_reads']:.2f}x", "data_movement": f"{means['data_movement']:.2f}"}
        cells = (f"{value} ({variant['changes'].get(name, 0):+.1f} %)" for name, value in values.items())
        rows.append((variant["name"], variant["why"], *cells))
    heads = ["assumption", "why", *(f"{policy}:" for policy in policies), "GEMM reads fewer:", "data moved:"]
    return (
        "Geometric means of the speedups, and of t3-mca's traffic against `sequential`, "
        "with the change against the first row.\n\n" + table(heads[: len(rows[0])], rows)
    )
