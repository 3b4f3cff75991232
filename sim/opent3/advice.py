"""What a reader of a result should know before he uses it, each with what can be done about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from t3hdl.config import T3Config
from t3sim.run.result import Result


def overflow_advice(results: Iterable[Result], config: T3Config) -> list[str]:
    """A sentence if blocks waited for a whole chunk, because the tracker of ``config`` had no room for its tiles."""
    late = [
        f"{result.policy} ({result.blocks.by_chunk} of {result.blocks.by_chunk + result.blocks.by_tile} blocks)"
        for result in results
        if result.blocks is not None and result.blocks.by_chunk
    ]
    if not late:
        return []
    ways, sets = config.tracker_ways, config.tracker_sets
    more = [text for name, value in (("tracker_ways", 2 * ways), ("tracker_sets", 2 * sets))
            if (text := _setting(config, name, value))]  # fmt: skip
    remedy = f"more room lets them go tile by tile, as {' or '.join(more)}" if more else "it has all that it can have"
    what = f"the tracker was full ({sets} sets of {ways} ways), so that blocks waited for their whole chunk"
    return [f"{what}: {', '.join(late)}; {remedy}"]


def _setting(config: T3Config, name: str, value: int) -> str:
    """The option that gives ``config`` another value; empty if it may not have that."""
    changed: dict[str, Any] = {name: value}
    try:
        replace(config, **changed)
    except ValueError:
        return ""
    return f"--set hardware.{name}={value}"
