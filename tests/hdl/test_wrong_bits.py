"""With ``protect`` every part around tracker and trigger tells a wrong bit of any register, and nothing without one."""

import random
from typing import Any

import pytest
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.sim import Simulator
from t3hdl.config import preset
from t3hdl.export.single_event_upsets import Stored, Upsettable, stored_words
from t3hdl.export.verilog import PARTS
from t3hdl.interface import register_map as regs

PARTS_AROUND = ("slice", "matcher", "leaf", "root", "registers", "nmc")
CONFIG = preset("small", protect=True, descriptors=4, token_queue=2)
STRUCK = 40
"""Registers of each part that are struck."""


async def is_told(ctx: Any, part: Any) -> bool:
    """Whether the part says now that a bit was wrong; the registers say it in ERRORS."""
    if not hasattr(part, "bus_valid"):
        return bool(ctx.get(part.uncorrectable))
    ctx.set(part.bus_address, regs.ERRORS)
    ctx.set(part.bus_valid, 1)
    await ctx.tick()
    ctx.set(part.bus_valid, 0)
    answer = ctx.get(part.response_data)
    await ctx.tick()
    return bool(regs.Errors.from_bits(answer & (1 << regs.Errors.size) - 1)["uncorrectable"])


@pytest.mark.parametrize("name", PARTS_AROUND)
def test_a_wrong_bit_of_any_register_is_told(name: str) -> None:
    """A part at rest that is hit is not idle then, and says so two cycles later; one that is not hit says nothing."""
    rng = random.Random(f"wrong bits {name}")
    part: Any = PARTS[name](CONFIG)
    top, m, reset = Upsettable(part), Module(), Signal()
    m.submodules.top = ResetInserter(reset)(top)
    words = [word for word in stored_words(PARTS[name](CONFIG)) if not word.checked]
    missed: list[tuple[Stored | None, str]] = []

    async def strike(ctx: Any, word: Stored | None) -> None:
        await ctx.tick().repeat(rng.randrange(1, 4))
        ctx.set(top.upset_word, word.number if word else 0)
        ctx.set(top.upset_bit, rng.randrange(word.bits) if word else 0)
        await ctx.tick()
        ctx.set(top.upset_word, 0)
        if word and ctx.get(part.idle):
            missed.append((word, "it may be skipped"))
        await ctx.tick()
        if await is_told(ctx, part) is (word is None):
            missed.append((word, "it is not told" if word else "it is told without a cause"))
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)

    async def drive(ctx: Any) -> None:
        await strike(ctx, None)
        for word in rng.sample(words, min(STRUCK, len(words))):
            await strike(ctx, word)

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    assert words and not missed, missed
