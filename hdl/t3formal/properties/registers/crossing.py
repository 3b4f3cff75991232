"""Every channel of the AXI4-Lite crossing is a queue, however the edges of the two clocks fall."""

from functools import partial
from typing import Any

from amaranth.hdl import ClockSignal, EnableInserter, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from t3hdl.config import T3Config, preset
from t3hdl.registers.crossing import AxiLiteCrossing

from ...prover.harness import Harness
from ...prover.proof import Proof

_RESET = 4
"""Steps after reset in which nobody sends: the queues' reset passes two flip-flops."""
_CHANNELS = {
    "aw": ("awaddr", False),
    "w": ("wdata", False),
    "ar": ("araddr", False),
    "b": ("bresp", True),
    "r": ("rdata", True),
}
"""The field of each channel that is followed, and whether the channel goes to the host."""
_NUMBER_BITS, _BITS = 3, 2


class _TwoClocks(wiring.Component):
    """The crossing with one clock, on which each of its two domains takes the steps that ``host_tick``, ``unit_tick``
    name: any order of the edges of two clocks is such a run."""

    def __init__(self) -> None:
        self._crossing = AxiLiteCrossing()
        members = self._crossing.signature.members
        super().__init__({**members, "host_tick": In(1), "unit_tick": In(1)})

    def elaborate(self, platform: Any) -> Module:
        """Ports go through."""
        m = Module()
        ticks = {"host": self.host_tick, "sync": self.unit_tick}
        m.submodules.crossing = EnableInserter(ticks)(self._crossing)
        for name, member in self.signature.members.items():
            if name not in ("host_tick", "unit_tick"):
                inner, outer = getattr(self._crossing, name), getattr(self, name)
                m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        return m


def _channel(_: T3Config, *, channel: str) -> Harness:
    """One item is chosen by its number (modulo 8; fewer are inside)."""
    crossing = _TwoClocks()
    harness = Harness(crossing)
    m = harness.m
    field, to_host = _CHANNELS[channel]
    source, sink = ("", "host_") if to_host else ("host_", "")
    ticks = {"": crossing.unit_tick, "host_": crossing.host_tick}
    since_reset, data = Signal(range(_RESET + 1)), harness.free("data", _BITS)
    m.d.sync += since_reset.eq(since_reset + (since_reset != _RESET))
    _drive(
        harness,
        crossing,
        {
            "host_clk": ClockSignal(),
            f"{source}axi_{channel}valid": harness.free("wish") & (since_reset == _RESET),
            f"{source}axi_{field}": data,
            f"{sink}axi_{channel}ready": harness.free("ready"),
        },
    )
    which = harness.chosen("item_of_interest", _NUMBER_BITS)
    entered, left, item = Signal(_NUMBER_BITS), Signal(_NUMBER_BITS), Signal(_BITS)
    moves = {side: Signal(name=f"moves_{side or 'unit'}") for side in ticks}
    for side, tick in ticks.items():
        valid, ready = (getattr(crossing, f"{side}axi_{channel}{name}") for name in ("valid", "ready"))
        m.d.comb += moves[side].eq(tick & valid & ready)
    m.d.sync += [entered.eq(entered + moves[source]), left.eq(left + moves[sink])]
    with m.If(moves[source] & (entered == which)):
        m.d.sync += item.eq(data)
    valid, received = getattr(crossing, f"{sink}axi_{channel}valid"), getattr(crossing, f"{sink}axi_{field}")
    harness.claim("nothing leaves that did not enter", ~valid | (entered != left))
    harness.claim("items leave in order, unchanged", ~valid | (left != which) | (received == item))
    waits = harness.past(valid & ~moves[sink])
    harness.claim("an item stays until it is taken", ~waits | (valid & (received == harness.past(received))))
    harness.cover("four inside, and one leaves", moves[sink] & ((entered - left)[:_NUMBER_BITS] == 4))
    return harness


def _drive(harness: Harness, crossing: _TwoClocks, values: dict[str, Value]) -> None:
    """Inputs that are not named are 0, but for the ticks."""
    for name in [*harness.inputs]:
        if name.startswith(("axi_", "host_axi_", "host_clk", "host_rst")):
            harness.drive(getattr(crossing, name), values.get(name, 0))


PROOFS = tuple(
    Proof(
        name=f"crossing.{channel}",
        invariants=(8,),
        says=f"Every item of the {channel.upper()} channel crosses once, in order and unchanged, however the edges of "
        "the two clocks fall.",
        harness=partial(_channel, channel=channel),
        sizes={"any": preset("small")},
        depth=20,
        quick=channel == "b",
    )
    for channel in _CHANNELS
)
