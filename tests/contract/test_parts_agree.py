"""Compiled RTL and golden model of every part agree on every output in every cycle, and keep the idle promise."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.words import pack
from t3sim.hardware.golden.backend import golden_hardware
from t3sim.hardware.rtl.backend import compiled_part

from tb.compare import SEED, compare
from tb.lockstep import Lockstep
from tb.stimulus.base import Stimulus
from tb.stimulus.parts import STIMULI
from tb.stimulus.tracker_chunks import TrackerTiles
from tb.stimulus.trigger_marks import TriggerMarks

CONFIGS = {
    "small": preset("small"),
    "paper": preset("paper"),
    # one of everything that may be one, odd counts, tiles counted when the memory has performed the update
    "narrow": preset(
        "small", slices=2, node_inputs=1, contexts=1, tracker_sets=1, tracker_ways=1, tracker_banks=1, row_index_bits=0,
        descriptors=5, chunk_window=3, blocks=1, tile_marks=128, wavefronts=1, tile_count_bits=4, chunk_count_bits=8,
        token_queue=2, event_queue=3, nmc_lanes=2, nmc_latency=2, count_on="performed",
    ),
    "wide": preset(
        "small", slices=16, node_inputs=16, ranges=4, contexts=16, tracker_sets=64, tracker_banks=8, tracker_ways=3,
        row_index_bits=3,
        descriptors=7, chunk_window=7, blocks=64, tile_marks=256, wavefronts=16, token_queue=5, event_queue=3,
        nmc_latency=8, count_on="performed",
    ),
    "protected": preset("small", protect=True),
}  # fmt: skip

QUICK = {
    "small": tuple(STIMULI),
    "narrow": ("slice", "matcher", "tracker", "trigger", "registers"),
    "protected": ("slice", "matcher", "leaf", "root", "tracker", "trigger", "registers", "nmc"),
}
"""Sizes and parts compared in ``make test`` (small) and ``make test-long``: tables of odd sizes, check bits."""

MAX_FIRST, MAX_DESCRIPTORS = ((1 << regs.Control[field].width) - 1 for field in ("first", "descriptors"))
"""The highest numbers that an arm can name."""

FAULTS = {"corrected", "uncorrectable", "poison_valid", "poison_slot"}
"""Outputs that stay 0 without faults."""


def run(config: T3Config, name: str, cycles: int, title: str) -> Lockstep:
    """Compare the backends of the part ``name``."""
    rtl, golden = compiled_part(config, name), golden_hardware(config)
    bench = compare({"rtl": rtl.part_type, "golden": golden.parts[name]}, name, config, cycles, title)
    rtl.free()
    golden.close()
    return bench


def check(config: T3Config, name: str, cycles: int, size: str) -> None:
    """Compare, and make sure that the stimulus reached every output and left cycles to skip."""
    bench = run(config, name, cycles, f"{name} of {size}, seed {SEED}")
    print(f"seed {SEED}: {bench.cycle} cycles, skipped {bench.skipped}")
    assert bench.seen == set(bench.outputs) - FAULTS, "the stimulus leaves these outputs 0 forever"
    assert min(bench.skipped.values()) > bench.cycle / 100


@pytest.mark.parametrize(
    ("size", "name"),
    [
        pytest.param(size, name, marks=[] if size == "small" else [pytest.mark.long])
        for size, names in QUICK.items()
        for name in names
    ],
)
def test_backends_agree(size, name):
    """In as many cycles as the benches of mutants have."""
    check(CONFIGS[size], name, 8000, size)


@contextmanager
def compared_under(stimulus: type[Stimulus], name: str) -> Iterator[Lockstep]:
    """The backends of ``name`` after traffic of its own, in which they agreed."""
    config = preset("small", tile_count_bits=4, chunk_count_bits=8)
    rtl, golden = compiled_part(config, name), golden_hardware(config)
    parts = {"rtl": rtl.part_type, "golden": golden.parts[name]}
    yield compare(parts, name, config, 5000, f"{stimulus.__name__}, seed {SEED}", stimulus)
    rtl.free()
    golden.close()


@pytest.mark.long
def test_backends_agree_on_high_counts():
    """As many tiles as bit 11 of TILES needs, in chunks that use the highest bit of their counters."""
    with compared_under(TrackerTiles, "tracker") as bench:
        assert bench.get("tiles") > 2048


def test_backends_agree_on_tiles_that_come_twice():
    """In chunks with as many tiles as their slots have marks."""
    with compared_under(TriggerMarks, "trigger") as bench:
        assert {"tile_twice", "poisoned"} <= bench.seen


@pytest.mark.long
@pytest.mark.parametrize(("lanes", "latency"), [(2, 8), (4, 3), (8, 2)])
def test_backends_agree_with_fewer_lanes(lanes, latency):
    """A line in eight, four and two beats: as many as the ALU has stages, or more."""
    config = preset("small", nmc_lanes=lanes, nmc_latency=latency)
    check(config, "nmc", 5000, f"{lanes} lanes")


@pytest.mark.slow  # compiles large parts
@pytest.mark.parametrize("name", STIMULI)
@pytest.mark.parametrize("size", CONFIGS)
def test_backends_agree_for_long(size, name):
    """Until every context of ``wide``, which has sixteen, had a job."""
    check(CONFIGS[size], name, 60000 if size == "wide" else 20000, size)


def test_a_window_of_descriptors_ends_at_the_last_one():
    """Any end that CONTROL can name: beyond the table lie other registers, CONTROL itself first."""
    config, name = CONFIGS["small"], "registers"
    rtl, golden = compiled_part(config, name), golden_hardware(config)
    bench = Lockstep({"rtl": rtl.part_type, "golden": golden.parts[name]}, title="ends of windows")
    bench.set("init_done", 1)
    good = set()
    for end in range(1, MAX_FIRST + MAX_DESCRIPTORS + 1):
        first = min(end - 1, MAX_FIRST)
        arm = pack(regs.Control, arm=1, first=first, descriptors=end - first)
        for port, value in {"valid": 1, "write": 1, "address": regs.CONTROL, "data": arm}.items():
            bench.set(f"bus_{port}", value)
        bench.step()
        good |= set() if bench.get("response_error") else {end}
        bench.set("bus_valid", 0)
        bench.step()
    assert good == set(range(1, config.descriptors + 1))
    rtl.free()
    golden.close()


def test_a_difference_is_found():
    """A token queue of another depth, and an ``idle`` that promises too much, both stop the comparison."""
    parts = {f"depth {depth}": golden_hardware(preset("small", token_queue=depth)).parts["slice"] for depth in (2, 4)}
    with pytest.raises(AssertionError, match=r"outputs of cycle \d+ differ\n.*depth 2.*depth 4"):
        compare(parts, "slice", preset("small"), 5000, "two depths")
    trigger = golden_hardware(preset("small")).parts["trigger"]
    outputs = trigger.words.outputs
    always_idle = {**outputs, "idle": outputs["init_done"]}
    liar = dataclasses.replace(trigger, words=dataclasses.replace(trigger.words, outputs=always_idle))
    with pytest.raises(AssertionError, match=r"golden \(lazy\)"):
        compare({"golden": liar}, "trigger", preset("small"), 5000, "false idle")
