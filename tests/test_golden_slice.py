"""The golden MemorySlice against hand-computed scenarios, one per statement of docs/hardware.md."""

import random
from collections import Counter

import numpy as np
import pytest
from golden_bench import Bench, fields, pack, unpack
from t3hdl import register_map as registers
from t3hdl.config import preset
from t3hdl.layouts import NEVER, ConfigWrite, Dtype, MemoryRequest, Op, Token
from t3hdl.signatures import slice_signature
from t3sim.golden import slice as golden

PORTS = ("compute_read", "compute_write", "comm_read", "comm_write")
BASE, LIMIT = 0x1000, 0x2000  # lines of range 0 in these tests


def make(**overrides) -> Bench:
    config = preset("small", **{"ranges": 2, **overrides})
    return Bench(golden, slice_signature(config), golden.init_state(config))


def set_range(bench, i=0, base=BASE, limit=LIMIT, **attributes) -> None:
    attributes = {"valid": 1, "context": 3, "epoch": 2, "op": Op.ADD, "dtype": Dtype.FP32} | attributes
    first = registers.RANGE + i * registers.RANGE_STRIDE
    bench.write(first, base)
    bench.write(first + 8, limit)
    bench.write(first + 16, pack(registers.RangeAttributes, **attributes))


def set_arbiter(bench, **values) -> None:
    values = {"mca": 1, "fixed": 1, "threshold": 127, "starvation": 64, "burst": 8} | values
    bench.write(registers.ARBITER, pack(registers.Arbiter, **values))


def request(tag=0, **values) -> int:
    return pack(MemoryRequest, **{"op": Op.READ, "line": 5, "tag": tag} | values)


def update(tag=0, **values) -> int:
    """An item that range 0 tracks."""
    named = {"op": Op.STORE, "line": BASE, "context": 3, "tagged": 1, "wf": 9, "bottom": 1, "row": 5, "col": 7}
    return request(tag, **named | values)


def out(bench) -> dict[str, int] | None:
    item = bench.item("dram")
    return None if item is None else unpack(MemoryRequest, item)


def drain(bench, limit=40) -> list[int]:
    """Tags of what leaves in the next cycles, with `dram` always ready, until 4 cycles pass without any."""
    tags, quiet = [], 0
    bench.tick(0, dram_ready=1)
    for _ in range(limit):
        item = out(bench)
        quiet = 0 if item else quiet + 1
        if quiet == 4:
            return tags
        if item:
            tags.append(item["tag"])
        bench.tick()
    raise AssertionError("the slice never stopped")


def tokens(bench, count) -> list[int]:
    """Take the next `count` tokens, one per cycle."""
    taken = []
    for _ in range(count):
        taken.append(bench.item("token"))
        bench.tick(token_ready=1)
    bench.tick(0, token_ready=0)
    return taken


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
    [{"line": BASE - 1}, {"line": LIMIT}, {"context": 2}, {"tagged": 0}, {"op": Op.READ}, {"op": Op.READ_CLEAR}],
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
    set_range(bench, 0, context=4)  # holds the line now, so its context decides
    bench.tick(2, comm_write=update(), dram_ready=0)
    assert out(bench)["tagged"] == 0


def test_range_written_in_the_cycle_of_entry_acts_on_the_next_item():
    bench = make()
    set_range(bench, valid=0)
    value = pack(registers.RangeAttributes, valid=1, context=3, op=Op.ADD)
    bench.tick(config=pack(ConfigWrite, address=registers.RANGE + 16, data=value), comm_write=update(1))
    bench.tick(comm_write=update(2))
    assert out(bench)["tagged"] == 0
    bench.tick(dram_ready=1)
    assert out(bench)["tagged"] == 1


def test_stream_alternates_write_first():
    bench = make()
    for i in range(2):
        bench.tick(compute_read=request(10 + i), compute_write=request(20 + i, op=Op.STORE))
    assert out(bench)["tag"] == 20
    assert drain(bench) == [20, 10, 21, 11]


def test_round_robin_between_streams_compute_first():
    bench = make()
    for i in range(2):
        bench.tick(compute_read=request(10 + i), comm_read=request(20 + i))
    assert drain(bench) == [10, 20, 11, 21]
    bench.tick(comm_read=request(30))  # one alone: that one, whatever was last
    assert drain(bench) == [30]


@pytest.mark.parametrize(("occupancy", "order"), [(9, [10, 11, 20, 21]), (10, [10, 11])])
def test_mca_compute_first_then_comm_below_the_threshold(occupancy, order):
    bench = make()
    set_arbiter(bench, threshold=10)
    bench.tick(0, occupancy=occupancy)
    for i in range(2):
        bench.tick(compute_read=request(10 + i), comm_read=request(20 + i))
    assert drain(bench) == order


