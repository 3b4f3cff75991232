"""The tracker takes every token in a few cycles, whatever the trigger does: the end of the way of an update."""

from amaranth.hdl import Mux, Signal
from amaranth.lib import data
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import EventKind
from t3hdl.tracker.bank import EventStage
from t3hdl.tracker.tracker import Tracker

from ..prover.harness import Harness
from ..prover.proof import Proof
from .tracker.tracker import rules_of_neighbours


def _takes_tokens(config: T3Config) -> Harness:
    """Loads and configuration are free: any at any time. Only a sweep of the tables stops the banks.

    A full bank takes a token when a tile leaves it, which is its turn after those of the other banks and of the lines
    without an entry, and one cycle later shows that it is ready.
    """
    harness = Harness(Tracker(config=config))
    m, dut = harness.m, harness.dut
    limit = config.drain_turns + 1
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


def _sweeps_end(config: T3Config) -> Harness:
    """A sweep waits until the banks' pipelines are empty, for which events must leave, then takes a cycle per row."""
    harness = Harness(Tracker(config=config))
    m, dut, inside = harness.m, harness.dut, harness.inside
    rules_of_neighbours(harness, dut, config)
    limit = _sweep_limit(config)
    swept = Signal(range(limit + 2))
    with m.If(~dut.maintenance):
        m.d.sync += swept.eq(0)
    with m.Elif(swept <= limit):
        m.d.sync += swept.eq(swept + 1)
    harness.claim(f"a sweep ends within {limit} cycles", swept <= limit)
    row, sweeping, reads_entry = (inside[f"maintenance.{name}"] for name in ("row", "sweeping", "reads_entry"))
    harness.claim("only maintenance walks", ~sweeping | dut.maintenance)
    harness.claim("maintenance comes after the tables are cleared", ~dut.maintenance | dut.init_done)
    harness.claim(
        "there is no row after the last one", row <= Mux(reads_entry & dut.init_done, 1, config.sets_per_bank)
    )
    harness.claim("a walk begins at the first row", sweeping | ~dut.init_done | (row == 0))
    for bank in range(config.tracker_banks):
        level, event_stage = (
            inside[f"bank_{bank}.events.level"],
            data.View(EventStage, inside[f"bank_{bank}.event_stage"]),
        )
        told = event_stage.valid & (event_stage.kind == EventKind.TILE)
        harness.claim(f"what bank {bank} tells has its place", level + told <= config.event_queue)
    harness.cover("a sweep ends", harness.past(dut.maintenance) & ~dut.maintenance)
    return harness


def _sweep_limit(config: T3Config) -> int:
    return config.sets_per_bank + 2 * config.drain_turns + 3


_LITTLE = {
    "contexts": 1, "tracker_sets": 4, "tracker_ways": 1, "descriptors": 2, "chunk_window": 2, "wavefronts": 1,
    "tile_count_bits": 4, "chunk_count_bits": 8, "event_queue": 3,
}  # fmt: skip
_ONE, _TWO = preset("small", tracker_banks=1, **_LITTLE), preset("small", **_LITTLE)

PROOFS = (
    Proof(
        name="tracker.sinks",
        invariants=(10,),
        says="Unless it sweeps its tables, a bank takes a token that waits within tracker_banks + 2 cycles, whatever "
        "trigger and driver do.",
        harness=_takes_tokens,
        sizes={"1 bank": _ONE, "2 banks": _TWO},
        method="induction",
        depth=7,
        cover_depth=16,
        quick=False,
    ),
    Proof(
        name="tracker.sweeps-end",
        invariants=(10,),
        says="A sweep, in which banks take nothing, ends within sets_per_bank + 2 x tracker_banks + 5 cycles.",
        harness=_sweeps_end,
        sizes={"1 bank": _ONE, "2 banks": _TWO},
        method="induction",
        depth=_sweep_limit(_TWO) + 1,
        cover_depth=16,
        quick=False,
    ),
)
