"""The golden MemorySlice against hand-computed scenarios, one per statement of docs/hardware.md."""

import random
from collections import Counter

import numpy as np
import pytest
from golden_bench import pack, unpack
from golden_slice_scene import (
    BASE,
    LIMIT,
    PORTS,
    arm,
    drain,
    make,
    out,
    request,
    set_arbiter,
    set_range,
    update,
)
from t3hdl.interface import register_map as registers
from t3hdl.interface.layouts import NEVER, ConfigWrite, Dtype, MemoryRequest, Op, Token
from t3sim.hardware.golden.slice.arbiter import S


def test_reset_state_is_complete():
    bench = make()
    fresh = bench.state.copy()
    header = 3
    bench.state[header:] = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, len(fresh) - header)
    bench.instance.reset()
    assert np.array_equal(bench.state, fresh)
    assert [bench.get(f"{port}.ready") for port in PORTS] == [1, 1, 1, 1]
    assert (bench.item("dram"), bench.item("token"), bench.get("served"), bench.get("comm_seen")) == (None, None, 0, 0)
    assert (bench.get("idle"), bench.get("wake_at")) == (1, NEVER)


@pytest.mark.parametrize("port", range(4))
def test_two_cycles_from_port_to_dram_and_stream_bit_by_port(port):
    bench = make()
    bench.tick(**{PORTS[port]: request(77, stream=1 - port // 2, source=255, right=1, row=4095, col=1)})
    assert out(bench) is None
    bench.tick()
    item = unpack(MemoryRequest, bench.item("dram"))
    assert item["stream"] == port // 2
    expected = unpack(MemoryRequest, request(77, source=255, right=1, row=4095, col=1))
    assert item | {"stream": 0} == expected


def test_queues_hold_two_and_an_accepted_item_keeps_every_bit():
    bench = make()
    words = [request(tag=0xFFFFFFFF - i, bottom=1, line=(1 << 39) - 1, wf=15) for i in range(4)]
    for i in range(3):
        assert bench.get("compute_read.ready") == 1
        bench.tick(compute_read=words[i])
    assert bench.get("compute_read.ready") == 0  # one in `out`, two in the queue
    bench.tick(compute_read=words[3])  # not taken
    assert drain(bench) == [0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD]


def test_out_transfers_every_cycle_and_holds_without_ready():
    bench = make()
    bench.tick(2, compute_read=request(1))
    for _ in range(5):
        assert out(bench)["tag"] == 1
        bench.tick()
    bench.tick(0, dram_ready=1)
    for i in range(2, 12):
        bench.tick(compute_read=request(i))
    assert drain(bench) == [10, 11]  # the others left one per cycle


def test_match_turns_store_into_the_range_operation():
    bench = make()
    set_range(bench)
    bench.tick(2, comm_write=update(1, dtype=Dtype.INT32))
    assert {"op": Op.ADD, "dtype": Dtype.FP32, "tagged": 1, "stream": 1}.items() <= out(bench).items()


@pytest.mark.parametrize("op", [Op.ADD, Op.MIN, Op.MAX])
def test_match_keeps_other_updates_but_sets_the_dtype(op):
    bench = make()
    set_range(bench, op=Op.ADD)
    bench.tick(2, compute_write=update(op=op))
    assert {"op": op, "dtype": Dtype.FP32, "tagged": 1}.items() <= out(bench).items()


@pytest.mark.parametrize(
    "change",
    [
        {"line": BASE - 1},
        {"line": LIMIT},
        {"tagged": 0},
        {"op": Op.READ},
        {"op": Op.READ, "context": 2},
        {"op": Op.READ_CLEAR},
    ],
)
def test_no_match_clears_tagged_and_leaves_the_rest(change):
    bench = make()
    set_range(bench)
    bench.tick(2, compute_write=update(3, **change))
    assert out(bench) == unpack(MemoryRequest, update(3, **change)) | {"tagged": 0}
    bench.tick(3, dram_ready=1)
    assert bench.item("token") is None


@pytest.mark.parametrize("line", [BASE, LIMIT - 1])
def test_limits_of_a_range(line):
    bench = make()
    set_range(bench)
    bench.tick(2, comm_write=update(line=line))
    assert out(bench)["tagged"] == 1


def test_read_ports_never_track():
    bench = make()
    set_range(bench)
    bench.tick(2, comm_read=update(op=Op.ADD))
    assert out(bench)["tagged"] == 0


def test_invalid_range_does_not_match_and_lowest_range_wins():
    bench = make()
    set_range(bench, 1, epoch=1, op=Op.MAX)
    set_range(bench, 0, valid=0)
    bench.tick(2, comm_write=update())
    assert out(bench)["op"] == Op.MAX
    bench.tick(2, dram_ready=1)
    set_range(bench, 0, op=Op.MIN)  # holds the line now
    bench.tick(2, comm_write=update(), dram_ready=0)
    assert out(bench)["op"] == Op.MIN


def test_range_written_in_the_cycle_of_entry_acts_on_the_next_item():
    bench = make()
    set_range(bench, valid=0)
    value = pack(registers.RangeAttributes, valid=1, context=3, op=Op.ADD)
    bench.tick(config=pack(ConfigWrite, address=registers.RANGE + 16, data=value), comm_write=update(1))
    bench.tick(comm_write=update(2))
    assert out(bench)["tagged"] == 0
    bench.tick(dram_ready=1)
    assert out(bench)["tagged"] == 1


def test_served_counts_grants_while_measured():
    bench = make()
    arm(bench)
    bench.tick(3, dram_ready=1, compute_read=request())
    assert bench.get("served") == 0
    bench.tick(measure=1)
    for i in range(5):
        bench.tick(compute_read=request(), comm_read=request()) if i < 2 else bench.tick()
    assert bench.get("served") == 4
    arm(bench)
    assert bench.get("served") == 0


def test_served_saturates():
    bench = make()
    bench.tick(0, measure=1, dram_ready=1)
    bench.state[S.served] = (1 << 24) - 2
    for _ in range(2):
        bench.tick(2, compute_read=request())
        assert bench.get("served") == (1 << 24) - 1


def test_comm_seen_is_the_first_comm_grant_after_arm():
    bench = make()
    bench.tick(3, comm_read=request(), dram_ready=1)
    assert bench.get("comm_seen") == 0
    arm(bench)
    bench.tick(3, compute_read=request())
    assert bench.get("comm_seen") == 0
    bench.tick(comm_write=request(op=Op.STORE))
    assert bench.get("comm_seen") == 0
    bench.tick()
    assert bench.get("comm_seen") == 1


def test_arm_wins_over_a_grant_of_its_cycle():
    bench = make()
    arm(bench)
    bench.tick(measure=1, comm_read=request())
    arm(bench)
    assert (bench.get("served"), bench.get("comm_seen"), out(bench)["tag"]) == (0, 0, 0)


def test_disarm_clears_all_but_the_configuration():
    bench = make()
    set_range(bench)
    set_arbiter(bench, threshold=1, starvation=9, burst=3)
    configured = bench.state.copy()
    arm(bench)
    for row in range(4):
        bench.tick(comm_write=update(row=row), compute_read=request(), dram_ready=row % 2, measure=1)
    disarm = pack(ConfigWrite, address=registers.CONTROL, data=pack(registers.Control, disarm=1))
    bench.tick(config=disarm, comm_write=update(), token_ready=1, dram_ready=1)
    assert np.array_equal(bench.state, configured)
    assert [bench.get(f"{port}.ready") for port in PORTS] == [1, 1, 1, 1]
    assert (bench.item("dram"), bench.item("token"), bench.get("served"), bench.get("comm_seen")) == (None, None, 0, 0)


def test_address_of_a_missing_range_changes_nothing():
    bench = make(ranges=1)
    before = bench.state.copy()
    set_range(bench, 1)
    bench.write(registers.RANGE + 24, 5)
    assert np.array_equal(bench.state, before)


@pytest.mark.parametrize("count_on", ["accepted", "performed"])
@pytest.mark.parametrize("mca", [0, 1])
def test_random_traffic_loses_and_doubles_nothing(count_on, mca):
    seed = 7 + mca
    print(f"seed {seed}")
    rng = random.Random(seed)
    bench = make(count_on=count_on, token_queue=3)
    set_range(bench)
    set_arbiter(bench, mca=mca, fixed=0, starvation=5, burst=2)
    sent, received = ({port: [] for port in PORTS} for _ in range(2))
    updates, counted, in_memory = Counter(), Counter(), []
    for cycle in range(3000):
        offered = {port: update(4 * cycle + i, row=rng.randrange(2), line=BASE - rng.randrange(2) * 4,
                                op=Op.READ if i % 2 == 0 else Op.STORE)
                   for i, port in enumerate(PORTS) if rng.random() < 0.5 and cycle < 2900}  # fmt: skip
        levels = {"threshold": 4, "occupancy": rng.choice((3, 4))}
        ready = {"dram_ready": rng.random() < 0.7 or cycle >= 2900, "token_ready": rng.random() < 0.5}
        pulses = {}
        if in_memory and rng.random() < 0.8:  # only writes of earlier cycles: a memory cannot be faster
            pulses["update_done"] = in_memory.pop(rng.randrange(len(in_memory)))
        for port, item in offered.items():
            sent[port] += [unpack(MemoryRequest, item)["tag"]] if bench.get(f"{port}.ready") else []
        if ready["dram_ready"] and (item := out(bench)):
            received[PORTS[item["tag"] % 4]].append(item["tag"])
            updates[item["row"]] += item["tagged"]
            in_memory += [bench.item("dram")]
        if ready["token_ready"] and bench.item("token") is not None:
            token = unpack(Token, bench.item("token"))
            counted[token["row"]] += token["n"]
        bench.tick(**offered, **levels, **pulses, **{name: int(value) for name, value in ready.items()})
    assert all(len(tags) > 200 for tags in sent.values())
    assert received == sent
    assert counted == updates
    assert sum(updates.values()) > 200
