"""The occupancy monitor: how it measures the first stage, and what it chooses.

4 slices, a first stage of 1000 cycles, so 4000 data-bus cycles; a grant takes 2 of them.
"""

import pytest
from stream_checks import Bench, run
from t3hdl.config import NO_LIMIT, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import NEVER
from t3hdl.slice.arbiter import OccupancyMonitor


def _monitor() -> OccupancyMonitor:
    return OccupancyMonitor(config=preset("small"))


async def _measure(bench: Bench, served: list[int], *, cycles: int = 1000, by: str = "tile_done_valid") -> int:
    """Arms, ends the first stage after ``cycles`` and answers ``select``; the cycle of the stage's end."""
    await bench.write(regs.CONTROL, {"arm": 1, "descriptors": 1}, regs.Control)
    armed = bench.now - 1
    assert (bench["measure"], bench["threshold"], bench["chosen"]) == (1, NO_LIMIT, 0)
    bench.now = armed + cycles  # nothing happens in between: idle, and it says so
    await bench.step(**{by: 1})
    bench.ctx.set(getattr(bench.part, by), 0)
    assert bench["measure"] == 0
    for _ in range(40):
        await bench.step(served=served[bench["select"] % 4])
        if bench["chosen"]:
            break
    return armed + cycles


@pytest.mark.parametrize(
    ("grants", "threshold"),
    [
        (0, 127), (499, 127), (500, 30), (501, 30), (999, 30), (1000, 10), (1001, 10), (1499, 10), (1500, 5),
        (1501, 5), (2000, 5),
    ],
)  # fmt: skip
def test_monitor_threshold_at_the_class_boundaries(grants: int, threshold: int) -> None:
    async def scenario(bench: Bench) -> None:
        served = [grants // 2, grants - grants // 2 - 3 * (grants // 10), grants // 10, 2 * (grants // 10)]
        await _measure(bench, served)
        assert (bench["threshold"], bench["chosen"]) == (threshold, 1)

    run(_monitor(), scenario)


def test_monitor_sums_the_largest_counts_without_loss() -> None:
    async def scenario(bench: Bench) -> None:
        largest = (1 << 24) - 1
        await _measure(bench, [largest] * 4, cycles=3 * largest)  # 67 %
        assert bench["threshold"] == 10
        await _measure(bench, [largest] * 4, cycles=(1 << 40))
        assert bench["threshold"] == NO_LIMIT

    run(_monitor(), scenario)


@pytest.mark.parametrize("by", ["tile_done_valid", "comm_seen"])
@pytest.mark.parametrize("slices", [1, 4, 64])
def test_monitor_latency(by: str, slices: int) -> None:
    part = OccupancyMonitor(config=preset("paper", slices=slices, node_inputs=min(8, slices)))

    async def scenario(bench: Bench) -> None:
        await bench.write(regs.CONTROL, {"arm": 1, "descriptors": 1}, regs.Control)
        await bench.step(10)
        end = bench.now
        await bench.step(**{by: 1})
        selected = []
        while not bench["chosen"]:
            selected.append(bench["select"])
            await bench.step(**{by: 0})
        assert bench.now == end + part.latency
        assert selected == [0] * 4 + list(range(slices)) + [slices % 64], "4 to settle, a slice each, 1 to decide"

    run(part, scenario)


def test_monitor_uses_the_written_thresholds_and_disarm_keeps_them() -> None:
    async def scenario(bench: Bench) -> None:
        values = {"under_25": 100, "under_50": 90, "under_75": 80, "above": 70}
        await bench.write(regs.THRESHOLDS, values, regs.Thresholds)
        await _measure(bench, [0] * 4)
        assert (bench["threshold"], bench["chosen"]) == (100, 1)
        await bench.write(regs.CONTROL, {"disarm": 1}, regs.Control)
        assert (bench["threshold"], bench["chosen"], bench["measure"]) == (NO_LIMIT, 0, 0)
        await _measure(bench, [499] * 4)
        assert bench["threshold"] == 70
        await _measure(bench, [300] * 4)
        assert bench["threshold"] == 80, "arm starts over in any state"

    run(_monitor(), scenario)


def test_monitor_off_ignores_tiles_and_a_choice_is_final() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.step(20, tile_done_valid=1, comm_seen=1, served=100)
        assert (bench["threshold"], bench["chosen"], bench["measure"]) == (NO_LIMIT, 0, 0)
        await bench.step(comm_seen=0)
        await _measure(bench, [250] * 4)
        assert bench["threshold"] == 10
        await bench.step(30, tile_done_valid=1, comm_seen=1, served=0)
        assert bench["threshold"] == 10

    run(_monitor(), scenario)


def test_monitor_keeps_the_idle_promise() -> None:
    async def scenario(bench: Bench) -> None:
        rng = bench.random
        for _ in range(20):
            if rng.random() < 0.7:
                await bench.write(regs.CONTROL, {"arm": 1, "descriptors": 1}, regs.Control)
            await bench.step(rng.randrange(8), comm_seen=0, served=rng.randrange(100))
            await bench.step(tile_done_valid=int(rng.random() < 0.3), comm_seen=int(rng.random() < 0.3))
            await bench.step(rng.randrange(20), tile_done_valid=0)
        assert bench["wake_at"] == NEVER
        assert bench.idle_checks > 50

    run(_monitor(), scenario, seed=5)
