"""The kernels' rings in the simulated system: machines that stress them, and how fast they are."""

import numpy as np
import pytest
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import custom_workload
from t3sim.run.request import RunRequest
from t3sim.run.simulate import simulate
from t3sim.run.system import System

from tests.support.system_cases import BASE, EVEN, ODD, RINGS, check, run

MACHINES = {
    "skew": {"variation.start_skew_ns": [0.0, 40_000.0, 100.0, 7.0]},
    "links": {"variation.link_gb_s": [20.0, 2.0, 20.0, 5.0]},
    "small buffers": {"link.rx_buffer_kib": 1, "kernel.outstanding_lines_per_cu": 8, "kernel.cus": 1},
    "small slices": {"kernel.slice_kib": 1},
    "overheads": {"kernel.step_overhead_ns": 300, "kernel.slice_kib": 4},
}


@pytest.mark.parametrize("policy", RINGS)
@pytest.mark.parametrize("overrides", MACHINES.values(), ids=MACHINES)
def test_any_machine_reduces_right(overrides, policy):
    check(run(BASE, policy, overrides))


def test_updates_wait_until_the_neighbours_output_is_in_memory(monkeypatch):
    """Without the neighbour's word that its GEMM is done, its cache would write over what has been added."""
    late = {"variation.start_skew_ns": [0.0, 40_000.0, 0.0, 0.0]}
    check(run(EVEN, "sequential-nmc", late))
    program = System.program

    def impatient(system: System) -> None:
        program(system)
        for gpu in system.gpus:
            gpu.link["credit_lines"] = gpu.link["posted_lines"]

    monkeypatch.setattr(System, "program", impatient)
    assert run(EVEN, "sequential-nmc", late).record.data_check.mismatches > 0


def test_threads_do_not_change_the_result():
    for policy in RINGS:
        assert len({run(ODD, policy, threads=threads).record.to_json() for threads in (1, 3)}) == 1


def test_slices_overlap_what_steps_do_one_after_another():
    overrides = {"kernel.slice_kib": 8, "link.latency_ns": 2000}
    steps, slices = (run(EVEN, policy, overrides).record for policy in ("sequential", "sequential-pipelined"))
    assert slices.time_ns.reduce_scatter < 0.97 * steps.time_ns.reduce_scatter
    assert slices.time_ns.all_gather < 0.85 * steps.time_ns.all_gather
    assert slices.traffic_bytes_per_gpu.rs_read == steps.traffic_bytes_per_gpu.rs_read


def test_a_kernel_reads_no_faster_than_its_cus():
    overrides = {"kernel.cus": 1, "kernel.bytes_per_clock_per_cu": 4, "link.gb_s": 1000.0}  # 5.6 GB/s
    result = run(EVEN, "sequential", overrides)
    check(result)
    reads = np.cumsum(result.timeline.bytes["rs_read"][0])
    bins = int(2000 / result.timeline.bin_ns)
    # in any span, up to what waits in the four DRAM queues
    assert (reads[bins:] - reads[:-bins]).max() <= 5.6 * 2000 + 256 * 32
    traffic = result.record.traffic_bytes_per_gpu
    assert result.record.time_ns.reduce_scatter >= 0.95 * traffic.rs_read / 5.6


def paper_scatter_ns(policy: str, **kernel: int) -> float:
    """Reduce-scatter of chunks of 4 MiB on eight of the paper's GPUs, after a short GEMM."""
    machine = load_machine("paper", {f"kernel.{key}": value for key, value in kernel.items()})
    workload = custom_workload(4096, 4096, 4096, 8)
    result = simulate(RunRequest(workload=workload, machine=machine, policy=policy, hardware="golden", mirror=True))
    assert all(result.record.identities.values())
    return result.record.time_ns.reduce_scatter


@pytest.mark.slow
def test_few_cus_slow_the_reduce_scatter_as_published():
    """41 % on 8 CUs and nothing on 16, for which no number is published."""
    of_all = paper_scatter_ns("sequential", cus=80)
    assert paper_scatter_ns("sequential", cus=8) / of_all == pytest.approx(1.41, abs=0.06)
    assert paper_scatter_ns("sequential", cus=16) / of_all == pytest.approx(1.0, abs=0.04)


@pytest.mark.slow
def test_the_pipelined_ring_is_near_the_links_bandwidth():
    """Of 150 GB/s, packets of 256 bytes with a header of 16 leave 94 %."""
    sent = 7 / 8 * 4096 * 4096 * 2
    assert 0.9 <= sent / paper_scatter_ns("sequential-pipelined") / 150 <= 256 / 272
