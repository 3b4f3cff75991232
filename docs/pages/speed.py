"""The page of the simulation's speed: ``python -m docs.pages speed`` writes it from the records beside it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from t3hdl.config import PRESETS
from t3sim.inputs.machine.settings import literal
from t3sim.run.records import read_ours
from t3sim.validation.bench import Bench, Target
from t3sim.validation.scaling import AXES, Scaling

from docs.pages import RESULTS
from docs.pages.shared.hardware import measured_on
from docs.pages.shared.markdown import paragraph, table
from docs.pages.texts import speed as words

PAGE = RESULTS / "speed.md"
KEPT = RESULTS / "speed" / "ring" / "bench.json"
"""The file of ``t3 bench --ring --out`` that is kept beside the page."""
SCALING = RESULTS / "speed" / "scaling" / "scaling.json"
"""That of ``t3 bench --scaling --out``."""
EARLIER_COMPUTER = "2 cores of an AMD EPYC"
"""Of records from before they said it."""
START = RESULTS / "speed" / "make-run.json"
"""What was timed by hand."""
MIRRORED, DRAM = "one mirrored GPU, s", "HBM model, requests/s on "
"""Rows of the targets: by name, by how their names begin."""
_Record = TypeVar("_Record")


@dataclass(frozen=True, kw_only=True)
class Start:
    """`make run` on a clone of ``commit`` without caches, on ``computer``, in seconds."""

    schema: int
    commit: str
    computer: str
    targets: tuple[Target, ...]


def page() -> str:
    """The text of :data:`PAGE`, from what is kept. Raises ValueError if a record is of another version."""
    return text(*read())


def read() -> tuple[Bench, Scaling, Start]:
    """What is kept. Raises ValueError if a record is of another version."""
    return _read(KEPT, Bench), _read(SCALING, Scaling), _read(START, Start)


def _read(path: Path, record: type[_Record]) -> _Record:
    try:
        return TypeAdapter(record).validate_python(json.loads(read_ours(path)))
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise ValueError(f"{path.name} is of another version ({reason}): measure again what it holds") from error


def text(bench: Bench, scaling: Scaling, start: Start) -> str:
    """The page of these records."""
    tables = "\n".join(f"Over {title}:\n\n{_scaled(scaling, axis)}" for axis, title in AXES.items())
    left_out = "".join(f"\n- {size}" for size in scaling.left_out)
    head = words.HEAD.format(computer=_computers(bench, scaling), settings=_settings(scaling))
    begins = words.START.format(commit=start.commit, computer=start.computer)
    return (
        f"{head}\n{measured_on(bench.hardware, scaling.hardware)}"
        f"## Targets\n\n{_verdict(bench, start)}{_contention(bench)}{_targets(bench.targets)}"
        f"\n{_why(bench)}"
        f"## From nothing\n\n{paragraph(begins)}{_targets(start.targets)}"
        f"\n## Before bursts\n\n{words.BEFORE}"
        f"\n## Evaluations of the RTL\n\n{words.EVENTS}\n{_events(bench)}\n{words.PARTS}\n{_parts(bench)}"
        f"\n## Over GPUs and tokens\n\n{words.CHARTED}{_marks(scaling)}\n{tables}"
        + (f"\n{words.LEFT_OUT}{left_out}\n" if left_out else "")
    )


def _computers(*records: Bench | Scaling) -> str:
    """Whose seconds the records are."""
    return " and ".join(dict.fromkeys(record.computer or EARLIER_COMPUTER for record in records))


def _settings(scaling: Scaling) -> str:
    """The machine's settings, as options."""
    return "".join(f" --set {key}={literal(value)}" for key, value in scaling.provenance.settings.items())


def _verdict(bench: Bench, start: Start) -> str:
    """How many figures have a target, and how many miss it."""
    missed, late = (sum(not row.ok for row in rows) for rows in (bench.targets, start.targets))
    counts = {"missed": missed, "count": len(bench.targets), "late": late, "start": len(start.targets)}
    return paragraph(words.VERDICT.format(**counts))


def _targets(targets: Iterable[Target]) -> str:
    rows = (
        (row.name, f"{row.measured:.3g}", f"{'at most' if row.ceiling else 'at least'} {row.limit:,g}",
         "" if row.ok else "**missed**")
        for row in targets
    )  # fmt: skip
    return table(("figure", "measured:", "target:", ""), rows)


def _why(bench: Bench) -> str:
    """What one mirrored GPU's time is spent on, beside its target. Raises ValueError if the record lacks either."""
    target = next((row for row in bench.targets if row.name == MIRRORED), None)
    rates = [row.measured for row in bench.targets if row.name.startswith(DRAM)]
    if target is None or not rates:
        raise ValueError(f"{KEPT.name} lacks {MIRRORED!r} or {DRAM!r}: run `t3 bench` again")
    least, most = bench.lines / max(rates), bench.lines / min(rates)
    return paragraph(
        words.WHY.format(
            all=bench.simulate_seconds, limit=target.limit, rtl=bench.rtl_seconds, golden=bench.golden_seconds,
            lines=bench.lines / 1e6, slow=min(rates) / 1e6, fast=max(rates) / 1e6, least=least, most=most,
        )
    )  # fmt: skip


def _contention(bench: Bench) -> str:
    """Of how many pairs of runs the cost of observing contention is, and what a ratio says."""
    ratios = bench.contention_ratios
    if not ratios:
        return paragraph(words.CONTENTION.format(of="of one pair of runs", spread=words.ONE_PAIR))
    of = f"the median of {len(ratios)} pairs of runs in turns, {', '.join(f'{ratio:.3f}' for ratio in ratios)}"
    spread = words.PAIRS.format(spread=max(ratios) - min(ratios))
    return paragraph(words.CONTENTION.format(of=of, spread=spread))


def _marks(scaling: Scaling) -> str:
    """Of how many tile marks the runs are, if that was set."""
    marks = scaling.provenance.settings.get("hardware.tile_marks")
    return "" if marks is None else "\n" + words.MARKS.format(marks=marks, preset=PRESETS["paper"].tile_marks)


def _events(bench: Bench) -> str:
    rows = ((cost.event, f"{cost.per_event:.2f}", f"{cost.count:,}") for cost in bench.costs)
    each = f"{bench.evaluations / bench.lines:.2f}"
    return table(
        ("for each", "evaluations:", "of them:"), [*rows, ("line of 32 bytes, all in all", each, f"{bench.lines:,}")]
    )


def _parts(bench: Bench) -> str:
    rows = ((part.name, f"{part.evaluations:,}", f"{part.seconds:.2f}") for part in bench.parts)
    whole = (
        "all",
        f"{bench.evaluations:,}",
        f"{bench.rtl_seconds:.2f}, {bench.rtl_share:.0%} of {bench.simulate_seconds:.1f}",
    )
    return table(("part", "evaluations:", "seconds:"), [*rows, whole])


def _scaled(scaling: Scaling, axis: str) -> str:
    rows = (
        (
            f"{point.value:,}", f"{point.seconds:.1f}", f"{point.state_bytes / 1e6:.0f}",
            f"{1e9 * point.seconds / point.bursts:.0f}", f"{point.simulated_ns / 1e3:.0f}",
        )
        for point in scaling.of(axis)
    )  # fmt: skip
    return table((f"{axis}:", "seconds:", "state, MB:", "ns per burst:", "simulated us:"), rows)
