"""The occupancy monitor: how it measures the first stage, and what it chooses.

4 slices unless said otherwise. A stage of 100 cycles has 400 data-bus cycles of all channels; a grant takes 2.
"""

import numpy as np
import pytest
from t3hdl.config import NO_LIMIT, T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import NEVER
from t3hdl.slice.monitor import OccupancyMonitor

from tests.contract.bench import Bench, bench_of

LARGEST = (1 << 24) - 1
"""The most lines that a slice can report."""
SETTLE = 4
"""Cycles from the end of the stage until the first slice is read."""
QUIET = {"measure": 0, "threshold": NO_LIMIT, "chosen": 0, "select": 0}
"""Outputs while nothing is measured."""


def sized(slices: int) -> T3Config:
    return preset("small", slices=slices, node_inputs=max(1, slices // 4))


def arm(bench: Bench) -> int:
    """Arms; returns the cycle of the write."""
    return bench.control(arm=1, descriptors=1)


def disarm(bench: Bench) -> None:
    bench.control(disarm=1)


def end_of_stage(bench: Bench, by: str = "tile_done_valid") -> int:
    """One cycle with a tile, or a communication access; returns it."""
    bench.step(**{by: 1})
    bench.set(by, 0)
    return bench.now - 1


def measure(bench: Bench, cycles: int, served: tuple[int, ...], by: str = "tile_done_valid") -> None:
    """One first stage of ``cycles`` cycles; ``served``: lines of each slice."""
    armed = arm(bench)
    assert (bench["measure"], bench["threshold"], bench["chosen"]) == (1, NO_LIMIT, 0)
    bench.now = armed + cycles  # nothing happens in between: idle, and it says so
    end_of_stage(bench, by)
    for _ in range(SETTLE + len(served) + 1):
        assert (bench["measure"], bench["chosen"]) == (0, 0)
        bench.step(served=served[bench["select"] % len(served)])
    assert bench["chosen"] == 1


def outputs(bench: Bench) -> dict[str, int]:
    return {port: bench[port] for port in QUIET}


def test_off_until_arm(backend):
    bench = bench_of(backend, "monitor")
    assert outputs(bench) == QUIET and bench["wake_at"] == NEVER
    bench.step(20, tile_done_valid=1, comm_seen=1, served=100)
    assert outputs(bench) == QUIET


@pytest.mark.own_size
@pytest.mark.parametrize("by", ["tile_done_valid", "comm_seen"])
@pytest.mark.parametrize("slices", [1, 2, 64])
def test_every_cycle_of_a_measurement(backend, slices, by):
    """4 cycles to settle, one for each slice, one to decide; waiting for the stage's end is idle, measuring is not."""
    bench = bench_of(backend, "monitor", sized(slices))
    arm(bench)
    for _ in range(10):
        assert outputs(bench) == QUIET | {"measure": 1}
        bench.step()
    assert bench["idle"]
    end = end_of_stage(bench, by)
    for select in [0] * SETTLE + [*range(slices)]:
        assert outputs(bench) == QUIET | {"select": select} and not bench["idle"]
        bench.step()
    assert outputs(bench) == QUIET | {"select": slices % 64}, "select has six bits"
    bench.step()
    assert outputs(bench) == QUIET | {"chosen": 1, "select": slices % 64}
    assert bench.now == end + OccupancyMonitor(config=sized(slices)).latency


@pytest.mark.parametrize(
    ("served", "threshold"),
    [
        ((0, 0, 0, 0), 127), ((49, 0, 0, 0), 127), ((50, 0, 0, 0), 30),  # 25 % exactly
        ((30, 30, 30, 9), 30), ((0, 0, 0, 100), 10),  # 50 % exactly
        ((50, 50, 0, 49), 10), ((37, 38, 37, 38), 5),  # 75 % exactly
        ((50, 50, 50, 50), 5), ((LARGEST,) * 4, 5),
    ],
)  # fmt: skip
def test_threshold_at_the_boundaries_of_the_classes(backend, served, threshold):
    bench = bench_of(backend, "monitor")
    measure(bench, 100, served)
    assert outputs(bench) == QUIET | {"threshold": threshold, "chosen": 1, "select": 4}


@pytest.mark.parametrize(("cycles", "threshold"), [(1, 5), (2, 5), (3, 10), (4, 10), (5, 30), (8, 30), (9, 127)])
def test_the_stage_lasts_from_the_arm_to_its_end(backend, cycles, threshold):
    """Four lines: 8 bus cycles of 4 x ``cycles``; times of 48 bits."""
    bench = bench_of(backend, "monitor")
    bench.now = (1 << 48) - 100
    measure(bench, cycles, (1, 1, 1, 1))
    assert bench["threshold"] == threshold


def test_the_largest_counts_are_summed_without_loss(backend):
    bench = bench_of(backend, "monitor")
    measure(bench, 3 * LARGEST, (LARGEST,) * 4)  # 67 %
    assert bench["threshold"] == 10
    measure(bench, 1 << 40, (LARGEST,) * 4)
    assert bench["threshold"] == NO_LIMIT


def test_communication_seen_before_the_arm_ends_the_stage_at_once(backend):
    bench = bench_of(backend, "monitor")
    bench.step(comm_seen=1)
    arm(bench)
    assert (bench["measure"], bench["idle"]) == (1, 0)
    bench.step()
    assert bench["measure"] == 0


def test_written_thresholds_have_seven_bits_and_survive_a_disarm(backend):
    """The eighth says that the streams take turns."""
    bench = bench_of(backend, "monitor")
    values = {"under_25": 0x8B, "under_50": 0x8C, "under_75": 13, "above": 14}
    bench.write(regs.THRESHOLDS, values, regs.Thresholds)
    for served, threshold, turns in ((49, 0x0B, 1), (50, 0x0C, 1), (100, 13, 0), (150, 14, 0)):
        measure(bench, 100, (served, 0, 0, 0))
        assert (bench["threshold"], bench["behind"]) == (threshold, turns)
        bench.step(5, backlog=0)
        assert bench["behind"] == turns, "whatever waits"
        (arm if threshold % 2 else disarm)(bench)
        assert (bench["threshold"], bench["behind"]) == (NO_LIMIT, 0)
        disarm(bench)
        assert outputs(bench) == QUIET


@pytest.mark.parametrize("cycles", range(14))
def test_arm_and_disarm_start_anew_in_any_state(backend, cycles):
    bench = bench_of(backend, "monitor")
    arm(bench)
    end_of_stage(bench)
    bench.step(cycles, served=77)
    measure(bench, 100, (100, 100, 100, 0))
    assert bench["threshold"] == 5, "nothing of the first measurement is left"
    arm(bench)
    end_of_stage(bench)
    bench.step(cycles, served=77)
    disarm(bench)
    assert outputs(bench) == QUIET


def test_a_choice_is_final_until_the_next_arm(backend):
    bench = bench_of(backend, "monitor")
    measure(bench, 100, (50, 0, 0, 0))
    bench.step(30, tile_done_valid=1, comm_seen=1, served=5000)
    assert outputs(bench) == QUIET | {"threshold": 30, "chosen": 1, "select": 4}


def test_reset_in_any_state(backend):
    bench = bench_of(backend, "monitor")
    fresh = bench.backend.state()
    arm(bench)
    end_of_stage(bench)
    bench.step(6, served=77)
    bench.reset()
    assert outputs(bench) == QUIET and bench.backend.state() == fresh


def test_reset_clears_random_state():
    bench = bench_of("golden", "monitor")
    fresh = bench.backend.state()
    memory = bench.backend.memory
    memory[1:] = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, len(memory) - 1)  # the first word is a size
    bench.reset()
    assert bench.backend.state() == fresh


def test_random_traffic_keeps_the_idle_promise(backend):
    bench = bench_of(backend, "monitor", seed=5)
    rng = bench.random
    for _ in range(20):
        if rng.random() < 0.7:
            arm(bench)
        bench.step(rng.randrange(8), comm_seen=0, served=rng.randrange(100))
        bench.step(tile_done_valid=int(rng.random() < 0.3), comm_seen=int(rng.random() < 0.3))
        bench.step(rng.randrange(20))
    assert backend == "rtl" or bench.idle_checks > 50


# Communication is behind


def test_behind_from_as_many_blocks_as_the_limit_a_cycle_later(backend):
    """In every state, and no more when fewer wait."""
    bench = bench_of(backend, "monitor")
    bench.write(regs.THRESHOLDS, {"backlog": 3}, regs.Thresholds)
    for control in (None, arm, disarm):
        if control:
            control(bench)
        shown = []
        for blocks in (2, 3, 1 << 20, 2, 0):
            bench.step(backlog=blocks)
            shown.append(bench["behind"])
        assert shown == [0, 1, 1, 0, 0]


def test_never_behind_without_a_limit(backend):
    """As after reset; a limit that is written counts from the cycle after the next on."""
    bench = bench_of(backend, "monitor")
    bench.step(5, backlog=5)
    assert bench["behind"] == 0
    bench.write(regs.THRESHOLDS, {"backlog": 5}, regs.Thresholds)
    assert (bench["behind"], bench["idle"]) == (0, 0)
    bench.step()
    assert bench["behind"] == 1
    bench.write(regs.THRESHOLDS, {"backlog": 0}, regs.Thresholds)
    bench.step()
    assert bench["behind"] == 0


LIMITS = {"backlog": 0, "patience": 2}
"""Blocks that wait for 128 cycles are late, however few they are."""


def behind_after(bench: Bench, cycles: int) -> int:
    """``behind`` so many cycles later, none of which is skipped."""
    bench.step(cycles)
    return bench["behind"]


@pytest.mark.parametrize("blocks", [1, 1 << 20])
def test_late_once_blocks_have_waited_for_so_long_until_none_waits(backend, blocks):
    bench = bench_of(backend, "monitor")
    bench.write(regs.THRESHOLDS, LIMITS, regs.Thresholds)
    for control in (None, arm, disarm):
        if control:
            control(bench)
        bench.set("backlog", blocks)
        begin = bench.now
        assert bench["wake_at"] == NEVER
        bench.step()
        assert bench["wake_at"] == begin + 128
        assert behind_after(bench, 127) == 0
        bench.set("backlog", blocks + 1)  # another number of them is no new wait
        assert (bench.now, behind_after(bench, 1)) == (begin + 128, 1)
        assert bench["wake_at"] == NEVER
        assert behind_after(bench, 300) == 1
        bench.set("backlog", 0)
        assert (bench["behind"], behind_after(bench, 1)) == (1, 0)


def test_a_moment_without_blocks_begins_the_wait_anew(backend):
    bench = bench_of(backend, "monitor")
    bench.write(regs.THRESHOLDS, LIMITS, regs.Thresholds)
    bench.step(100, backlog=1)
    bench.step(1, backlog=0)
    bench.set("backlog", 1)
    assert (behind_after(bench, 128), behind_after(bench, 1)) == (0, 1)


def test_a_write_of_the_limits_begins_the_wait_anew(backend):
    bench = bench_of(backend, "monitor")
    bench.write(regs.THRESHOLDS, LIMITS, regs.Thresholds)
    assert behind_after_set(bench, 200) == 1
    bench.write(regs.THRESHOLDS, LIMITS | {"patience": 1}, regs.Thresholds)
    assert bench["behind"] == 0 and not bench["idle"]
    assert (behind_after(bench, 64), behind_after(bench, 1)) == (0, 1)
    bench.write(regs.THRESHOLDS, LIMITS | {"patience": 0}, regs.Thresholds)
    assert behind_after(bench, 5000) == 0, "for ever"


def behind_after_set(bench: Bench, cycles: int) -> int:
    bench.set("backlog", 1)
    return behind_after(bench, cycles)


def test_the_longest_patience(backend):
    bench = bench_of(backend, "monitor")
    bench.write(regs.THRESHOLDS, LIMITS | {"patience": 65535}, regs.Thresholds)
    bench.step(1, backlog=1)
    bench.now += 64 * 65535 - 3  # nothing happens in between: idle, and it says so
    assert [behind_after(bench, 1) for _ in range(4)] == [0, 0, 1, 1]


def test_many_and_late_are_one_output(backend):
    bench = bench_of(backend, "monitor")
    bench.write(regs.THRESHOLDS, LIMITS | {"backlog": 4}, regs.Thresholds)
    bench.set("backlog", 4)
    assert behind_after(bench, 1) == 1
    bench.set("backlog", 3)
    assert behind_after(bench, 1) == 0
    assert behind_after(bench, 128) == 1, "the wait began with the four"
    bench.set("backlog", 4)
    assert behind_after(bench, 1) == 1
    bench.set("backlog", 3)
    assert behind_after(bench, 1) == 1
