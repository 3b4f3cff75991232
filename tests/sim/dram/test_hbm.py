"""The HBM model: legal commands, order, exact skipping, bounded waits, NMC timing; and its checker finds mutants."""

import numpy as np
import pytest
from t3hdl.interface.layouts import BankHash, LineOrder
from t3hdl.interface.layouts import dram_address as dram_address_of
from t3sim.dram.hbm import (
    FOREVER,
    READ,
    UPDATE,
    WRITE,
    accepts,
    dram_address,
    enqueue,
    enqueue_address,
    new_hbm_state,
    occupancy,
    statistics,
    tick,
)
from t3sim.dram.state import COLUMN, REFRESH
from t3sim.inputs.machine.hbm import HbmSection

from tests.sim.dram.hbm_reference import reorderings, run, violations
from tests.sim.dram.memory import memory

QUIET = memory(refresh=False)
# Timings in which no rule hides behind another one, and many refreshes in a short run.
DISTINCT = memory(nRC=56, nRRDS=4, nRRDL=7, nFAW=24, nRTPL=6, nCCDL=5, nmc_update_cycles=9, nRFC=60, nREFI=300)
# What decides about rows and updates, with the queue modes.
WAYS = pytest.mark.parametrize(
    ("queue", "service_order", "substrate", "row_policy"),
    [
        ("shared", "reads-first", "nmc", "oldest"),
        ("split", "reads-first", "nmc", "oldest"),
        ("shared", "reads-first", "nmc", "hits-first"),
        ("shared", "reads-first", "pim", "oldest"),
        ("split", "reads-first", "pim", "hits-first"),
        ("shared", "reads-first", "atomics", "oldest"),
        ("split", "reads-first", "atomics", "hits-first"),
        ("shared", "age", "nmc", "oldest"),
        ("shared", "age", "nmc", "hits-first"),
        ("split", "age", "pim", "oldest"),
        ("shared", "age", "atomics", "hits-first"),
    ],
)


def mixed_traffic(seed: int, accesses: int = 2000, rows: int = 3, kinds: tuple[float, ...] = (0.5, 0.25, 0.25)):
    """Bursts and pauses of reads, writes and updates on few lines, so that addresses meet often."""
    rng = np.random.default_rng(seed)
    pauses = rng.choice([0, 1, 3, 200], size=accesses, p=[0.6, 0.3, 0.095, 0.005])
    repeats = rng.integers(1, 9, accesses)
    places = np.stack([rng.integers(0, n, accesses) for n in (4, 4, rows, 8)], axis=1)
    places = np.repeat(places, repeats, axis=0)[:accesses]
    places[:, 3] = (places[:, 3] + np.arange(accesses)) % 32
    return np.column_stack([np.cumsum(pauses), rng.choice(3, size=accesses, p=kinds), places])


def stream(parameters: HbmSection, kind: int, lines: int):
    """Consecutive lines of a channel, all at once."""
    order = LineOrder[parameters.line_order.replace("-", "_").upper()]
    return np.array([(0, kind, *dram_address_of(line, order, BankHash.NONE)) for line in range(lines)])


