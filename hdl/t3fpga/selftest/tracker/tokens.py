"""The updates of the GEMM as tokens, as the slices would give them, for a tracker that stands alone."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from t3hdl.config import T3Config
from t3hdl.interface.layouts import Token, tracker_bank

from .. import gemm
from ..rounds import Seed
from ..traffic import CONTEXT
from .walk import Pace, Walk, stride


class TokenTraffic(wiring.Component):
    """A token for each local and each incoming update of a round, in the order and at the pace that the seed says.

    Members
    -------
    seed, noise : In : of the round; 18 bits for the pace.
    play, drop : In(1) : starts; ``drop``: the first incoming update is lost on the way.
    token : Out(stream(Token)).array(banks) : to the tracker.
    taken, address : Out : a token was taken; a line of its tile.
    busy : Out(1) : not every token was taken.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "seed": In(Seed), "noise": In(18), "play": In(1), "drop": In(1),
            "token": Out(stream.Signature(Token)).array(config.tracker_banks),
            "taken": Out(1), "address": Out(gemm.ADDRESS_BITS), "busy": Out(1),
        })  # fmt: skip
        self._config = config

    def elaborate(self, platform: Any) -> Module:
        """Two walks; the token's register takes from one or the other."""
        m = Module()
        gpu, banks = self.seed.gpu, self._config.tracker_banks
        walks, paces = [Walk() for _ in range(2)], [Pace() for _ in range(2)]
        m.submodules.local, m.submodules.incoming = walks
        m.submodules.local_pace, m.submodules.incoming_pace = paces
        for side, (walk, pace) in enumerate(zip(walks, paces, strict=True)):
            step = (self.seed.local_step, self.seed.incoming_step)[side]
            m.d.comb += [
                pace.noise.eq(self.noise[11 * side :]),
                walk.start.eq(self.play),
                walk.first.eq(Cat(0, 0, 0, 0, 0, 0, (gpu + 1 + side)[:2])),
                walk.step.eq(stride(self.seed.plain[side], step)),
                walk.go.eq(pace.go),
            ]
        valid, address, free, turn, dropping = Signal(), Signal(gemm.ADDRESS_BITS), Signal(), Signal(), Signal()
        chosen, tracked = Array(walk.o.payload for walk in walks)[turn], Signal()
        m.d.comb += [
            turn.eq(walks[1].o.valid & (~walks[0].o.valid | self.noise[7])),
            tracked.eq(gemm.in_output(chosen) & (gemm.position(chosen, gpu) != 0)),
            walks[0].o.ready.eq(free & ~turn),
            walks[1].o.ready.eq(free & turn),
            self.busy.eq(valid | walks[0].busy | walks[1].busy),
        ]
        with m.If(free):
            m.d.sync += [
                valid.eq(Mux(turn, tracked & ~dropping, walks[0].o.valid & tracked)),
                address.eq(chosen),
            ]
        with m.If(self.play):
            m.d.sync += dropping.eq(self.drop)
        with m.Elif(free & turn & tracked):
            m.d.sync += dropping.eq(0)
        wf = gemm.wavefront(address, self._config)
        bank = tracker_bank(gemm.tile_row(address), gemm.tile_col(address), wf, banks)
        ready = Array(port.ready for port in self.token)[bank]
        m.d.comb += [free.eq(~valid | ready), self.taken.eq(valid & ready), self.address.eq(address)]
        for number, port in enumerate(self.token):
            fields = {
                "context": CONTEXT, "epoch": self.seed.epoch, "row": gemm.tile_row(address),
                "col": gemm.tile_col(address), "wf": wf,
                "right": gemm.right(address), "bottom": gemm.bottom(address), "n": 1,
            }  # fmt: skip
            m.d.comb += [port.payload[name].eq(value) for name, value in fields.items()]
            m.d.comb += port.valid.eq(valid & (bank == number))
        return m
