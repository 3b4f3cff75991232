"""In the place of the trigger: makes the chunks that the tracker counts live."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from t3hdl.common.broadcast import control_pulses
from t3hdl.interface.layouts import ConfigWrite, SlotLoad

from . import gemm
from .rounds import Seed
from .traffic import CONTEXT


class ChunkLoader(wiring.Component):
    """Loads the three chunks that the round's GPU tracks, after each arm: position p of the ring's order to slot p - 1.

    Members
    -------
    seed : In : of the round.
    config_valid, config : In : configuration writes.
    load_valid, load : Out : to the tracker.
    """

    def __init__(self) -> None:
        super().__init__({
            "seed": In(Seed), "config_valid": In(1), "config": In(ConfigWrite),
            "load_valid": Out(1), "load": Out(SlotLoad),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """A position per cycle, the last one first."""
        m = Module()
        place, chunk = Signal(range(gemm.CHUNKS)), Signal(range(gemm.CHUNKS))
        with m.If(control_pulses(m, self.config_valid, self.config).arm):
            m.d.sync += place.eq(gemm.CHUNKS - 1)
        with m.Elif(place != 0):
            m.d.sync += place.eq(place - 1)
        first = Cat(0, chunk)
        fields: dict[str, Any] = {
            "valid": 1, "slot": place - 1, "descriptor": place, "context": CONTEXT, "epoch": self.seed.epoch,
            "row0": first, "row1": first + gemm.CHUNK_TILE_ROWS, "col0": 0, "col1": gemm.TILE_COLUMNS,
            "addends": gemm.ADDENDS, "expected": Array(gemm.chunk_updates())[chunk],
        }  # fmt: skip
        m.d.comb += [chunk.eq(place + self.seed.gpu + 1), self.load_valid.eq(place != 0)]
        m.d.comb += [self.load[name].eq(value) for name, value in fields.items()]
        return m
