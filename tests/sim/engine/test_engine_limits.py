"""Limits of the engine's models: mirrored credit, a mover's rate, the timeline's length."""

import numpy as np

from tests.support.system_cases import check, run

WIDE = {"gpu.tiles": [[32, 128]], "hardware.tile_count_bits": 9}


def test_mirror_returns_as_much_credit_as_it_takes():
    # Unequal chunks and a receive buffer that the difference between them would use up.
    check(run((288, 160, 32, 2), "t3", {"link.rx_buffer_kib": 8}, mirror=True))


def test_dma_reads_no_faster_than_its_rate():
    overrides = {**WIDE, "dma.lines_per_cycle": 1, "link.gb_s": 1000.0}
    result = run((256, 512, 32, 4), "t3", overrides)
    check(result)
    reads = result.timeline.bytes["rs_read"][0]
    lines = np.cumsum(reads) / 32
    # In any span of the run, up to what waits in the four DRAM queues.
    per_bin = result.timeline.bin_ns
    for span in (1000, 1500):
        bins = int(span / per_bin)
        assert (lines[bins:] - lines[:-bins]).max() <= span + 256


def test_timeline_reaches_to_the_end_of_a_run_that_takes_longer_than_estimated():
    result = run((256, 512, 32, 4), "t3", {**WIDE, "hbm.nRC": 400, "hbm.nRAS": 300})
    check(result)
    timeline, record = result.timeline, result.record
    bins = timeline.link_bytes.shape[1]
    assert (bins - 1) * timeline.bin_ns <= record.time_ns.total + timeline.bin_ns <= (bins + 2) * timeline.bin_ns
    moved = sum(values.sum(axis=0) for values in timeline.bytes.values()) / len(timeline.link_bytes)
    assert moved.sum() == record.traffic_bytes_per_gpu.total
    assert moved.max() <= 64 * timeline.bin_ns * 1.05, "no bin shows more than the DRAM's 64 GB/s"
