"""The page of waits for the tracker: what is counted as the hardware's own, and what deeper token queues change."""

import pytest
from t3sim.run.records import read_record
from t3sim.validation.memory_rate.record import TrackerWaits, Waits

from docs.pages import tracker_waits

MACHINE = {"version": "1.2.3", "netlist": "0" * 16}


def row(regime: str, settings: str, blocked: int) -> Waits:
    """Two contexts on `paper`."""
    return Waits(
        regime=regime, what="short", where="paper", settings=settings, command="", lines=9, overflowed_chunks=0,
        blocked=blocked, cause="too many" if blocked else "",
    )  # fmt: skip


@pytest.fixture
def simulated() -> list[Waits]:
    """Of the kept record: rows of GEMMs, which the page holds beside those of before."""
    rows = [kept for kept in read_record(tracker_waits.KEPT, TrackerWaits).rows if kept.command]
    return [kept.model_copy(update={"blocked": 0}) for kept in rows]


def test_deeper_queues_are_beside_what_waits_and_not_in_the_verdict(simulated):
    rows = [
        row("a", "", 7),
        row("b", "", 0),
        row("c", "", 0),
        row("a", "token_queue=16", 2),
        row("b", "token_queue=16", 0),
        row("c", "token_queue=16", 1),
    ]
    text = tracker_waits.text(TrackerWaits(hardware=MACHINE, rows=[*rows, *simulated]))
    assert f"{len(simulated) + 2} of {len(simulated) + 3} regimes on the presets as they are have no cycle" in " ".join(
        text.split()
    )
    assert "| paper | a | short | 9 | 0 | 7 |" in text and "| paper | a | short | 9 | 0 | 2 |" not in text
    deeper = text.partition("## Deeper token queues")[2]
    assert "| regime | `paper` as it is | `token_queue=16` |" in deeper
    assert "| a | 7 | 2 |" in deeper and "| c | 0 | 1 |" in deeper and "| b |" not in deeper
    (cause,) = (line for line in text.splitlines() if "too many" in line)
    assert cause == "| paper | a | 7 | too many |"


def test_every_gemm_stands_beside_what_it_was_before(simulated):
    changed = [kept.model_copy(update={"blocked": 1000 + i}) for i, kept in enumerate(simulated)]
    text = tracker_waits.text(TrackerWaits(hardware=MACHINE, rows=[row("a", "", 0), *changed]))
    before = text.partition("## Before bursts")[2].partition("\n## ")[0]
    lines = [line for line in before.splitlines() if line.startswith("| machine ")]
    assert len(lines) == len(changed)
    for kept, line in zip(changed, lines, strict=True):
        assert line.startswith(f"| {kept.where} | {kept.regime} | ") and line.endswith(f" | {kept.blocked:,} |")


def test_without_deeper_queues_there_is_no_such_section(simulated):
    text = tracker_waits.text(TrackerWaits(hardware=MACHINE, rows=[row("a", "", 7), *simulated]))
    assert "Deeper token queues" not in text
