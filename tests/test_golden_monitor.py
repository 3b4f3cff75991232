"""The golden OccupancyMonitor against hand-computed scenarios, one per statement of docs/hardware.md."""

import numpy as np
import pytest
from golden_bench import Bench, pack
from t3hdl.config import preset
from t3hdl.interface import register_map as registers
from t3hdl.interface.layouts import NEVER, ConfigWrite
from t3hdl.interface.signatures import monitor_signature
from t3sim.hardware.golden import monitor as golden

ARM = pack(ConfigWrite, address=registers.CONTROL, data=pack(registers.Control, arm=1, descriptors=1))
DISARM = pack(ConfigWrite, address=registers.CONTROL, data=pack(registers.Control, disarm=1))


def make(slices=4) -> Bench:
    config = preset("small", slices=slices, node_inputs=max(1, slices // 4))
    return Bench(golden, monitor_signature(config), golden.init_state(config))


def measure(bench, elapsed, served) -> None:
    """One first stage of `elapsed` cycles; `served` has the count of each slice."""
    bench.tick(config=ARM)
    bench.tick(elapsed - 1)
    bench.tick(tile_done_valid=1)
    bench.tick(0, tile_done_valid=0)
    for _ in range(4 + len(served) + 1):
        assert bench.get("chosen") == 0
        bench.tick(served=served[bench.get("select") % len(served)])


def outputs(bench) -> tuple[int, ...]:
    return tuple(bench.get(port) for port in ("measure", "threshold", "chosen", "select", "idle"))


def test_reset_state_is_complete():
    bench = make()
    fresh = bench.state.copy()
    bench.state[1:] = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, len(fresh) - 1)
    bench.instance.reset()
    assert np.array_equal(bench.state, fresh)
    assert outputs(bench) == (0, 127, 0, 0, 1)
    assert bench.get("wake_at") == NEVER


def test_off_until_arm():
    bench = make()
    bench.tick(5, tile_done_valid=1, comm_seen=1, served=9)
    assert outputs(bench) == (0, 127, 0, 0, 1)


def test_cycles_of_a_whole_measurement():
    bench = make(slices=2)
    bench.tick(config=ARM)
    for _ in range(10):
        assert outputs(bench) == (1, 127, 0, 0, 1)  # measuring is waiting: idle
        bench.tick()
    bench.tick(tile_done_valid=1)
    bench.tick(0, tile_done_valid=0)
    for _ in range(4):
        assert outputs(bench) == (0, 127, 0, 0, 0)  # SETTLE
        bench.tick(served=1000)
    assert outputs(bench) == (0, 127, 0, 0, 0)  # SCAN of slice 0
    bench.tick(served=0)
    assert outputs(bench) == (0, 127, 0, 1, 0)  # SCAN of slice 1
    bench.tick(served=0)
    assert outputs(bench) == (0, 127, 0, 2, 0)  # DECIDE
    bench.tick()
    assert outputs(bench) == (0, 127, 1, 2, 1)  # nothing served: under 25 %, no limit


# 100 cycles from arm, 4 slices: 400 cycles of all channels; a line takes 2. Per row: lines of each slice, threshold.
BOUNDARIES = [
    ((49, 0, 0, 0), 127),  # 4 x 98 < 400
    ((50, 0, 0, 0), 30),  # 25 % exactly
    ((30, 30, 30, 9), 30),  # 2 x 198 < 400
    ((0, 0, 0, 100), 10),  # 50 % exactly
    ((50, 50, 0, 49), 10),  # 4 x 298 < 1200
    ((37, 38, 37, 38), 5),  # 75 % exactly
    ((1 << 24, 0, 0, 0), 127),  # 24 bits: seen as 0
    (((1 << 24) - 1,) * 4, 5),
]


@pytest.mark.parametrize(("served", "threshold"), BOUNDARIES)
def test_classes_of_use(served, threshold):
    bench = make()
    measure(bench, 100, tuple(lines % (1 << 24) for lines in served))
    assert outputs(bench) == (0, threshold, 1, 4, 1)


def test_elapsed_runs_from_the_arm_pulse_to_the_first_tile():
    for elapsed, threshold in ((1, 5), (2, 5), (3, 10), (4, 10), (5, 30)):  # busy = 4, all = elapsed x 2
        bench = make(slices=2)
        bench.now = (1 << 48) - 100  # wide times
        measure(bench, elapsed, (1, 1))
        assert bench.get("threshold") == threshold, elapsed


def test_communication_ends_the_measurement_too():
    bench = make()
    bench.tick(config=ARM)
    bench.tick(3)
    bench.tick(comm_seen=1)
    assert bench.get("measure") == 0


def test_comm_seen_in_the_first_cycle_is_not_slept_through():
    bench = make()
    bench.tick(comm_seen=1)
    bench.tick(config=ARM)
    assert (bench.get("measure"), bench.get("idle")) == (1, 0)
    bench.tick()
    assert bench.get("measure") == 0


def test_select_has_six_bits():
    bench = make(slices=64)
    measure(bench, 10, (0,) * 64)
    assert outputs(bench) == (0, 127, 1, 0, 1)


def test_thresholds_are_cut_to_seven_bits_and_kept_by_disarm():
    bench = make()
    bench.write(registers.THRESHOLDS, pack(registers.Thresholds, under_25=0x8B, under_50=0x8C, under_75=13, above=14))
    for served, threshold in ((49, 11), (50, 12), (100, 13), (150, 14)):
        measure(bench, 100, (served, 0, 0, 0))
        assert bench.get("threshold") == threshold
        bench.tick(config=DISARM)
        assert outputs(bench) == (0, 127, 0, 0, 1)


@pytest.mark.parametrize("cycles", range(14))
def test_arm_and_disarm_in_any_state_start_anew(cycles):
    bench = make()
    bench.tick(config=ARM)
    bench.tick(tile_done_valid=1)
    bench.tick(cycles, tile_done_valid=0, served=77)
    again = make()
    again.now = bench.now
    bench.tick(config=ARM)
    again.tick(config=ARM)
    assert np.array_equal(bench.state, again.state)
    bench.tick(cycles)
    bench.tick(config=DISARM)
    assert np.array_equal(bench.state, make().state)


def test_one_choice_per_arm():
    bench = make()
    measure(bench, 100, (50, 0, 0, 0))
    bench.tick(30, tile_done_valid=1, comm_seen=1, served=5000)
    assert outputs(bench) == (0, 30, 1, 4, 1)
