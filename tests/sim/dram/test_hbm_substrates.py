"""How updates are done (PIM modes, atomics) and when rows close: batches, bounds, latencies, counts."""

import numpy as np
import pytest
from t3sim.dram.hbm import (
    READ,
    UPDATE,
    WRITE,
    accepts,
    enqueue,
    new_hbm_state,
    occupancy,
    statistics,
    tick,
)
from t3sim.dram.state import COLUMN, PRE, SWITCH

from tests.sim.dram.hbm_reference import reorderings, run, violations
from tests.sim.dram.memory import memory
from tests.support.system_cases import BASE, check
from tests.support.system_cases import run as simulate

PIM = memory(refresh=False, substrate="pim")
ATOMICS = memory(refresh=False, substrate="atomics")
HITS_FIRST = memory(refresh=False, row_policy="hits-first")


def columns(commands: np.ndarray) -> np.ndarray:
    """The column commands."""
    return commands[commands[:, 1] == COLUMN]


def saturating(seed: int, accesses: int, kinds: tuple[float, ...]) -> np.ndarray:
    """More accesses than the channel can serve, of lines in order, kinds at random."""
    i = np.arange(accesses)
    kind = np.random.default_rng(seed).choice(3, size=accesses, p=kinds)
    return np.column_stack([i, kind, i % 4, i // 128 % 4, i // 512, i // 4 % 32])


def test_a_first_update_waits_for_compute_mode():
    traffic = np.array([(100, UPDATE, 0, 0, 0, 0), (300, READ, 1, 0, 0, 0)])
    result = run(new_hbm_state(PIM, 1), traffic, until=1000)
    assert not violations(result.commands, PIM)
    switches = result.commands[result.commands[:, 1] == SWITCH][:, 0]
    # An idle channel switches at once; ACT takes two clocks of the bus, and timing counts from its second.
    assert switches[0] == 100 and result.waits[0] == PIM.pim_switch_cycles + PIM.nRCDWR
    assert columns(result.commands)[0, 7] == 100 + result.waits[0] + PIM.nCWL + PIM.nBL
    assert result.waits[1] >= PIM.nRP + PIM.pim_switch_cycles + PIM.nRCDRD, "the read waits for memory mode"


@pytest.mark.parametrize("queue", ["shared", "split"])
def test_modes_change_in_batches(queue):
    """Under load a mode serves at least the lines between the two watermarks."""
    parameters = memory(PIM, queue=queue)
    result = run(new_hbm_state(parameters, 1), saturating(1, 4000, (0.5, 0.0, 0.5)), until=60000)
    assert (result.waits >= 0).all()
    assert not violations(result.commands, parameters)
    batch = parameters.write_share * (parameters.drain_high - parameters.drain_low)
    assert (result.commands[:, 1] == SWITCH).sum() <= 4000 / batch


def test_a_short_pause_of_reads_does_not_change_the_mode():
    """The mode is kept for as long as a switch takes, so reads that come sooner find it."""
    gap = PIM.pim_switch_cycles // 2
    reads = [(gap * i, READ, i % 4, 0, 0, i % 32) for i in range(60)]
    traffic = np.array(sorted([*reads, (5 * gap + 1, UPDATE, 0, 1, 0, 0)]))
    result = run(new_hbm_state(PIM, 1), traffic, until=60 * gap + 1000)
    first = result.commands[result.commands[:, 1] == SWITCH][0, 0]
    assert first >= 60 * gap - gap, "not before the last read"
    assert (result.waits >= 0).all()


@pytest.mark.parametrize("queue", ["shared", "split"])
@pytest.mark.parametrize(("victim", "others"), [(UPDATE, READ), (UPDATE, WRITE), (READ, UPDATE), (WRITE, UPDATE)])
def test_no_line_starves_in_the_other_mode(queue, victim, others):
    """One line of the other mode among lines without end waits for at most two age limits and a few switches."""
    parameters = memory(PIM, queue=queue, age_limit_cycles=1000)
    stream = [(8 * i, others, i % 4, 0, 0, i // 4 % 32) for i in range(4000)]
    traffic = np.array(sorted([*stream, (2001, victim, 3, 3, 5, 0)]))
    tag = int(np.flatnonzero(traffic[:, 0] == 2001)[0])
    result = run(new_hbm_state(parameters, 1), traffic, until=40000)
    bound = 2 * (parameters.age_limit_cycles + parameters.pim_switch_cycles + parameters.nRC)
    assert 1000 <= result.waits[tag] <= bound
    patient = run(new_hbm_state(memory(parameters, age_limit_cycles=10**6), 1), traffic, until=30000).waits
    assert patient[tag] == -1, "without the limit it would starve"


def test_overload_of_both_modes_is_no_collapse():
    """With all lines overdue, modes still last for the age limit: half the rate of one kind alone at least."""
    parameters = memory(PIM, queue="split", age_limit_cycles=200)
    traffic = saturating(2, 8000, (0.5, 0.0, 0.5))
    mixed = columns(run(new_hbm_state(parameters, 1), traffic, until=200000).commands)
    traffic[:, 1] = READ
    alone = columns(run(new_hbm_state(parameters, 1), traffic, until=200000).commands)
    assert len(mixed) == len(alone) == 8000
    assert mixed[-1, 0] < 3 * alone[-1, 0]


def test_a_read_that_waits_for_an_update_of_its_line_brings_compute_mode():
    traffic = np.array([(0, READ, 1, 0, 0, 0), (50, UPDATE, 0, 0, 0, 7), (51, READ, 0, 0, 0, 7)])
    result = run(new_hbm_state(PIM, 1), traffic, until=3000)
    assert columns(result.commands)[:, 6].tolist() == [0, 1, 2]
    assert result.waits[2] < PIM.age_limit_cycles / 4, "it need not become overdue"


def test_an_atomic_is_a_read_and_then_a_write():
    hbm = new_hbm_state(ATOMICS, 1)
    for kind in (UPDATE, READ):
        enqueue(hbm, 0, 0, 0, 1, kind, kind)
    now, seen = 0, []
    while len(seen) < 2:
        wake, tag, done = tick(hbm, 0, now)
        if tag >= 0:
            seen.append((tag, done - now))
        if now == ATOMICS.nRCDRD + 10:
            assert occupancy(hbm, 0) == 2, "the row was opened and the line is read: the update keeps its place"
        now = wake
    assert seen == [(UPDATE, ATOMICS.nCWL + ATOMICS.nBL), (READ, ATOMICS.nCL + ATOMICS.nBL)]
    counts = statistics(hbm, 0)
    assert (counts["reads"], counts["updates"], counts["atomic_reads"], counts["activates"]) == (1, 1, 1, 1)


def test_latency_of_an_atomic():
    result = run(new_hbm_state(ATOMICS, 1), np.array([(10, UPDATE, 0, 0, 0, 0)]), until=200)
    alu = ATOMICS.nCL + ATOMICS.nBL + ATOMICS.atomic_cycles
    assert result.waits.tolist() == [1 + ATOMICS.nRCDRD + alu]
    assert np.diff(columns(result.commands)[:, 0]).tolist() == [alu]
    assert not violations(result.commands, ATOMICS)


@pytest.mark.parametrize("seed", [1, 2])
def test_atomics_in_the_largest_queue(seed):
    """Updates keep their places, so a queue full of them has no room, and as many lines as fit are remembered."""
    parameters = memory(ATOMICS, queue="split", read_lines=63, write_lines=64, refresh=True)
    hbm = new_hbm_state(parameters, 1)
    traffic = saturating(seed, 6000, (0.1, 0.1, 0.8))
    traffic[:, 4] = np.random.default_rng(seed).integers(0, 5, len(traffic))
    result = run(hbm, traffic, until=200000)
    assert (result.waits >= 0).all(), f"seed {seed}: every access issues"
    assert not violations(result.commands, parameters), f"seed {seed}"
    assert not reorderings(result.commands, traffic), f"seed {seed}"
    counts = statistics(hbm, 0)
    moved = counts["reads"] + counts["writes"] + counts["updates"] + counts["atomic_reads"]
    assert counts["atomic_reads"] == counts["updates"] == (traffic[:, 1] == UPDATE).sum()
    assert counts["row_hits"] + counts["row_misses"] + counts["row_conflicts"] == moved
    assert counts["bus_cycles"] == moved * parameters.nBL
    assert occupancy(hbm, 0) == 0 and accepts(hbm, 0, True)


def test_substrates_differ_in_what_a_stream_of_updates_costs():
    """An update by atomics takes the bus twice; one in memory takes it once."""
    traffic = saturating(3, 4000, (0.0, 0.0, 1.0))
    end = {
        substrate: columns(run(new_hbm_state(memory(PIM, substrate=substrate), 1), traffic, until=60000).commands)[
            -1, 0
        ]
        for substrate in ("nmc", "pim", "atomics")
    }
    assert end["pim"] == pytest.approx(end["nmc"], rel=0.02), "one switch"
    assert 2 * end["nmc"] < end["atomics"] < 4 * end["nmc"]


def test_hits_first_keeps_the_row_open():
    """Hits that wait for the bus lose their row to an older miss under ``oldest``, and go before it otherwise."""
    opening = [(0, READ, group, 0, 0, 0) for group in range(4)]
    busy = [(100, READ, 1 + i % 3, 0, 0, i // 3) for i in range(30)]
    hits = [(101, READ, 0, 0, 0, i) for i in range(10)]
    traffic = np.array([*opening, *busy, (101, READ, 0, 0, 1, 0), *hits])
    place = {}
    for policy in ("oldest", "hits-first"):
        parameters = memory(HITS_FIRST, row_policy=policy)
        commands = run(new_hbm_state(parameters, 1), traffic, until=3000).commands
        assert not violations(commands, parameters)
        assert (commands[:, 1] == PRE).sum() == (2 if policy == "oldest" else 1)
        place[policy] = columns(commands)[:, 6].tolist().index(34)
    assert place["oldest"] < place["hits-first"] == len(traffic) - 1


def test_hits_of_the_other_kind_do_not_keep_a_row_open():
    traffic = np.array([(0, READ, 0, 0, 0, 0), (1, WRITE, 0, 0, 0, 5), (2, READ, 0, 0, 1, 0)])
    commands = columns(run(new_hbm_state(HITS_FIRST, 1), traffic, until=3000).commands)
    assert commands[:, 6].tolist() == [0, 2, 1]


def test_hits_first_yields_to_an_overdue_miss():
    hits = [(4 * i, READ, 0, 0, 0, i % 32) for i in range(5000)]
    traffic = np.array(sorted([*hits, (41, READ, 0, 0, 5, 0)]))
    tag = int(np.flatnonzero(traffic[:, 0] == 41)[0])
    waits = run(new_hbm_state(HITS_FIRST, 1), traffic, until=30000).waits
    assert HITS_FIRST.age_limit_cycles <= waits[tag] <= HITS_FIRST.age_limit_cycles + 100


@pytest.mark.parametrize("substrate", ["pim", "atomics"])
def test_data_and_traffic_do_not_depend_on_who_updates(substrate):
    """Only time and DRAM's own work do; the identities hold the extra reads of atomics to one for each update."""
    near, other = simulate(BASE, "t3-mca"), simulate(BASE, "t3-mca", {"hbm.substrate": substrate})
    check(other)
    moved = [result.record.traffic_bytes_per_gpu.model_dump(exclude={"gemm_read", "total"}) for result in (near, other)]
    assert moved[0] == moved[1], "the GEMM's reads depend on what the cache still has when"
    assert other.record.time_ns.total > near.record.time_ns.total
    dram = other.record.contention.dram
    assert (dram.atomic_reads > 0, dram.mode_switches > 0) == (substrate == "atomics", substrate == "pim")
