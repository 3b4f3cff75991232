"""The tracker's profile: with ``protect`` a register may be written any number of times, and a wrong mark shows."""

from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator
from t3hdl.config import preset
from t3hdl.interface import register_map as regs
from t3hdl.tracker.tile_profile import TileProfile

WRITES = [(0, 4), (0, 4), (0, 0), (17, 3), (0, 5), (63, 1), (17, 3), (63, 2), (63, 2)]
"""Numbers of registers, and lines."""


@pytest.mark.parametrize("protect", [False, True])
def test_writing_again_is_no_damage(protect: bool) -> None:
    part = TileProfile(config=preset("small", protect=protect))
    module = Module()
    module.domains.sync = ClockDomain()
    module.submodules.part = part
    expected: dict[int, int] = {}

    async def bench(context: Any) -> None:
        for number, lines in WRITES:
            context.set(part.config_valid, 1)
            context.set(part.config.address, regs.PROFILE + regs.PROFILE_STRIDE * number)
            context.set(part.config.data, lines)
            await context.tick()
            context.set(part.config_valid, 0)
            expected[number] = lines
            for name in (0, 1, 17, 63):
                context.set(part.name[0], name)
                context.set(part.read[0], 1)
                await context.tick()
                found = part.found[0]
                seen = [context.get(value) for value in (found.lines, found.corrected, found.uncorrectable)]
                assert seen == [expected.get(name, 0), 0, 0], (number, name)
                assert context.get(part.damaged) == 0, number
            context.set(part.read[0], 0)

    simulator = Simulator(module)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
