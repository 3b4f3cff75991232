"""Measures the regimes: cycles in which an access waits for the tracker."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

from t3hdl.config import PRESETS, T3Config
from t3hdl.export.identity import hardware_identity

from t3sim.run.policies import run_policies
from t3sim.run.request import Backend

from .contexts import CONTEXTS, Contexts, made_bursts, memory_bursts
from .record import DEEPER, TrackerWaits, Waits
from .regimes import Regime
from .streams import Streamed, stream

LARGE, SMALL = ("paper", "paper-fit"), ("small", "fpga")
"""Presets with two contexts at least: of the paper's size, and smaller."""


def hardware_of(presets: Sequence[str]) -> list[tuple[str, str, T3Config]]:
    """The hardware on which two contexts store: a preset, settings beside it, and what both come to."""
    found = [(preset, "", PRESETS[preset]) for preset in presets]
    if "paper" in presets:
        paper = PRESETS["paper"]
        found += [("paper", f"token_queue={depth}", replace(paper, token_queue=depth)) for depth in DEEPER]
    return found


def measure(
    hardware: Backend, presets: Sequence[str], regimes: Sequence[Regime], done: Callable[[int], object]
) -> TrackerWaits:
    """All contexts on ``presets``, and on `paper` with deeper token queues, too, and the co-simulated ``regimes``;
    ``done`` is told how many rows there are."""
    rows: list[Waits] = []
    for preset, settings, config in hardware_of(presets):
        for contexts in CONTEXTS:
            row = streamed(contexts, preset, config, stream(config, contexts.jobs(config), hardware))
            rows.append(row.model_copy(update={"settings": settings}))
            done(len(rows))
    for regime in regimes:
        rows.append(simulated(regime, hardware))
        done(len(rows))
    return TrackerWaits(hardware=hardware_identity(), rows=rows)


def streamed(contexts: Contexts, preset: str, config: T3Config, found: Streamed) -> Waits:
    """The row of two contexts. Raises ValueError if the tracker did not count every line: then nothing was shown."""
    errors = [name for name in ("unmatched", "over_count", "over_total") if found.tracked[name]]
    if found.tracked["updates"] != found.lines or errors:
        raise ValueError(
            f"the tracker counted {found.tracked['updates']} of {found.lines} lines of two contexts "
            f"({contexts.name}, {preset}), with errors {errors}: the measurement is wrong"
        )
    return Waits(
        regime=f"two contexts: {contexts.name}",
        what=contexts.what,
        where=preset,
        command="",
        lines=found.lines,
        overflowed_chunks=found.tracked["overflowed"],
        blocked=found.held,
        cause=cause_of(contexts, config, found.bursts, found.lines) if found.held else "",
    )


def cause_of(contexts: Contexts, config: T3Config, bursts: int, lines: int) -> str:
    """Why some of so many bursts wait: how many come, and how many are counted at most."""
    taken = memory_bursts(config, bursts, lines)
    if contexts.paced:
        return (
            f"the sources make {made_bursts(contexts, config, bursts, lines):.1f} bursts per cycle at most, but memory "
            f"takes what has gathered in its queues, up to {taken:.1f} in a cycle, a token each; {_most(config)}"
        )
    return f"memory can take {taken:.1f} bursts per cycle on average, a token each; {_most(config)}"


def _most(config: T3Config) -> str:
    """How many tokens are counted in a cycle at most, and by what."""
    leaves, banks = config.nodes * config.roots, config.tracker_banks
    by_leaves, number = leaves < banks, min(leaves, banks)
    part = "output of the leaves pass" if by_leaves else "bank count"
    most = f"1 {part}{'es' if by_leaves else 's'}" if number == 1 else f"{number} {part.replace(' ', 's ', 1)}"
    return f"{most} {number} at most"


def simulated(regime: Regime, hardware: Backend) -> Waits:
    """The row of a co-simulated regime."""
    silent = nullcontext(lambda progress: None)
    record = run_policies(regime.request(hardware), ("t3-mca",), lambda policy: silent)["t3-mca"].record
    contention, tracker = record.contention, record.tracker
    assert contention is not None and tracker is not None  # a tracked run has both
    blocked = contention.compute.blocked_by_tracker_cycles + contention.communication.blocked_by_tracker_cycles
    return Waits(
        regime=regime.name,
        what=regime.what,
        where=f"machine {regime.machine}",
        command=regime.command,
        lines=tracker.updates,
        overflowed_chunks=tracker.overflowed_chunks,
        blocked=blocked,
        cause="a burst waits at a slice whose token waits" if blocked else "",
    )
