"""Where the items of an PingPongQueue are, for properties that follow one through it."""

from typing import Any

from amaranth.hdl import Mux, Signal, Value


def places(inside: Any, queue: str) -> list[tuple[Signal, Value]]:
    """Of the queue with this name: whether its first and its second item are there, and what they are."""
    valid, full, turn, *items = (
        inside[rf"{queue}\.{name}"] for name in ("o__valid", "full", "turn", "item_0", "item_1")
    )
    return [(valid, Mux(turn, items[1], items[0])), (full, Mux(turn, items[0], items[1]))]
