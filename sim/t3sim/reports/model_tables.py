"""What ``t3 model`` prints: operators, policies, and Amdahl's bounds."""

from collections.abc import Sequence

from rich.table import Table

from .end_to_end import ModelTime
from .suite import BASELINE


def operator_table(time: ModelTime) -> Table:
    """Every operator with its work and its time, all-reduced sublayers with their simulated sequential times."""
    table = _table(("operator", "runs", "GFLOP", "MB", "us", "limited by", "total ms", "share %"))
    shares = time.shares(BASELINE)
    for name, simulated in time.sublayers[BASELINE].items():
        label = f"sublayer {name}"
        _row(table, label, time.layers, "", "", simulated.total, "simulated", shares[label])
    for item in time.operators:
        work, operator = item.operator, item.operator.name
        limit = "matrix units" if item.compute_ns > item.memory_ns else "memory"
        flop, moved = f"{work.flop / 1e9:.1f}" if work.flop else "", f"{work.bytes / 1e6:.1f}"
        _row(table, operator, item.count, flop, moved, item.ns, limit, shares[operator])
    return table


def policy_table(time: ModelTime) -> Table:
    """Times and speedup of every policy."""
    table = _table(("policy", "all-reduced sublayers ms", "other operators ms", "total ms", "speedup"))
    for policy in time.sublayers:
        parts = (time.sublayer_ns(policy), time.other_ns, time.total_ns(policy))
        table.add_row(policy, *(f"{part / 1e6:.2f}" for part in parts), f"{time.speedup(policy):.3f}")
    return table


def amdahl_text(time: ModelTime) -> str:
    """What bounds the speedup."""
    return (
        f"All-reduced sublayers take {time.sublayer_share:.1%} of the sequential time, communication "
        f"{time.communication_share:.1%}. A perfect overlap of GEMM and reduce-scatter gives at most "
        f"{time.overlap_limit:.3f}x, no communication at all {time.communication_limit:.3f}x."
    )


def _table(columns: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(
            name, justify="left" if name in ("operator", "policy", "limited by") else "right", no_wrap=True
        )
    return table


def _row(table: Table, name: str, runs: int, flop: str, moved: str, ns: float, limit: str, share: float) -> None:
    total = f"{runs * ns / 1e6:.2f}"
    table.add_row(name, str(runs), flop, moved, f"{ns / 1e3:.1f}", limit, total, f"{100 * share:.1f}")
