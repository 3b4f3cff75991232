"""The tracker does in every cycle what docs/hardware/tracker.md says."""

from typing import Any

from amaranth.hdl import Cat, Mux, Value
from amaranth.lib.wiring import Out
from t3hdl.common.broadcast import control_pulses, written
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import NEVER
from t3hdl.tracker.tracker import Tracker

from ...models.naive_state import Miter
from ...models.naive_tracker import NaiveTracker
from ...prover.harness import Harness
from ...prover.proof import Proof


def rules_of_neighbours(harness: Harness, dut: Any, config: T3Config) -> None:
    """What ControlRegisters, trigger and token network promise a tracker."""
    control = control_pulses(harness.m, dut.config_valid, dut.config)
    debug_read = written(dut.config_valid, dut.config, regs.DEBUG_SELECT)
    pulses = (control.arm, control.disarm, control.abort, control.quiesce, control.resume)
    harness.assume("one action per CONTROL write", sum(pulses) <= 1)
    requests = control.arm | control.abort | debug_read
    free = dut.init_done & ~dut.maintenance & ~dut.abort_busy
    harness.assume("the tracker's requests come one at a time", ~requests | free)
    profile = dut.config.address[9:] == regs.PROFILE >> 9
    exists = (dut.config.address[:3] == 0) & (dut.config.address[3:7] < config.wavefronts)
    harness.assume("only registers that exist are written", ~(dut.config_valid & profile) | exists)
    harness.assume("a chunk has a descriptor that exists", ~dut.load_valid | (dut.load.descriptor < config.descriptors))
    own = [
        ~port.valid | (((tile.row ^ tile.col ^ tile.wf) & (config.tracker_banks - 1)) == bank)
        for bank, port in enumerate(dut.token)
        for tile in (port.payload,)
    ]
    harness.assume("tokens go to their bank", Cat(own).all())
    harness.assume("now is far from its end", dut.now <= NEVER - config.drain_cycles)


def outputs(component: Any) -> dict[str, Value]:
    """The outputs of a tracker by name, those with a valid as 0 while it is 0."""
    named = {
        "__".join(map(str, path)): Value.cast(value)
        for path, member, value in component.signature.flatten(component)
        if member.flow == Out and path[0] not in ("idle", "wake_at")
    }
    for name, value in named.items():
        if f"{name}_valid" in named:
            named[name] = Mux(named[f"{name}_valid"], value, 0)
    named.pop("poison_slot")
    return named


def compared(config: T3Config) -> tuple[Harness, NaiveTracker]:
    """Both trackers with the same inputs, every output compared in every cycle."""
    dut, naive = Tracker(config=config), NaiveTracker(config)
    harness = Harness(dut)
    harness.m.submodules.naive = naive
    for path, member, value in dut.signature.flatten(dut):
        if member.flow != Out:
            twin: Any = naive
            for step in path:
                twin = getattr(twin, step) if isinstance(step, str) else twin[step]
            harness.m.d.comb += Value.cast(twin).eq(Value.cast(value))
    rules_of_neighbours(harness, dut, config)
    same = outputs(naive)
    for name, value in outputs(dut).items():
        harness.claim(f"{name} as the contract says", value == same[name])
    harness.cover("a tile is done", dut.tile_done_valid)
    harness.cover("a chunk is done that has overflowed", dut.chunk_done_valid & dut.chunk_done.overflowed)
    harness.cover("a sweep frees an entry", dut.maintenance & (harness.past(dut.entries) > dut.entries))
    return harness, naive


def _as_naive(config: T3Config) -> Harness:
    harness, naive = compared(config)
    for name, condition in Miter(harness, naive, config).claims():
        harness.claim(name, condition)
    return harness


_TINY = preset(
    "small", tracker_sets=2, tracker_banks=1, tracker_ways=1, row_index_bits=1, chunk_window=2, descriptors=2,
    event_queue=3, tile_count_bits=4, chunk_count_bits=8, wavefronts=1,
)  # fmt: skip
_TWO_BANKS = preset("small", chunk_window=2, descriptors=2, event_queue=3, tile_count_bits=4, chunk_count_bits=8)
_FOUR_BANKS = preset(
    "small", tracker_sets=16, tracker_banks=4, tracker_ways=1, row_index_bits=2, chunk_window=2, descriptors=2,
    event_queue=3, tile_count_bits=4, chunk_count_bits=8, wavefronts=1, blocks=16,
)  # fmt: skip

PROOFS = (
    Proof(
        name="tracker.as-naive",
        invariants=(1, 3, 4),
        says="In every cycle every output is that of the naive tracker, which is written from the contract alone.",
        harness=_as_naive,
        sizes={"1 bank, 1 way": _TINY, "2 banks, 2 ways": _TWO_BANKS, "4 banks, 1 way": _FOUR_BANKS},
        method="induction",
        depth=1,
        cover_depth=14,
        quick=False,
        limit_s=1200,
    ),
)