@WAYS
@pytest.mark.parametrize("refresh", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_commands_are_legal_and_lines_keep_their_order(queue, service_order, substrate, row_policy, refresh, seed):
    parameters = memory(
        DISTINCT, queue=queue, service_order=service_order, substrate=substrate, row_policy=row_policy,
        refresh=refresh, age_limit_cycles=300,
    )  # fmt: skip
    traffic = mixed_traffic(seed)
    result = run(new_hbm_state(parameters, 1), traffic, until=60000)
    assert (result.waits >= 0).all(), f"seed {seed}: every access issues"
    assert not violations(result.commands, parameters), f"seed {seed}"
    assert not reorderings(result.commands, traffic), f"seed {seed}"
    assert (result.commands[:, 1] == REFRESH).sum() == (60000 - 1) // 300 * refresh


@WAYS
@pytest.mark.parametrize("refresh", [False, True])
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_skipping_to_wake_is_exact(queue, service_order, substrate, row_policy, refresh, seed):
    parameters = memory(
        DISTINCT, queue=queue, service_order=service_order, substrate=substrate, row_policy=row_policy,
        refresh=refresh, queue_lines=24, write_lines=12, age_limit_cycles=150,
    )  # fmt: skip
    traffic = mixed_traffic(seed)
    skipped, full = new_hbm_state(parameters, 1), new_hbm_state(parameters, 1)
    by_wake = run(skipped, traffic, until=40000)
    by_cycle = run(full, traffic, until=40000, every_cycle=True)
    assert by_cycle.wake_errors == 0, f"seed {seed}: a command before the promised wake"
    np.testing.assert_array_equal(by_wake.commands, by_cycle.commands, f"seed {seed}")
    assert statistics(skipped, 0) == statistics(full, 0)


MUTANTS = {
    "column_any": "nCCDS", "column_group": "nCCDL", "read_to_write": "data bus", "write_to_read_any": "nWTRS",
    "write_to_read_group": "nWTRL", "update_group": "nmc_update_cycles", "act_to_read": "nRCDRD",
    "act_to_write": "nRCDWR", "act_to_pre": "nRAS", "act_to_act": "nRC", "act_any": "nRRDS", "act_group": "nRRDL",
    "four_acts": "nFAW", "act_bus": "row bus", "pre_to_act": "nRP", "read_to_pre": "nRTPL", "write_to_pre": "nWR",
    "act_to_refresh": "nRC before REF", "pre_to_refresh": "nRP before REF", "refresh_to_act": "nRFC",
    "refresh_interval": "nREFI", "read_done": "done", "write_done": "done", "switch_to_act": "pim_switch_cycles",
    "atomic_write": "atomic_cycles",
}  # fmt: skip
SUBSTRATE_OF = {"switch_to_act": "pim", "atomic_write": "atomics"}


@pytest.mark.parametrize("name", MUTANTS)
def test_checker_finds_a_distance_that_is_one_clock_too_loose(name):
    parameters = memory(DISTINCT, substrate=SUBSTRATE_OF.get(name, "nmc"))
    for seed, kinds in enumerate([(0.5, 0.25, 0.25), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)]):
        hbm = new_hbm_state(parameters, 1)
        loose = 1 if name == "refresh_interval" else -1
        hbm.channel["distance"][name] += loose
        hbm.channel["next_refresh"] = hbm.channel["distance"]["refresh_interval"]
        traffic = mixed_traffic(seed, accesses=8000, rows=50, kinds=kinds)
        found = violations(run(hbm, traffic, until=60000).commands, parameters)
        if any(text.startswith(MUTANTS[name]) for text in found):
            return
    pytest.fail(f"{name} one clock too loose, but no violation of {MUTANTS[name]} was found")


def test_every_timing_has_a_mutant():
    limits = {
        "burst",
        "hits_by_age",
        "read_lines",
        "write_lines",
        "all_lines",
        "drain_above",
        "drain_below",
        "age_limit",
        "line_order",
        "bank_hash",
        "by_age",
        "hits_first",
        "pim",
        "atomic",
        "update_served",
        "classes",
    }
    # nREFI is longer than the first; a refresh rarely comes just after a switch, and next to it only "nREFI" is seen
    hidden = {"refresh_to_refresh", "switch_to_refresh"}
    assert set(new_hbm_state(QUIET, 1).channel["distance"].dtype.names) == set(MUTANTS) | limits | hidden


def test_checker_finds_reordered_lines():
    traffic = mixed_traffic(5)
    commands = run(new_hbm_state(QUIET, 1), traffic, until=60000).commands
    columns = np.flatnonzero(commands[:, 1] == COLUMN)
    assert not reorderings(commands, traffic)
    assert reorderings(np.concatenate([commands[: columns[0]], commands[columns[::-1]]]), traffic)


@pytest.mark.parametrize("kinds", [(WRITE, READ), (UPDATE, READ), (READ, WRITE), (WRITE, UPDATE, READ, UPDATE)])
def test_accesses_to_one_line_keep_their_order_against_the_scheduler(kinds):
    """Each pair would be swapped if only kind and readiness counted: other lines make the younger kind preferred."""
    reads = [(0, READ, 1, 0, 0, i) for i in range(8)]
    writes = [(0, WRITE, 2, 0, 0, i) for i in range(30)]
    for others in (reads, writes):
        traffic = np.array(others + [(0, kind, 0, 0, 0, 5) for kind in kinds])
        commands = run(new_hbm_state(QUIET, 1), traffic, until=3000).commands
        issued = commands[(commands[:, 1] == COLUMN) & (commands[:, 2] == 0)]
        assert issued[:, 5].tolist() == list(kinds)


