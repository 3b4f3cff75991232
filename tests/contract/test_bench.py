"""The bench itself: what breaks a rule for all parts is found."""

from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import Component, In, Out
from t3hdl.interface.layouts import NEVER, TIME_BITS

from tests.contract.bench import bench_around


class PulseCounter(Component):
    """Counts pulses; ``follows``: an input that an output shows at once; ``drowsy``: it says idle while it
    counts; ``keeps``: a reset leaves the count.
    """

    def __init__(self, *, follows: str = "", drowsy: bool = False, keeps: bool = False) -> None:
        self._follows, self._drowsy, self._keeps = follows, drowsy, keeps
        super().__init__({
            "go_valid": In(1), "level": In(1), "now": In(TIME_BITS), "shown": Out(4),
            "idle": Out(1), "wake_at": Out(TIME_BITS),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """A counter of four bits."""
        m = Module()
        count, runs = Signal(4, reset_less=self._keeps), Signal()
        m.d.sync += [runs.eq(self.go_valid), count.eq(count + runs)]
        m.d.comb += [
            self.shown.eq(count + getattr(self, self._follows) if self._follows else count),
            self.idle.eq(1 if self._drowsy else ~runs),
            self.wake_at.eq(NEVER),
        ]
        return m


def play(component: PulseCounter) -> None:
    bench = bench_around(component)
    bench.step(2)
    bench.step(3, go_valid=1)
    bench.step(3, level=1)
    bench.step(3)
    assert bench["shown"] == 1 and bench.idle_checks > 3


def test_a_register_that_a_reset_leaves_is_seen():
    for keeps in (False, True):
        bench = bench_around(PulseCounter(keeps=keeps))
        bench.step(3, go_valid=1)
        bench.reset()
        assert bench["shown"] == keeps


def test_a_moore_machine_passes():
    play(PulseCounter())


@pytest.mark.parametrize("port", ["go_valid", "level"])
def test_an_output_that_follows_an_input_is_found(port):
    with pytest.raises(AssertionError, match="rule 1"):
        play(PulseCounter(follows=port))


def test_an_idle_that_promises_too_much_is_found():
    with pytest.raises(AssertionError, match="rule 5"):
        play(PulseCounter(drowsy=True))
