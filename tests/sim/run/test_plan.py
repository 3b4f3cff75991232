"""What a plan decides for a whole run."""

import pytest
from t3hdl.interface import register_map as regs
from t3hdl.interface.words import unpack
from t3sim.hardware.backends import open_hardware
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import model_workload
from t3sim.run.plan import RunPlan
from t3sim.run.request import Policy, RunRequest
from t3sim.run.simulate import set_up, simulate
from t3sim.run.system import System

from tests.support.system_cases import BASE, EVEN, ODD, request


def plan(sublayer: str, tp: int, policy: Policy, **settings: str) -> RunPlan:
    machine = load_machine("paper", {key.replace("_", ".", 1): value for key, value in settings.items()})
    return RunPlan(RunRequest(workload=model_workload("t-nlg", sublayer, tp), machine=machine, policy=policy))


def test_time_of_a_collective_on_the_link():
    """8192 x 4256 FP16 numbers, 7 of 8 chunks at 150 GB/s. Rows have 33 whole blocks of 256 bytes and a quarter, so
    that every whole tile has two packets in three of four rows."""
    packets = 8192 // 4 * (34 + 67 + 67 + 67)
    assert plan("fc2", 8, "t3").ring_ns == pytest.approx((8192 * 4256 * 2 + 16 * packets) * 7 / 8 / 150)


@pytest.mark.parametrize("size", [BASE, ODD])
def test_a_ring_sends_what_is_planned(size):
    """All GPUs together send N - 1 times the output, once for each collective, rounded nowhere."""
    asked = request(size, "t3")
    planned = 2 * asked.workload.tp * RunPlan(asked).ring_ns * asked.machine.link.gb_s
    assert simulate(asked).timeline.link_bytes.sum() == pytest.approx(planned, rel=1e-9)


@pytest.mark.parametrize(
    ("sublayer", "tp", "first"),
    [("fc2", 8, True), ("fc2", 16, True), ("ip", 16, False), ("op", 64, False), ("op", 16, False), ("fc2", 2, False)],
)
def test_compute_goes_first_where_communication_has_time_to_wait(sublayer, tp, first):
    """At TP 16 the link takes 484 us, and a DMA block may wait 39. 27 of 28 stages take 692 us of FC-2, 515 of IP,
    which leaves 31, and 199 of OP. FC-2 at TP 2 takes 5.5 ms, the link 0.3, but no DMA block is sent."""
    assert plan(sublayer, tp, "t3-mca").compute_first is first
    assert plan(sublayer, tp, "t3-mca", arbiter_mca="paper").compute_first is True
    assert plan(sublayer, tp, "t3").compute_first is plan(sublayer, tp, "sequential").compute_first is False


@pytest.mark.parametrize(
    ("sublayer", "tp", "settings", "blocks"),
    [
        # 34 columns of 8 tiles in a chunk, of 1.9 us each; 80 tiles of a stage are 10 columns
        ("ip", 16, {}, 10),  # a chunk's GEMM takes 3 us longer than its transfer: a column
        ("fc2", 8, {}, 62),  # 118 us
        ("ip", 16, {"dma_block": "chunk"}, 2),  # one is under way, and another waits
        ("ip", 16, {"dma_block": "tile"}, 20),  # blocks of 4 tiles: no more fit the hardware
        ("ip", 16, {"arbiter_backlog_blocks": 7}, 7),
    ],
)
def test_communication_is_behind_with_more_than_a_stage_makes_or_than_there_is_time_for(sublayer, tp, settings, blocks):
    assert plan(sublayer, tp, "t3-mca", **settings).backlog_limits[0] == blocks


@pytest.mark.parametrize(
    ("sublayer", "tp", "settings", "ns"),
    [
        # 39 us: twice what a stage stores, with 235 headers in four rows of 266 lines; 3 us may a chunk be late
        ("ip", 16, {}, 2 * 80 * 128 * (256 + 8 * 16 * 235 / 1064) / 150),
        ("fc2", 8, {}, (1394.4e3 - 451.7e3) / 8 / 2),  # half of 118 us
        ("fc2", 8, {"arbiter_backlog_patience_ns": 5000}, 5000),
        ("fc2", 2, {}, (5469.5e3 - 258.1e3) / 2 / 2),
    ],
)
def test_and_when_some_wait_for_longer_than_there_is_time_for(sublayer, tp, settings, ns):
    assert 64 * plan(sublayer, tp, "t3-mca", **settings).backlog_limits[1] == pytest.approx(ns, abs=64)


@pytest.mark.parametrize(("link_gb_s", "first"), [(20, 1), (2, 0)])
def test_the_unit_is_programmed_by_the_plan(link_gb_s, first):
    """The reduce-scatter takes the link 4.9 us at 20 GB/s, 49 us at 2 GB/s; 30 us are predicted for the GEMM."""
    asked = request(EVEN, "t3-mca", {"link.gb_s": link_gb_s})
    hardware = open_hardware(asked.machine.hardware.config(), asked.hardware)
    try:
        system, _ = set_up(RunPlan(asked), hardware, System)
        writes = dict(system.driver(0).writes)
    finally:
        hardware.close()
    assert unpack(regs.Arbiter, writes[regs.ARBITER])["mca"] == first
    thresholds, plan = unpack(regs.Thresholds, writes[regs.THRESHOLDS]), RunPlan(asked)
    assert (thresholds["backlog"], thresholds["patience"]) == plan.backlog_limits
