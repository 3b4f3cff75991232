"""The page of waits for the tracker: ``python -m docs.pages tracker_waits`` writes it from the record beside it."""

import json
from collections.abc import Sequence
from typing import Any

from t3sim.run.records import read_record
from t3sim.validation.memory_rate.record import TrackerWaits, Waits

from docs.pages import RESULTS
from docs.pages.shared.hardware import measured_on
from docs.pages.shared.markdown import paragraph, table
from docs.pages.texts.tracker_waits import AIM, BEFORE, HEAD, OTHERS, SIMULATED, STREAMS, WHY

PAGE = RESULTS / "tracker-waits.md"
KEPT = RESULTS / "tracker" / "tracker.json"
"""The file of ``t3 validate tracker --out`` that is kept beside the page."""
_BEFORE = KEPT.parent / "before.json"
"""Cycles blocked before accesses were bursts, by regime and stream: typed from the records of those runs."""


def page() -> str:
    """The text of :data:`PAGE`, from what is kept."""
    return text(read_record(KEPT, TrackerWaits))


def text(record: TrackerWaits) -> str:
    """The page of this record."""
    streams = [row for row in record.rows if not row.command]
    simulated = [row for row in record.rows if row.command]
    blocked = [row for row in record.rows if row.blocked]
    causes = [(row.where, row.regime, f"{row.blocked:,}", row.cause) for row in blocked]
    why = (
        f"\n## Why some waited\n\n{WHY}\n" + table(("where", "regime", "blocked:", "cause"), causes) if blocked else ""
    )
    return (
        f"{HEAD}\n{measured_on(record.hardware)}{_verdict(record)}\n## Two contexts\n\n{STREAMS}\n{_table(streams)}"
        f"\n## Co-simulated GEMMs\n\n{SIMULATED}\n{_table(simulated)}"
        f"\n## Before bursts\n\n{_before(simulated, json.loads(_BEFORE.read_text(encoding='utf-8')))}{why}"
    )


def _verdict(record: TrackerWaits) -> str:
    """How many regimes have no wait, as was the aim, and the others with their waits on each hardware."""
    simulated = [row for row in record.rows if row.command]
    blocked = {
        (row.regime, row.what): [
            other for other in record.rows if (other.regime, other.what) == (row.regime, row.what) and other.blocked
        ]
        for row in record.rows
        if row.blocked
    }
    aim = AIM.format(
        regimes=len(record.rows), free=sum(not row.blocked for row in record.rows), simulated=len(simulated),
        simulated_free=sum(not row.blocked for row in simulated),
    )  # fmt: skip
    items = (
        f"- {regime} ({what}): {', '.join(f'{row.blocked:,} on {row.where}' for row in rows)}\n"
        for (regime, what), rows in blocked.items()
    )
    return paragraph(f"{aim}{OTHERS if blocked else ''}") + "".join(items)


def _before(today: Sequence[Waits], before: dict[str, Any]) -> str:
    """Cycles of both streams then and now, for the regimes that were measured then."""
    now = {row.regime: row.blocked for row in today}
    rows = [
        (
            row["regime"],
            *(f"{cycles:,}" for cycles in (row["compute"], row["communication"], now[row["regime"]])),
        )
        for row in before["rows"]
    ]
    heads = ("regime", "compute blocked before:", "communication blocked before:", "both since:")
    return BEFORE.format(**before) + "\n" + table(heads, rows)


def _table(rows: Sequence[Waits]) -> str:
    """A row for each regime, with its command if it has one."""
    commands = [f"`{row.command}`" for row in rows if row.command]
    heads = (
        "where",
        "regime",
        "what",
        "lines:",
        "chunks overflowed:",
        "cycles blocked:",
        *(["command"] if commands else []),
    )
    cells = [
        (row.where, row.regime, row.what, f"{row.lines:,}", row.overflowed_chunks, f"{row.blocked:,}") for row in rows
    ]
    return table(heads, [(*row, *commands[i : i + 1]) for i, row in enumerate(cells)])
