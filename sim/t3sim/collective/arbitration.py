"""The machine's rule of arbitration as values of the unit's registers ARBITER and THRESHOLDS."""

from dataclasses import dataclass

from t3hdl.config import NO_LIMIT

from t3sim.inputs.machine.sections import ArbiterSection

IN_TURNS = 255
"""As a threshold: there is none, and the streams take turns."""
_CLASSES = {"under_25": 0, "under_50": 25, "under_75": 50, "above": 75}
"""Of the first stage's data-bus use, each with a threshold -> where it begins [percent]."""
_FULL_QUEUE = 64
"""Lines of the queue that thresholds are given for."""


@dataclass(frozen=True, kw_only=True)
class Arbitration:
    """``arbiter``, ``thresholds``: fields of the two registers -> values."""

    arbiter: dict[str, int]
    thresholds: dict[str, int]


def arbitration_of(
    rule: ArbiterSection, *, compute_first: bool, backlog: int, patience: int, queue_lines: int
) -> Arbitration:
    """Communication-aware arbitration by ``rule`` and its limits if ``compute_first``, or round-robin.

    By the rule of the backlog communication is behind from ``backlog`` DMA blocks on, or when some have waited for
    ``patience`` x 64 memory clocks. Thresholds are scaled with the depth of the memory's queue, ``queue_lines``.
    """

    def scaled(threshold: int) -> int:
        return NO_LIMIT if threshold == NO_LIMIT else max(1, threshold * queue_lines // _FULL_QUEUE)

    if rule.mca == "backlog":
        thresholds = {
            name: IN_TURNS if use >= rule.backlog_turns_percent else scaled(rule.backlog_threshold)
            for name, use in _CLASSES.items()
        } | {"backlog": backlog, "patience": patience}
        waiting = {"starvation": rule.backlog_wait_cycles, "quiet": rule.backlog_quiet_lines}
    else:
        thresholds = {name: scaled(getattr(rule, f"threshold_{name}")) for name in _CLASSES}
        waiting = {"starvation": rule.starvation_cycles}
    arbiter = {"mca": int(compute_first), "fixed": 0, "threshold": NO_LIMIT, "quantum": rule.starvation_quantum}
    return Arbitration(arbiter=arbiter | waiting, thresholds=thresholds)