def test_idle_latencies():
    hbm = new_hbm_state(QUIET, 1)
    assert tick(hbm, 0, 0) == (FOREVER, -1, 0)
    for now, line, kind, issues, done in [
        (10, 0, READ, 10 + 15, 10 + 15 + 14 + 2),  # ACT takes two clocks, nRCDRD counts from its second
        (100, 128, WRITE, 100 + 13, 100 + 13 + 5 + 2),  # no read waits, so the write goes at once
        (200, 256, UPDATE, 200 + 13, 200 + 13 + 5 + 2),
    ]:
        enqueue(hbm, 0, now, line, 1, kind, line)
        wake, tag = now, -1
        while tag < 0:
            now = wake
            wake, tag, done_at = tick(hbm, 0, now)
        assert (now, tag, done_at) == (issues, line, done)
        assert wake == FOREVER


@pytest.mark.parametrize(
    ("kind", "line_order", "lines", "clocks"),
    [(kind, "rotate", 4096, 2) for kind in (READ, WRITE, UPDATE)]
    + [(READ, "bank-local", 128, 4), (WRITE, "bank-local", 128, 4), (UPDATE, "bank-local", 128, 8)],
)
def test_stream_rate(kind, line_order, lines, clocks):
    """The bus's rate in rotation; that of one bank group in 128 bank-local lines; an update there takes twice that."""
    parameters = memory(QUIET, line_order=line_order)
    commands = run(new_hbm_state(parameters, 1), stream(parameters, kind, lines), until=60000).commands
    columns = commands[commands[:, 1] == COLUMN]
    assert len(columns) == lines
    assert columns[-1, 0] - columns[0, 0] == pytest.approx((lines - 1) * clocks, rel=0.02)


def test_update_holds_its_bank_group_for_reads_too():
    traffic = np.array([(0, UPDATE, 0, 0, 0, 0), (0, READ, 0, 0, 0, 1)])
    slow = memory(QUIET, nmc_update_cycles=40)
    commands = run(new_hbm_state(slow, 1), traffic, until=500).commands
    cycles = commands[commands[:, 1] == COLUMN][:, 0]
    assert abs(cycles[1] - cycles[0]) in (40, slow.nCL + slow.nBL + 2 - slow.nCWL)
    assert not violations(commands, slow)


@pytest.mark.parametrize("service_order", ["reads-first", "age"])
@pytest.mark.parametrize("queue", ["shared", "split"])
@pytest.mark.parametrize("victim", [(40, WRITE, 1, 1, 5, 0), (40, READ, 0, 0, 5, 0)])
def test_waits_are_bounded_by_the_age_limit(queue, service_order, victim):
    """Row hits that keep a bank's row open would starve a miss there, and reads without end a single write."""
    hits = [(4 * i, READ, 0, 0, 0, i % 32) for i in range(5000)] + [(4 * i, READ, 2, 0, 0, i % 32) for i in range(5000)]
    traffic = np.array(sorted([*hits, victim]))
    tag = int(np.flatnonzero((traffic == victim).all(axis=1))[0])
    parameters = memory(QUIET, queue=queue, service_order=service_order)
    waits = run(new_hbm_state(parameters, 1), traffic, until=30000).waits
    assert parameters.age_limit_cycles <= waits[tag] <= parameters.age_limit_cycles + 100
    patient = run(new_hbm_state(memory(parameters, age_limit_cycles=10**6), 1), traffic, until=19000).waits
    assert patient[tag] == -1, "without the limit it would starve"


def test_row_conflicts_are_counted_by_who_closes_whose_row():
    """The owner of an open row is whoever moved last in it, not who opened it."""
    hbm = new_hbm_state(QUIET, 1)
    accesses = [  # bank, row, owner; far apart in time
        (0, 0, 1),  # opens
        (0, 0, 2),  # hits: the row is 2's now
        (0, 1, 3),  # closes 2's
        (1, 1, 5),  # in another bank: nothing
        (0, 1, 3),
        (0, 2, 3),  # closes its own
        (1, 0, 1),  # closes 5's
    ]
    for i, (bank, row, owner) in enumerate(accesses):
        enqueue_address(hbm, 0, 1000 * i, 0, bank, row, 0, READ, i, owner)
        wake = 1000 * i
        while wake < FOREVER:
            wake, _, _ = tick(hbm, 0, wake)
    conflicts = hbm.channel[0]["conflicts"]
    assert {(int(by), int(of)): int(conflicts[by, of]) for by, of in np.argwhere(conflicts)} == {
        (3, 2): 1, (3, 3): 1, (1, 5): 1,
    }  # fmt: skip
    assert conflicts.sum() == statistics(hbm, 0)["row_conflicts"] == 3


