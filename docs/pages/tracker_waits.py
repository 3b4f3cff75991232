"""The page of waits for the tracker: ``python -m docs.pages tracker_waits`` writes it from the record beside it."""

import json
from collections.abc import Sequence
from typing import Any

from t3sim.run.records import read_record
from t3sim.validation.memory_rate.record import TrackerWaits, Waits

from docs.pages import RESULTS
from docs.pages.shared.hardware import measured_on
from docs.pages.shared.markdown import paragraph, table
from docs.pages.texts.tracker_waits import BEFORE, HEAD, SIMULATED, STREAMS, WHY

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
    verdict = f"{len(record.rows)} regimes, {len(blocked)} with cycles in which an access waited for the tracker."
    causes = [(row.where, row.regime, f"{row.blocked:,}", row.cause) for row in blocked]
    why = (
        f"\n## Why some waited\n\n{WHY}\n" + table(("where", "regime", "blocked:", "cause"), causes) if blocked else ""
    )
    return (
        f"{HEAD}\n{measured_on(record.hardware)}{paragraph(verdict)}## Two contexts\n\n{STREAMS}\n{_table(streams)}"
        f"\n## Co-simulated GEMMs\n\n{SIMULATED}\n{_table(simulated)}"
        f"\n## Before bursts\n\n{_before(simulated, json.loads(_BEFORE.read_text(encoding='utf-8')))}{why}"
    )


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
