"""After an abort no token of the context is left in token queues, network and banks within ``drain_cycles``.

Three proofs say how often each place passes a token on (``token-network.leaf-keeps-moving``, ``root-keeps-moving``,
``tracker-bank.keeps-moving``), and docs/hardware/tracker.md adds that up. Here the parts are linked, and full.
"""

import random

import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.sim import Simulator
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.slice.token_queue import TokenQueue
from t3hdl.token_network.network import TokenNetwork
from t3hdl.tracker.tracker import Tracker

ABORTED = 1


class Path:
    """Token queues, network and tracker; ``arrives``: a token of the aborted context comes to a bank."""

    def __init__(self, config: T3Config) -> None:
        self.config, self.module = config, Module()
        m = self.module
        self.queues = [TokenQueue(depth=config.token_queue) for _ in range(config.slices)]
        self.network, self.tracker = TokenNetwork(config=config), Tracker(config=config)
        m.submodules.network, m.submodules.tracker = self.network, self.tracker
        for i, queue in enumerate(self.queues):
            m.submodules[f"queue_{i}"] = queue
            wiring.connect(m, queue.o, self.network.token_in[i])
        for source, sink in zip(self.network.token_out, self.tracker.token, strict=True):
            wiring.connect(m, source, sink)
        self.arrives = Signal()
        m.d.comb += self.arrives.eq(
            Cat(port.valid & port.ready & (port.payload.context == ABORTED) for port in self.network.token_out).any()
        )


def aborted_when_full(config: T3Config, seed: int) -> tuple[int, bool]:
    """Cycles from an abort, with every place full, until the last token of the context has come to a bank; and whether
    one was not dropped."""
    path, rng, last, unmatched = Path(config), random.Random(seed), 0, False
    tracker = path.tracker

    async def configure(ctx, address: int, value: int) -> None:
        ctx.set(tracker.config_valid, 1)
        ctx.set(tracker.config.address, address)
        ctx.set(tracker.config.data, value)
        await ctx.tick()
        ctx.set(tracker.config_valid, 0)

    def tile(i: int) -> dict[str, int]:
        """All slices but the last one send to bank 0; that one sees to it that all others have turns to take."""
        busy = i == config.slices - 1 and config.tracker_banks > 1
        bank, wf = (rng.randrange(1, config.tracker_banks), rng.randrange(2)) if busy else (0, 0)
        row, low = rng.randrange(2000) + 2000 * wf, config.tracker_banks - 1
        return {"row": row, "col": (rng.randrange(4000) & ~low) | (row ^ wf ^ bank) & low, "wf": wf}

    async def bench(ctx) -> None:
        nonlocal last, unmatched
        while not ctx.get(tracker.init_done):
            await ctx.tick()
        # Every token becomes an event: a line completes a tile of wavefront 0, and one of wavefront 1 finds no entry.
        await configure(ctx, regs.PROFILE, 1)
        await configure(ctx, regs.PROFILE + 8, 200)
        chunk = {"valid": 1, "col1": 4000, "addends": 1, "expected": 60000}
        for slot, (context, row0) in enumerate(((0, 0), (ABORTED, 0), (0, 2000))):
            where = {"row0": row0, "row1": row0 + 2000, "slot": slot, "descriptor": slot, "context": context}
            ctx.set(tracker.load, chunk | where)
            ctx.set(tracker.load_valid, 1)
            await ctx.tick()
        ctx.set(tracker.load_valid, 0)
        fill = 2 * config.drain_cycles
        for cycle in range(fill + config.drain_cycles + 100):
            for i, queue in enumerate(path.queues):
                # The youngest token of a queue, which passes one on in so many cycles: dropping one takes no turn.
                recent = fill - config.slices * config.drain_turns <= cycle < fill
                aborted = recent and i == seed % max(1, config.slices - 1)
                ctx.set(queue.tile, tile(i) | {"context": ABORTED * aborted})
                ctx.set(queue.push, ctx.get(queue.level) < config.token_queue)
            ctx.set(tracker.now, cycle)
            if cycle == fill:
                control = regs.Control.const({"abort": 1, "context": ABORTED}).as_bits()
                ctx.set(tracker.config_valid, 1)
                ctx.set(tracker.config.address, regs.CONTROL)
                ctx.set(tracker.config.data, control)
            await ctx.tick()
            ctx.set(tracker.config_valid, 0)
            if cycle > fill and ctx.get(path.arrives):
                last = cycle - fill
        unmatched = bool(ctx.get(tracker.unmatched))

    simulator = Simulator(path.module)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return last, unmatched


TIGHT = preset("small", node_inputs=4, token_queue=16)
"""Where the bound is less than twice what happens: three slices of four wait for one bank, which has a third of the
turns."""


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("config", [
    TIGHT,
    preset("small", token_queue=4),
    preset("small", slices=4, node_inputs=4, token_queue=8, tracker_banks=1),
    preset("small", slices=4, node_inputs=4, tracker_banks=4, tracker_sets=16, row_index_bits=2, blocks=32),
], ids=["tight", "2 banks", "8 tokens", "4 banks"])  # fmt: skip
def test_nothing_is_left_after_drain_cycles(config, seed):
    last, unmatched = aborted_when_full(config, seed)
    assert 0 < last < config.drain_cycles
    assert not unmatched
    if config is TIGHT:
        assert last >= config.drain_cycles / 2


def test_half_of_them_would_be_too_few(monkeypatch):
    """Seeded: a bound that forgets half of the turns, so a late token meets no live chunk and is no longer dropped."""
    enough = T3Config.drain_cycles.fget
    monkeypatch.setattr(T3Config, "drain_cycles", property(lambda config: enough(config) // 2))
    assert any(aborted_when_full(TIGHT, seed)[1] for seed in range(3))
