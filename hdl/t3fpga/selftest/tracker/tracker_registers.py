"""Registers for a tracker, and a trigger if there is one, without a unit: writes go to both, some numbers are read."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ConfigWrite, ContextStatus, Stuck, TileTwice

from ..sequencer import BusRequest


class TrackerRegisters(wiring.Component):
    """What the programme of a round needs of :class:`~t3hdl.registers.registers.ControlRegisters`, where it has them.

    Members
    -------
    request : In(stream(BusRequest)), response_valid, response_error, response_data : Out : an access, and its answer.
    config_valid, config : Out : configuration writes.
    everything else : In : as in ControlRegisters. Without a trigger ``triggers`` counts finished chunks, and what else
        would be the trigger's is 0.
    """

    def __init__(self) -> None:
        super().__init__({
            "request": In(stream.Signature(BusRequest)),
            "response_valid": Out(1), "response_error": Out(1), "response_data": Out(64),
            "config_valid": Out(1), "config": Out(ConfigWrite),
            "init_done": In(1), "maintenance": In(1), "abort_busy": In(1),
            "unmatched": In(1), "over_count": In(1), "over_total": In(1),
            "updates": In(48), "tiles": In(32), "triggers": In(32), "done_mask": In(64),
            "tile_twice": In(TileTwice), "too_large": In(1), "stuck": In(Stuck), "context": In(ContextStatus),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """Answers a read after one cycle and a write after two: it has then reached the parts."""
        m = Module()
        request = self.request.payload
        m.d.comb += [self.request.ready.eq(~self.config_valid), self.config.address.eq(request.address)]
        m.d.comb += self.config.data.eq(request.data)
        m.d.sync += [
            self.config_valid.eq(self.request.valid & self.request.ready & request.write),
            self.response_valid.eq((self.request.valid & self.request.ready & ~request.write) | self.config_valid),
        ]
        status = {name: getattr(self, name) for name in ("init_done", "maintenance", "abort_busy")}
        errors = {name: getattr(self, name) for name in ("unmatched", "over_count", "over_total", "too_large")}
        errors["tile_twice"] = self.tile_twice.valid
        values = {
            regs.STATUS: _placed(regs.Status, status), regs.ERRORS: _placed(regs.Errors, errors),
            regs.UPDATES: self.updates, regs.TILES: self.tiles, regs.TRIGGERS: self.triggers,
            regs.DONE_MASK: self.done_mask, regs.STUCK: self.stuck, regs.CONTEXT: self.context,
        }  # fmt: skip
        with m.Switch(request.address):
            for address, value in values.items():
                with m.Case(address):
                    m.d.sync += self.response_data.eq(value)
        return m


def _placed(layout: Any, fields: dict[str, Any]) -> Any:
    """A register with these one-bit fields."""
    result: Any = 0
    for name, value in fields.items():
        result = result | (value << layout[name].offset)
    return result