def test_queue_modes():
    shared, split = new_hbm_state(QUIET, 1), new_hbm_state(memory(QUIET, queue="split"), 1)
    for line in range(32):
        for hbm in (shared, split):
            enqueue(hbm, 0, 0, line, 1, WRITE, line)
    assert accepts(shared, 0, True) and accepts(shared, 0, False)
    assert not accepts(split, 0, True) and accepts(split, 0, False)
    for line in range(32, 64):
        assert accepts(shared, 0, False)
        enqueue(shared, 0, 0, line, 1, READ, line)
    assert occupancy(shared, 0) == 64
    assert not accepts(shared, 0, False) and not accepts(shared, 0, True)
    with pytest.raises(RuntimeError, match="full queue"):
        enqueue(shared, 0, 0, 64, 1, READ, 64)
    tick(shared, 0, 0)
    assert occupancy(shared, 0) == 63, "the activated line has left the queue"


def test_drain_between_watermarks():
    """With reads waiting, 25 writes wait; the 26th starts a drain that ends below 7."""
    hbm = new_hbm_state(QUIET, 1)
    traffic = np.array(
        [(0, READ, 0, 0, 0, i % 32) for i in range(20)]
        + [(20, WRITE, i % 4, 1, 0, i // 4) for i in range(26)]
        + [(21 + 2 * i, READ, i % 4, 0, 0, i // 4 % 32) for i in range(200)]
    )
    commands = run(hbm, traffic, until=2000).commands
    kinds = commands[commands[:, 1] == COLUMN][:, 5]
    turns = np.flatnonzero(np.diff(kinds))
    assert kinds[0] == READ and kinds[turns[0] + 1] == WRITE
    assert turns[1] - turns[0] == 26 - 6, "writes of the first drain"
    fewer = np.concatenate([traffic[:20], traffic[21:]])
    commands = run(new_hbm_state(QUIET, 1), fewer, until=350).commands
    assert (commands[commands[:, 1] == COLUMN][:, 5] == READ).all(), "25 writes do not start one while reads wait"


@pytest.mark.parametrize("second", [WRITE, UPDATE])
def test_in_order_of_age_the_bus_turns_when_what_it_is_turned_for_runs_out(second):
    """Reads first: 26 writes start a drain among older reads, and a drain leaves 6 writes to reads that come."""

    def kinds_of(service_order, *blocks):
        opened = [(0, READ, group, 0, 0, 0) for group in range(4)]
        later = [
            (100 + 5 * n, kind, i % 4, 0, 0, 8 * n + i // 4)
            for n, (kind, count) in enumerate(blocks)
            for i in range(count)
        ]
        parameters = memory(QUIET, service_order=service_order)
        commands = run(new_hbm_state(parameters, 1), np.array(opened + later), until=1000).commands
        return (commands[commands[:, 1] == COLUMN][4:, 5] != READ).astype(int).tolist()

    assert kinds_of("age", (READ, 30), (second, 26)) == [0] * 30 + [1] * 26
    assert kinds_of("reads-first", (READ, 30), (second, 26)) != [0] * 30 + [1] * 26
    assert kinds_of("age", (second, 20), (READ, 20)) == [1] * 20 + [0] * 20
    assert kinds_of("reads-first", (second, 20), (READ, 20)) == [1] * 14 + [0] * 20 + [1] * 6


def test_channels_are_independent():
    parameters, traffic = DISTINCT, mixed_traffic(21)
    hbm, alone = new_hbm_state(parameters, 3), new_hbm_state(parameters, 1)
    # the memory itself: a copy of some channels has other padding
    before, size = hbm.channel.tobytes(), hbm.channel.itemsize
    result = run(hbm, traffic, until=20000, c=1)
    after = hbm.channel.tobytes()
    assert (after[:size], after[2 * size :]) == (before[:size], before[2 * size :])
    np.testing.assert_array_equal(result.commands, run(alone, traffic, until=20000).commands)


def test_statistics_add_up():
    hbm, traffic = new_hbm_state(DISTINCT, 1), mixed_traffic(31)
    commands = run(hbm, traffic, until=60000).commands
    counts = statistics(hbm, 0)
    columns = commands[commands[:, 1] == COLUMN]
    assert [counts[name] for name in ("reads", "writes", "updates")] == np.bincount(traffic[:, 1]).tolist()
    assert counts["row_hits"] + counts["row_misses"] + counts["row_conflicts"] == len(traffic)
    assert counts["bus_cycles"] == len(traffic) * DISTINCT.nBL
    assert counts["turnarounds"] == np.count_nonzero(np.diff((columns[:, 5] != READ).astype(int)))
    assert counts["refreshes"] == (commands[:, 1] == REFRESH).sum()


@pytest.mark.long
@pytest.mark.parametrize("bank_hash", BankHash)
@pytest.mark.parametrize("order", LineOrder)
def test_dram_address_is_a_bijection(order, bank_hash):
    lines, columns = 1 << 15, 64 if order == LineOrder.GROUP_LOW else 32
    addresses = [dram_address(line, order, bank_hash) for line in range(lines)]
    assert addresses == [dram_address_of(line, order, bank_hash) for line in range(lines)]
    assert len(set(addresses)) == lines
    assert {tuple(max(a[i] for a in addresses) for i in range(4))} == {(3, 3, lines // 16 // columns - 1, columns - 1)}


@pytest.mark.parametrize(
    ("order", "groups"),
    [
        (LineOrder.ROTATE, [0, 1, 2, 3] * 8),
        (LineOrder.BANK_LOCAL, [0] * 32),
        (LineOrder.GROUP_LOW, ([0] * 8 + [1] * 8) * 2),
    ],
)
def test_bank_groups_of_consecutive_lines(order, groups):
    assert [dram_address(line, order, BankHash.NONE)[0] for line in range(32)] == groups


def test_group_low_is_the_map_of_the_public_configuration():
    """RBBBCCCB.CCCSSSSS: the letters of a line's bits from 5 on; the low two bank bits are the bank group."""
    letters = "RRRBBBCCCBCCC"
    for bit, letter in enumerate(reversed(letters)):
        group, bank, row, column = dram_address(1 << bit, LineOrder.GROUP_LOW, BankHash.NONE)
        place = letters[len(letters) - bit :].count(letter)
        assert {"B": bank << 2 | group, "R": row, "C": column}[letter] == 1 << place
        assert (group, bank, row, column).count(0) == 3


@pytest.mark.parametrize("order", LineOrder)
def test_the_hash_spreads_what_is_one_row_apart_over_all_banks(order):
    """Sixteen lines of which only the row differs: in one bank without the hash, in all with it."""
    row = next(line for line in range(1 << 12) if dram_address(line, order, BankHash.NONE) == (0, 0, 1, 0))
    banks = {name: {dram_address(i * row, order, name)[:2] for i in range(16)} for name in BankHash}
    assert (len(banks[BankHash.NONE]), len(banks[BankHash.ROW_XOR])) == (1, 16)


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("nCL", 0, "should be greater than or equal to 1"),
        ("nBL", 2.0, "should be a valid integer"),
        ("refresh", 1, "should be a valid boolean"),
        ("queue", "both", "should be 'shared' or 'split'"),
        ("line_order", "bank_local", "should be 'rotate', 'bank-local' or 'group-low'"),
        ("bank_hash", "xor", "should be 'none' or 'row-xor'"),
        ("act_clocks", 3, "should be less than or equal to 2"),
        ("queue_lines", 127, "should be less than or equal to 126"),
        ("read_lines", 7, "should be greater than or equal to 8"),
        ("drain_high", 1.5, "should be less than or equal to 1"),
        ("drain_low", "0.2", "should be a valid number"),
        ("age_limit_cycles", 0, "should be greater than or equal to 1"),
    ],
)
def test_illegal_values_are_refused(field, value, rule):
    with pytest.raises(ValueError, match=rf"\n{field}\n.*{rule}"):
        memory(**{field: value})


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("channels", 3, "a power of two"),
        ("drain_low", 0.8, "below drain_high"),
        ("nRC", 47, "at least nRAS"),
        ("nCCDL", 1, "at least nCCDS"),
        ("nRRDL", 3, "at least nRRDS"),
        ("nWTRL", 5, "at least nWTRS"),
        ("nREFI", 200, "above nRFC"),
        ("nRP", 1, "above 1"),
        ("nCWL", 18, "below nCL"),
    ],
)
def test_values_that_contradict_others_are_refused(field, value, rule):
    with pytest.raises(ValueError, match=rf"hbm\.{field} must be .*{rule}.*, not {value}"):
        memory(**{field: value})


def test_illegal_sizes_are_refused():
    with pytest.raises(ValueError, match="write_lines must be at most 63 beside 64 read_lines"):
        memory(queue="split", read_lines=64, write_lines=64)
    with pytest.raises(ValueError, match="channels must be at least 1"):
        new_hbm_state(QUIET, 0)
