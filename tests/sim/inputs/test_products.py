"""Presets of the size of products: their published rates, what is theirs and what is the paper's, and that they run."""

from importlib import resources

import pytest
from t3sim.inputs.machine.describe import settings
from t3sim.inputs.machine.files import load_machine, preset_names
from t3sim.inputs.machine.standing import bandwidth_gb_s, caution, is_unvalidated, matrix_tflop_s, standing
from t3sim.inputs.workload import custom_workload
from t3sim.run.provenance import Provenance
from t3sim.run.request import RunRequest
from t3sim.run.simulate import simulate

PUBLISHED = {
    "a100-like": (108, 312, 2039, 300, 40),
    "h100-like": (132, 989.4, 3350, 450, 50),
    "h200-like": (132, 989.4, 4800, 450, 50),
    "b200-like": (148, 2250, 8000, 900, 126),
    "mi300x-like": (304, 1307.4, 5300, 448, 256),
}
"""CUs, TFLOP/s of dense FP16, GB/s of memory, GB/s of links each way, MiB of last-level cache."""
DIGESTS = {
    "paper": "b2e9654129278efdfd058504e0156cd2",
    "paper-samsung": "56b959caf1c6ff791d77ef5fb94201f8",
    "toy": "ead27b4365f5b553a2ec92bacb1a5067",
}
"""Of the machines that finished runs are kept for."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_rates_are_the_published_ones(name):
    machine = load_machine(name)
    cus, tflops, memory, link, cache = PUBLISHED[name]
    assert machine.gpu.cus == machine.kernel.cus == cus
    assert matrix_tflop_s(machine) == pytest.approx(tflops, rel=0.001)
    assert bandwidth_gb_s(machine) == pytest.approx(memory, rel=0.005)
    assert (machine.link.gb_s, machine.llc.capacity_kib) == (link, cache * 1024)


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_not_published_is_the_papers_or_a_marked_assumption(name):
    machine, paper = load_machine(name), load_machine("paper")
    own = {key for key, source in machine.sources.items() if source != paper.sources[key]}
    values, papers = settings(machine), settings(paper)
    assert {key for key in values if values[key] != papers[key]} <= own
    specified = {key for key in own if machine.sources[key].startswith("[S]")}
    assert specified == {
        "gpu.cus", "gpu.clock_mhz", "gpu.flop_per_clock_per_cu", "llc.capacity_kib", "hbm.clock_mhz", "link.gb_s",
    }  # fmt: skip
    assert all(machine.sources[key].startswith("[A] ") for key in own - specified)
    assert machine.hardware == paper.hardware


@pytest.mark.parametrize("name", PUBLISHED)
def test_buffers_hold_what_the_link_has_in_flight(name):
    link = load_machine(name).link
    assert link.rx_buffer_kib * 1024 > link.gb_s * 2 * link.latency_ns
    assert link.egress_buffer_kib * 1024 >= 2 * link.gb_s * link.latency_ns


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_arbiter_guarantees_both_ways_of_the_link(name):
    machine = load_machine(name)
    clocks = machine.arbiter.starvation_cycles + machine.arbiter.starvation_quantum * machine.hbm.nBL
    lines = machine.hbm.channels * machine.arbiter.starvation_quantum / clocks
    assert 32 * lines * machine.hbm.clock_mhz / 1000 > 2 * machine.link.gb_s


@pytest.mark.parametrize("name", [*PUBLISHED, "paper-accelsim"])
@pytest.mark.parametrize("policy", ["sequential", pytest.param("t3-mca", marks=pytest.mark.long)])
def test_a_small_run_ends_with_the_right_data(name, policy):
    work = custom_workload(256, 256, 64, 2)
    result = simulate(RunRequest(workload=work, machine=load_machine(name), policy=policy, hardware="golden")).record
    assert result.time_ns.total > 0
    if policy == "t3-mca":
        assert result.data_check is not None
        assert (result.data_check.elements, result.data_check.mismatches) == (2 * 256 * 256, 0)


def test_standing_is_said_where_nothing_confirms_a_machine(tmp_path):
    found = {name: standing(load_machine(name)) for name in preset_names()}
    assert found == dict.fromkeys(PUBLISHED, "unvalidated") | {
        "paper": "T3 paper", "paper-accelsim": "T3 paper", "paper-samsung": "T3 paper", "toy": "toy",
    }  # fmt: skip
    for name in preset_names():
        assert bool(caution(load_machine(name))) == (name in PUBLISHED) == is_unvalidated(load_machine(name))
    (text,) = caution(load_machine("h100-like"))
    assert text.startswith("unvalidated machine: h100-like has a product's public figures")
    path = tmp_path / "mine.toml"
    path.write_text('base = "h100-like"\n[link]\ngb_s = 400\n')
    assert is_unvalidated(load_machine(path))
    assert is_unvalidated(load_machine("paper", {"gpu.cus": 100})) is False  # a setting is the reader's own


def test_comments_say_what_a_channel_stands_for():
    for name in PUBLISHED:
        text = (resources.files("t3sim.inputs.machine") / "presets" / f"{name}.toml").read_text("utf-8")
        assert "Unvalidated" in text
        assert "has at most 64 channels" in text


@pytest.mark.parametrize("name", DIGESTS)
def test_digests_of_the_papers_machines_are_as_ever(name):
    assert Provenance.of(load_machine(name)).machine == DIGESTS[name]
