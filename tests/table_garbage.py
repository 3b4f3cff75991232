"""What memories hold when the power comes on: anything."""

from typing import Any

from amaranth.hdl import Signal, Value
from amaranth.lib import data


def fill_tables(bench: Any) -> None:
    """Writes random bits into every row of every memory of the part."""
    for row in bench._registers:
        if not isinstance(row, Signal):
            shape = row.shape() if callable(getattr(row, "shape", None)) else None
            bits = bench.random.getrandbits(len(Value.cast(row)))
            bench.ctx.set(row, shape.from_bits(bits) if isinstance(shape, data.Layout) else bits)
