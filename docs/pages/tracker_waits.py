"""The page of waits for the tracker: ``python -m docs.pages tracker_waits`` writes it from the record beside it."""

import json
from collections.abc import Sequence
from typing import Any

from t3sim.run.records import read_record
from t3sim.validation.memory_rate.record import TrackerWaits, Waits

from docs.pages import RESULTS
from docs.pages.shared.hardware import measured_on
from docs.pages.shared.markdown import paragraph, table
from docs.pages.texts.tracker_waits import AIM, BEFORE, DEEPER, HEAD, OTHERS, SIMULATED, STREAMS, WHY

PAGE = RESULTS / "tracker-waits.md"
KEPT = RESULTS / "tracker" / "tracker.json"
"""The file of ``t3 validate tracker --out`` that is kept beside the page."""
_BEFORE = KEPT.parent / "before.json"
"""Cycles blocked before accesses were bursts, by machine, regime and stream: typed from the records of those runs."""


def page() -> str:
    """The text of :data:`PAGE`, from what is kept."""
    return text(read_record(KEPT, TrackerWaits))


def text(record: TrackerWaits) -> str:
    """The page of this record."""
    rows = [row for row in record.rows if not row.settings]
    streams = [row for row in rows if not row.command]
    simulated = [row for row in rows if row.command]
    blocked = [row for row in rows if row.blocked]
    causes = [(row.where, row.regime, f"{row.blocked:,}", row.cause) for row in blocked]
    why = (
        f"\n## Why some waited\n\n{WHY}\n" + table(("where", "regime", "blocked:", "cause"), causes) if blocked else ""
    )
    deeper = _deeper([row for row in record.rows if not row.command])
    return (
        f"{HEAD}\n{measured_on(record.hardware)}{_verdict(rows)}\n## Two contexts\n\n{STREAMS}\n{_table(streams)}"
        f"\n## Co-simulated GEMMs\n\n{SIMULATED}\n{_table(simulated)}"
        f"\n## Before bursts\n\n{_before(simulated, json.loads(_BEFORE.read_text(encoding='utf-8')))}{why}{deeper}"
    )


def _verdict(rows: Sequence[Waits]) -> str:
    """How many regimes have no wait, as was the aim, and the others with their waits on each hardware."""
    simulated = [row for row in rows if row.command]
    blocked = {
        (row.regime, row.what): [
            other for other in rows if (other.regime, other.what) == (row.regime, row.what) and other.blocked
        ]
        for row in rows
        if row.blocked
    }
    aim = AIM.format(
        regimes=len(rows), free=sum(not row.blocked for row in rows), simulated=len(simulated),
        simulated_free=sum(not row.blocked for row in simulated),
    )  # fmt: skip
    items = (
        f"- {regime} ({what}): {', '.join(f'{row.blocked:,} on {row.where}' for row in rows)}\n"
        for (regime, what), rows in blocked.items()
    )
    return paragraph(f"{aim}{OTHERS if blocked else ''}") + "".join(items)


def _deeper(streams: Sequence[Waits]) -> str:
    """What waits on `paper` with the token queue as it is, and with deeper ones; nothing where these were not made."""
    blocked = {(row.regime, row.settings): row.blocked for row in streams if row.where == "paper"}
    regimes, settings = (list(dict.fromkeys(keys)) for keys in zip(*blocked, strict=True)) if blocked else ([], [])
    if settings in ([], [""]):
        return ""
    waiting = [regime for regime in regimes if any(blocked[regime, where] for where in settings)]
    rows = [(regime, *(f"{blocked[regime, where]:,}" for where in settings)) for regime in waiting]
    heads = ("regime", "`paper` as it is:", *(f"`{where}`:" for where in settings[1:]))
    return f"\n## Deeper token queues\n\n{DEEPER}\n" + table(heads, rows)


def _before(today: Sequence[Waits], before: dict[str, Any]) -> str:
    """Cycles of both streams then and now."""
    now = {(row.where, row.regime): row.blocked for row in today}
    rows = [
        (
            row["where"],
            row["regime"],
            *(f"{cycles:,}" for cycles in (row["compute"], row["communication"], now[row["where"], row["regime"]])),
        )
        for row in before["rows"]
    ]
    heads = ("where", "regime", "compute blocked before:", "communication blocked before:", "both since:")
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
