"""Waves show what a run does: its transfers, at its times, and the same for RTL and golden model."""

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from t3sim.hardware.abi import words_of
from t3sim.run.events import GpuEvents
from t3sim.run.simulate import simulate
from t3sim.waves.compare import first_difference
from t3sim.waves.record import Window, trigger_cycle
from t3sim.waves.selection import part_instances
from t3sim.waves.signals import NOW, part_signals

from .recorded import ALL, WHOLE, VcdFile, request, waves


@cache
def events(gpu: int = 0) -> GpuEvents:
    found = simulate(request(events=True)).events
    assert found is not None
    return found.gpus[gpu]


def test_times_ascend_and_every_clock_has_its_edge():
    of = waves(window=Window(first=700, last=900))
    dump = VcdFile(of)
    assert dump.times == sorted(set(dump.times))
    assert [time for time, level in dump.changes["clk"] if level == 1] == [
        of.picoseconds(cycle) for cycle in range(700, 900)
    ]
    now = [value for _, (value,) in dump.clocks(NOW)]
    assert now == list(range(700 + of.epoch, 900 + of.epoch))


def test_the_triggers_command_is_taken_when_the_run_says():
    of = waves()
    dump = VcdFile(of)
    taken = [time for time, pair in dump.clocks("trigger.command.valid", "trigger.command.ready") if pair == (1, 1)]
    assert taken and taken == [of.picoseconds(trigger.cycle) for trigger in events().triggers]
    assert trigger_cycle(request(), 0, 1, lambda progress: None) == events().triggers[0].cycle


def test_what_the_hardware_counts_is_what_the_waves_show():
    whole = simulate(request()).record
    assert whole.tracker is not None
    shown: Counter[str] = Counter()
    for gpu in range(4):
        dump = VcdFile(waves(parts="tracker", gpu=gpu))
        shown["tiles"] += sum(value == 1 for _, (value,) in dump.clocks("tracker.tile_done_valid"))
        for bank in range(2):
            names = [f"tracker.token_{bank}.{name}" for name in ("valid", "ready", "payload.n")]
            # A token carries n + 1 lines of a tile.
            shown["updates"] += sum(int(n) for _, (valid, ready, n) in dump.clocks(*names) if valid and ready)
    assert shown["tiles"] == whole.tracker.tiles
    assert shown["updates"] == whole.tracker.updates


def test_a_tiles_pulse_leaves_the_tracker_in_the_clock_in_which_it_reaches_the_trigger():
    dump = VcdFile(waves())
    left, came = dump.changes["tracker.tile_done_valid"], dump.changes["trigger.tile_done_valid"]
    assert left == came and len(left) > 2
    assert dump.changes["tracker.tile_done.row"] == dump.changes["trigger.tile_done.row"]


def test_a_payload_means_something_only_with_its_valid():
    dump = VcdFile(waves())
    for valid, payload in dump.clocks("slice_0.dram.valid", "slice_0.dram.payload.line"):
        assert (payload[1] == "x") == (payload[0] == 0), valid


def test_the_rtl_has_the_waves_of_the_golden_model():
    rtl, golden = waves("rtl"), waves("golden")
    assert len(rtl.parts) == 12 and sum(len(part.changes) for part in rtl.parts) > 100_000
    assert first_difference(rtl, golden) is None and first_difference(golden, rtl) is None


def test_a_difference_is_found_where_it_begins():
    golden = waves(parts="tracker")
    (part,) = golden.parts
    at = next(i for i, (cycle, _, value) in enumerate(part.changes) if cycle > 1000 and value == 1)
    cycle, number, _ = part.changes[at]
    changes = [*part.changes]
    changes[at] = (cycle, number, 0)
    found = first_difference(replace(golden, parts=[replace(part, changes=changes)]), golden)
    assert found is not None and (found.cycle, found.values) == (cycle, ("0x0", "0x1"))
    assert found.signal == ".".join(("t3", "gpu0", "tracker", *part.signals[number].path))


def test_runs_of_different_length_differ():
    golden = waves(parts="tracker")
    shorter = replace(golden, window=replace(golden.window, last=golden.window.last - 1))
    found = first_difference(golden, shorter)
    assert found is not None and (found.cycle, found.signal) == (shorter.window.last, "the end of the run")


def test_a_window_shows_what_the_whole_run_shows_there():
    window = Window(first=1400, last=1500)
    part, whole = (VcdFile(waves(window=of, parts="tracker,trigger,slice.1")) for of in (window, WHOLE))
    for name in ["tracker.entries", *(name for name in part.changes if name.endswith(("valid", "ready", "now")))]:
        inside = [item for item in whole.clocks(name) if 1_400_000 <= item[0] < 1_500_000]
        assert list(part.clocks(name)) == inside, name


def test_threads_change_nothing():
    assert waves(threads=1, parts="trigger").parts == waves(threads=2, parts="trigger").parts


def test_a_run_that_is_watched_goes_as_any_other():
    """The window ends with the run, at the same clock as without a window."""
    assert waves().window.last == waves(window=Window(first=8000, last=100_000)).window.last


@pytest.mark.parametrize("name", ALL.split(","))
def test_every_bit_of_a_parts_ports_is_shown_once(name):
    config = request().machine.hardware.config()
    ports = words_of(config, name)
    found = {
        (is_input, place): 0
        for is_input, side in ((True, ports.inputs), (False, ports.outputs))
        for place in side.values()
    }
    for signal in part_signals(config, name).signals:
        bits = (1 << signal.bits) - 1 << signal.offset
        assert not found[signal.is_input, signal.place] & bits
        found[signal.is_input, signal.place] |= bits
    found.pop((True, ports.inputs.get(NOW, (0, 0))), None)
    assert all(bits == (1 << width) - 1 for (_, (_, width)), bits in found.items())


@pytest.mark.parametrize("text", ["", "nmc", "registers", "slice.4", "slice.-1", "slice.", "tracker.1", "Tracker"])
def test_parts_that_the_unit_does_not_have_are_refused(text):
    with pytest.raises(ValueError, match=r"--parts must name parts of the unit \(slice.0 to slice.3, matcher, "):
        part_instances(text, request().machine.hardware.config())


def test_a_part_that_is_named_twice_is_refused():
    with pytest.raises(ValueError, match="each part once"):
        part_instances("slice,slice.2", request().machine.hardware.config())