def test_mca_level_counts_the_request_in_out():
    bench = make()
    set_arbiter(bench, threshold=10)
    bench.tick(occupancy=9, comm_read=request(1))
    bench.tick(comm_read=request(2))
    assert out(bench)["tag"] == 1  # 9 + 0 < 10
    bench.tick(dram_ready=1)
    assert out(bench) is None  # 9 + 1 < 10 is false in the cycle of the transfer
    bench.tick()
    assert out(bench)["tag"] == 2


def test_mca_threshold_input_when_not_fixed_and_127_is_no_limit():
    bench = make()
    set_arbiter(bench, fixed=0, threshold=127)
    bench.tick(2, comm_read=request(1), threshold=5, occupancy=5)
    bench.tick(3)
    assert out(bench) is None
    assert bench.get("idle") == 1  # blocked by the threshold
    bench.tick(threshold=6)
    assert out(bench)["tag"] == 1
    bench.tick(occupancy=127, threshold=127, dram_ready=1, comm_read=request(2))
    bench.tick()
    assert out(bench)["tag"] == 2


def blocked_comm(**arbiter) -> Bench:
    """Communication blocked by the threshold, the candidate visible in the present cycle for the first time."""
    bench = make()
    set_arbiter(bench, threshold=1, **arbiter)
    bench.tick(comm_read=request(1), occupancy=1)
    return bench


def test_starvation_lets_comm_through_after_its_cycles():
    bench = blocked_comm(starvation=7, burst=1)
    since = bench.now
    bench.tick()
    assert (bench.get("idle"), bench.get("wake_at")) == (1, since + 7)
    while out(bench) is None:
        bench.tick()
    assert bench.now - 1 == since + 7  # granted in the cycle with now - since = 7


def test_starvation_zero_waits_for_the_waiting_bit_only():
    bench = blocked_comm(starvation=0)
    since = bench.now
    bench.until("dram.valid")
    assert bench.now - 1 == since + 1


@pytest.mark.parametrize(("burst", "length"), [(0, 1), (1, 1), (2, 2), (3, 3)])
def test_burst_after_starvation(burst, length):
    bench = blocked_comm(starvation=5, burst=burst)
    bench.tick(0, dram_ready=1)
    seen = []
    tag = 2
    for _ in range(5 + length + 4):
        ready = bench.get("comm_read.ready")
        bench.tick(**({"comm_read": request(tag)} if ready else {}))
        tag += ready
        seen.append(out(bench)["tag"] if out(bench) else 0)
    assert seen == [0] * 5 + list(range(1, length + 1)) + [0] * 4


def test_burst_goes_before_compute():
    bench = blocked_comm(starvation=3, burst=2)
    bench.tick(comm_read=request(2), dram_ready=1)
    bench.tick(2)
    bench.tick(compute_read=request(9))
    assert drain(bench) == [1, 2, 9]


def test_burst_ends_when_comm_has_no_candidate():
    bench = blocked_comm(starvation=3, burst=8)
    bench.tick(0, dram_ready=1)
    bench.until("dram.valid")
    bench.tick(2)  # a cycle without candidate
    bench.tick(comm_read=request(2))
    since = bench.now
    bench.until("dram.valid")
    assert bench.now - 1 == since + 3  # starved again, not let through by the rest of the burst


def test_a_grant_ends_the_wait():
    bench = make()
    set_arbiter(bench, threshold=1, starvation=10)
    bench.tick(comm_read=request(1), occupancy=1)
    bench.tick(5, comm_read=request(2), dram_ready=1)
    bench.tick(occupancy=0)  # granted below the threshold
    assert out(bench)["tag"] == 1
    since = bench.now  # request 2 waits from here
    bench.tick(occupancy=1)
    bench.until("dram.valid")
    assert (out(bench)["tag"], bench.now - 1) == (2, since + 10)


def test_the_wait_goes_on_while_compute_is_served():
    bench = make()
    set_arbiter(bench, threshold=0, starvation=6, burst=1)
    bench.tick(comm_read=request(1), compute_read=request(10), dram_ready=1)
    since, order = bench.now, []
    for i in range(12):
        bench.tick(compute_read=request(11 + i))
        order.append(out(bench)["tag"])
    assert order.index(1) == 6  # granted at since + 6
    assert bench.now == since + 12


