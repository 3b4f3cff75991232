"""The AXI4-Lite port behind a register file that loses an answer: SLVERR, and no port that hangs."""

from typing import Any

import pytest
from amaranth.sim import Simulator
from t3hdl.config import preset
from t3hdl.registers.axi import OKAY, SLVERR, AxiLitePort


@pytest.mark.parametrize("lost", [True, False])
def test_a_read_whose_answer_is_lost_is_an_error(lost: bool) -> None:
    """And the next one is as good as ever."""
    port: Any = AxiLitePort(config=preset("small"))
    seen: list[tuple[int, int]] = []

    async def read(ctx: Any, answers: bool) -> None:
        ctx.set(port.axi_rready, 1)
        ctx.set(port.axi_arvalid, 1)
        await ctx.tick()
        ctx.set(port.axi_arvalid, 0)
        for _ in range(10):
            asked = ctx.get(port.bus_valid) and ctx.get(port.bus_ready)
            await ctx.tick()
            ctx.set(port.response_valid, asked and answers)
            ctx.set(port.bus_ready, not (asked and answers))
            if ctx.get(port.axi_rvalid):
                seen.append((ctx.get(port.axi_rresp), ctx.get(port.axi_rdata)))

    async def drive(ctx: Any) -> None:
        ctx.set(port.bus_ready, 1)
        ctx.set(port.response_data, 7)
        await read(ctx, not lost)
        await read(ctx, True)

    simulator = Simulator(port)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    assert seen == [(SLVERR, 0) if lost else (OKAY, 7), (OKAY, 7)]
