"""What waits in a GPU's queues over time: against GPUs that are stopped, against waits, and whatever the bins were."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.typing import NDArray
from t3sim.engine.gpu_state import GpuState
from t3sim.engine.state import BINS
from t3sim.engine.t3unit.ports import SLICE_OUT, TOKEN_STRIDE
from t3sim.engine.t3unit.words import LEAF, ROOT, SLICE, TRIGGER
from t3sim.hardware.backends import open_hardware
from t3sim.run.events import QUEUES
from t3sim.run.observe import timeline
from t3sim.run.plan import RunPlan
from t3sim.run.request import RunRequest
from t3sim.run.simulate import set_up
from t3sim.run.system import System

from tests.support.system_cases import BASE, EIGHT, EVEN, ODD, POLICIES, request, run

LATE = {"variation.start_skew_ns": [40_000.0] + [0.0] * 7, "hardware.chunk_window": 2, "hardware.event_queue": 3}
"""A GPU with two live chunks of eight, whose neighbours' stores are held."""


@contextmanager
def programmed(asked: RunRequest) -> Iterator[System]:
    """The system of a run before its first cycle."""
    hardware = open_hardware(asked.machine.hardware.config(), asked.hardware)
    try:
        system, _ = set_up(RunPlan(asked), hardware, System)
        system.program()
        yield system
    finally:
        hardware.close()


def stops(system: System) -> Iterator[int]:
    """Runs the system, and stops whenever a bin begins, before anything of that cycle happens: the bin."""
    gpu = system.gpus[0]
    width, latency, now = int(gpu.time["bin_cycles"]), int(gpu.link["latency_cycles"]), 0
    while not all(gpu.time["finish_cycle"] >= 0 for gpu in system.gpus) and now < width * BINS:
        if now % width == 0:
            yield now // width
        until = min(now + latency, now - now % width + width)
        for job in system._window(until):
            job()
        now = until


def waiting(gpu: GpuState, cycle: int) -> list[int]:
    """The rows of ``queued`` as the arrays of a stopped GPU have them."""
    link, words, at = gpu.link, gpu.words, gpu.at

    def out(part: int, index: int) -> int:
        return int(words[2 * (part + index) + 1])

    def at_slices(queues: range) -> int:
        count = int(gpu.fronts["inside"][:, queues.start // 2].sum())
        for front in gpu.fronts:
            for queue in queues:
                n = int(front["head"][queue])
                while n >= 0 and gpu.bursts[n]["available_cycle"] <= cycle:
                    count, n = count + 1, int(gpu.bursts[n]["next"])
        return count

    held = gpu.channel["held"].sum(axis=1)
    nodes, roots, channels = int(gpu.unit["leaves"]), int(gpu.unit["roots"]), int(gpu.fabric["channels"])
    valid = [("leaf", LEAF, n, o) for n in range(nodes) for o in range(roots)]
    valid += [("root", ROOT, n, o) for n in range(roots) for o in range(int(gpu.unit["tracker_banks"]) // roots)]
    tokens = [words[out(SLICE, c) + SLICE_OUT.token_valid] for c in range(channels)]
    tokens += [words[out(part, n) + at[f"{name}_token_out_valid"] + TOKEN_STRIDE * o] for name, part, n, o in valid]
    queued = [gpu.rows[gpu.tx[i % len(gpu.tx)]] for i in range(link["tx_head"], link["tx_tail"])]
    late = [row["available_cycle"] > cycle for row in queued] + [True]
    lines = [int(row["lines"]) for row in queued[: late.index(True)]]
    if len(gpu.replay):
        again = range(link["resend_next"], link["packets_sent"])
        lines += [int(gpu.replay[number % len(gpu.replay)]["lines"]) for number in again]
    return [
        int(held.sum()), int(held.max()), at_slices(range(2)), at_slices(range(2, 4)), int(gpu.fabric["held"]),
        int(sum(tokens)), int(words[out(TRIGGER, 0) + at["trigger_backlog"]]),
        32 * sum(lines) + len(lines) * int(link["header_bytes"]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("size", "policy", "overrides", "choices", "never"),
    [
        (BASE, "sequential", {}, {}, {"held_bursts", "tokens", "dma_blocks"}),
        (ODD, "t3", {"link.retry": True}, {}, {"held_bursts"}),
        (EIGHT, "t3-mca", LATE, {}, set()),
        (EVEN, "t3-mca", {}, {"mirror": True}, {"held_bursts"}),
    ],
)
def test_a_queue_is_as_long_as_in_a_gpu_that_is_stopped(size, policy, overrides, choices, never):
    with programmed(request(size, policy, overrides, **choices)) as system:
        width = int(system.gpus[0].time["bin_cycles"])
        seen = np.array([[waiting(gpu, number * width) for gpu in system.gpus] for number in stops(system)])
        seen = seen.transpose(1, 2, 0)  # gpu, row, bin
        for gpu, rows in zip(system.gpus, seen, strict=True):
            bins = min(int(gpu.queued_bins[0]), rows.shape[1])
            np.testing.assert_array_equal(gpu.queued[:, :bins], rows[:, :bins])
            assert not rows[:, bins:].any(), "a GPU that has finished holds nothing"
    empty = {name for name, row in zip(QUEUES, seen.swapaxes(0, 1), strict=True) if not row.any()}
    assert empty == never


@pytest.mark.parametrize("policy", POLICIES)
def test_the_mean_queue_is_the_time_that_bursts_wait(policy):
    """Little's law: lines that wait = lines per time x mean wait. All bursts of communication have two lines here."""
    result = run(EVEN, policy)
    stream, bins = result.record.contention.communication, result.timeline
    mean = bins.queues["communication_bursts"].mean(axis=1).sum()
    time = bins.bin_ns * bins.cu_busy.shape[1]
    assert 2 * mean == pytest.approx(stream.lines * stream.mean_wait_ns / time, rel=0.05)


def test_the_link_holds_what_its_credits_forbid():
    """With a receive buffer of one kB almost all that the DMA engine has read waits for room at the neighbour."""
    wide, narrow = (run(BASE, "t3", changes).timeline for changes in ({}, {"link.rx_buffer_kib": 1}))
    assert narrow.queues["link_bytes"].mean() > 1.5 * wide.queues["link_bytes"].mean()


def test_dram_queues_are_within_their_room():
    queues = run(BASE, "t3").timeline.queues
    assert (queues["dram_mean"] <= queues["dram_largest"]).all()
    assert queues["dram_largest"].max() == 64, "lines of hbm.queue_lines"
    assert (queues["dram_largest"] <= 4 * queues["dram_mean"]).all(), "of four channels"


def test_bins_that_are_halved_are_those_of_a_coarser_timeline():
    def with_bins_of(cycles: int) -> tuple[int, dict[str, NDArray]]:
        with programmed(request(ODD, "t3-mca")) as system:
            for gpu in system.gpus:
                gpu.time["bin_cycles"] = cycles
            for _ in system.run(threads=1):
                pass
            return int(system.gpus[0].time["bin_cycles"]), timeline(system).queues

    width, halved = with_bins_of(1)
    assert width >= 4, "halved more than once"
    again, whole = with_bins_of(width)
    assert again == width
    for name in QUEUES:
        np.testing.assert_array_equal(halved[name], whole[name])