def test_switching_to_round_robin_ends_wait_and_burst():
    bench = make()
    set_arbiter(bench, threshold=0, starvation=6, burst=8)
    for tag in range(3):
        bench.tick(comm_read=request(tag))
    bench.until("dram.valid")  # the first of a burst; the second has begun to wait
    bench.tick()
    set_arbiter(bench, mca=0)
    bench.tick(2)
    set_arbiter(bench, threshold=0, starvation=6)
    since = bench.now  # neither the burst nor the wait goes on
    bench.tick(dram_ready=1)
    assert out(bench) is None
    bench.until("dram.valid")
    assert (out(bench)["tag"], bench.now - 1) == (1, since + 6)


def test_count_accepted_makes_a_token_at_the_transfer():
    bench = make()
    set_range(bench)
    bench.tick(2, comm_write=update(right=1))
    bench.tick(3)
    assert bench.item("token") is None  # not before `dram` takes it
    bench.tick(dram_ready=1)
    assert unpack(Token, bench.item("token")) == {
        "context": 3, "epoch": 2, "row": 5, "col": 7, "wf": 9, "right": 1, "bottom": 1, "n": 1,
    }  # fmt: skip
    word = bench.item("token")
    bench.tick(3)
    assert bench.item("token") == word
    bench.tick(token_ready=1)
    assert bench.item("token") is None


def test_tokens_of_one_tile_merge_but_never_into_the_head():
    bench = make(token_queue=8)
    set_range(bench)
    bench.tick(0, dram_ready=1)
    for _ in range(6):
        bench.tick(comm_write=update())
    bench.tick(3)
    assert fields(Token, tokens(bench, 2), "n") == [1, 5]
    assert bench.item("token") is None


@pytest.mark.parametrize("change", [{"row": 6}, {"col": 6}, {"wf": 1}, {"right": 1}, {"bottom": 0}])
def test_tokens_of_different_tiles_do_not_merge(change):
    bench = make(token_queue=8)
    set_range(bench)
    bench.tick(0, dram_ready=1)
    for item in (update(), update(), update(**change), update(**change), update()):
        bench.tick(comm_write=item)
    bench.tick(3)
    assert fields(Token, tokens(bench, 4), "n") == [1, 1, 2, 1]
    assert bench.item("token") is None


def test_merge_into_the_entry_left_by_a_pop():
    bench = make(token_queue=8)
    set_range(bench)
    bench.tick(0, dram_ready=1)
    bench.tick(comm_write=update(row=1))
    bench.tick(comm_write=update(row=2))
    bench.tick(comm_write=update(row=2))
    bench.tick()  # the third is in `out`; entries: row 1 and row 2
    bench.tick(token_ready=1)  # pops row 1 while the third is counted
    bench.tick(0, token_ready=0)
    assert fields(Token, tokens(bench, 1), "row", "n") == [(2, 2)]
    assert bench.item("token") is None


def test_pop_of_the_only_entry_appends():
    bench = make()
    set_range(bench)
    bench.tick(0, dram_ready=1)
    bench.tick(comm_write=update())
    bench.tick(2, comm_write=update())
    assert unpack(Token, bench.item("token"))["n"] == 1
    bench.tick(token_ready=1)  # pop and push of the same tile in one cycle
    assert unpack(Token, bench.item("token"))["n"] == 1


def test_a_token_counts_to_1023_at_most():
    bench = make(token_queue=4)
    set_range(bench)
    bench.tick(0, dram_ready=1)
    for _ in range(1 + 1023 + 2):
        bench.tick(comm_write=update())
    bench.tick(3)
    assert fields(Token, tokens(bench, 3), "n") == [1, 1023, 2]


def test_token_room_gates_tracked_writes_only():
    bench = make(token_queue=2)
    set_range(bench)
    bench.tick(0, dram_ready=1)
    for row in range(4):
        bench.tick(comm_write=update(row, row=row))
    bench.tick(4)
    assert out(bench) is None  # two tokens fill the queue
    assert bench.get("idle") == 1  # blocked by tokens
    bench.tick(comm_read=request(50), compute_write=request(51, op=Op.STORE))
    assert drain(bench) == [51, 50]
    bench.tick(token_ready=1)
    bench.tick(token_ready=0)
    assert out(bench)["tag"] == 2
    assert bench.get("dram.valid") == 1


def test_token_room_counts_the_item_in_out():
    bench = make(token_queue=2)
    set_range(bench)
    for row in range(3):
        bench.tick(comm_write=update(row, row=row))
    bench.tick(dram_ready=1)  # 0 + 0 + 1 < 2: the second goes to `out`
    assert out(bench)["tag"] == 1
    bench.tick()  # 1 + 0 + 1 < 2 is false
    assert out(bench) is None


