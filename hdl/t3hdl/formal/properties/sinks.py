"""The tracker takes every token in a few cycles, whatever the trigger does: the end of the way of an update."""

from amaranth.hdl import Signal

from ...config import T3Config, preset
from ...tracking.tracker import Tracker
from ..harness import Harness
from ..proof import Proof


def _takes_tokens(config: T3Config) -> Harness:
    """Loads and configuration are free: any at any time. Only a sweep of the tables stops the banks.

    A full bank takes a token when an event leaves it, which is its turn after those of the other banks, and one cycle
    later shows that it is ready.
    """
    harness = Harness(Tracker(config=config))
    m, dut = harness.m, harness.dut
    limit = config.tracker_banks + 1
    sweeps = ~dut.init_done | dut.maintenance
    for number, token in enumerate(dut.token):
        waited = Signal(range(limit + 2), name=f"waited_{number}")
        waits = token.valid & ~token.ready & ~sweeps
        with m.If(~waits):
            m.d.sync += waited.eq(0)
        with m.Elif(waited <= limit):
            m.d.sync += waited.eq(waited + 1)
        harness.claim(f"bank {number} takes a token within {limit} cycles", waited <= limit)
        harness.cover(f"a token waits for bank {number}", waited == 1)
    return harness


_LITTLE = {
    "contexts": 1, "tracker_sets": 4, "tracker_ways": 1, "descriptors": 2, "chunk_window": 2, "wavefronts": 1,
    "tile_count_bits": 4, "chunk_count_bits": 8, "event_queue": 2,
}  # fmt: skip

PROOFS = (
    Proof(
        name="tracker.sinks",
        invariants=(10,),
        says="Unless it sweeps its tables, a bank takes a token that waits within tracker_banks + 1 cycles, whatever "
        "trigger and driver do.",
        harness=_takes_tokens,
        sizes={"2 banks": preset("small", **_LITTLE), "1 bank": preset("small", tracker_banks=1, **_LITTLE)},
        method="induction",
        depth=5,
        cover_depth=16,
        quick=False,
    ),
)