def performed() -> Bench:
    bench = make(count_on="performed", token_queue=3)
    set_range(bench)
    bench.tick(0, dram_ready=1)
    return bench


def test_count_performed_counts_at_update_done():
    bench = performed()
    bench.tick(2, comm_write=update())
    word = bench.item("dram")
    bench.tick(5)
    assert bench.item("token") is None
    bench.tick(update_done=word)
    assert fields(Token, [bench.item("token")], "n", "epoch", "row", "col", "bottom") == [(1, 2, 5, 7, 1)]
    bench.tick(update_done=word)  # nothing is outstanding any more
    bench.tick(token_ready=1)
    assert bench.item("token") is None


def test_outstanding_updates_take_token_room():
    bench = performed()
    words = []
    for row in range(5):
        bench.tick(comm_write=update(row, row=row))
        words += [bench.item("dram")] if out(bench) else []
    bench.tick(3)
    assert fields(MemoryRequest, words, "tag") == [0, 1, 2]
    assert out(bench) is None  # three outstanding
    bench.tick(update_done=words[0])
    bench.tick()
    assert out(bench) is None  # two outstanding and a token
    bench.tick(token_ready=1)
    bench.tick(token_ready=0)
    assert out(bench)["tag"] == 3


def test_update_done_of_an_untracked_write_is_ignored():
    bench = performed()
    bench.tick(3, comm_write=update())
    bench.tick(update_done=update(tagged=0, op=Op.ADD))
    assert bench.item("token") is None
    bench.tick(update_done=update(op=Op.ADD))
    assert bench.item("token") is not None


def test_epoch_of_update_done_is_that_of_the_range_now():
    bench = performed()
    for _ in range(3):
        bench.tick(comm_write=update())
    bench.tick(3)
    set_range(bench, epoch=1)
    bench.tick(update_done=update(op=Op.ADD))
    set_range(bench, valid=0)
    bench.tick(update_done=update(op=Op.ADD, row=6))
    assert fields(Token, tokens(bench, 2), "epoch") == [1, 0]


def test_update_done_is_ignored_when_counting_accepted():
    bench = make()
    set_range(bench)
    bench.tick(update_done=update(op=Op.ADD))
    bench.tick(3)
    assert bench.item("token") is None


def test_served_counts_grants_while_measured():
    bench = make()
    bench.write(registers.CONTROL, pack(registers.Control, arm=1, descriptors=1))
    bench.tick(3, dram_ready=1, compute_read=request())
    assert bench.get("served") == 0
    bench.tick(measure=1)
    for i in range(5):
        bench.tick(compute_read=request(), comm_read=request()) if i < 2 else bench.tick()
    assert bench.get("served") == 4
    bench.write(registers.CONTROL, pack(registers.Control, arm=1, descriptors=1))
    assert bench.get("served") == 0


def test_served_saturates():
    bench = make()
    bench.tick(0, measure=1, dram_ready=1)
    bench.state[golden._S.served] = (1 << 24) - 2
    for _ in range(2):
        bench.tick(2, compute_read=request())
        assert bench.get("served") == (1 << 24) - 1


def test_comm_seen_is_the_first_comm_grant_after_arm():
    bench = make()
    bench.tick(3, comm_read=request(), dram_ready=1)
    assert bench.get("comm_seen") == 0
    bench.write(registers.CONTROL, pack(registers.Control, arm=1, descriptors=1))
    bench.tick(3, compute_read=request())
    assert bench.get("comm_seen") == 0
    bench.tick(comm_write=request(op=Op.STORE))
    assert bench.get("comm_seen") == 0
    bench.tick()
    assert bench.get("comm_seen") == 1


def test_arm_wins_over_a_grant_of_its_cycle():
    bench = make()
    bench.write(registers.CONTROL, pack(registers.Control, arm=1, descriptors=1))
    bench.tick(measure=1, comm_read=request())
    bench.write(registers.CONTROL, pack(registers.Control, arm=1, descriptors=1))
    assert (bench.get("served"), bench.get("comm_seen"), out(bench)["tag"]) == (0, 0, 0)


def test_disarm_clears_all_but_the_configuration():
    bench = make()
    set_range(bench)
    set_arbiter(bench, threshold=1, starvation=9, burst=3)
    configured = bench.state.copy()
    bench.write(registers.CONTROL, pack(registers.Control, arm=1, descriptors=1))
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
