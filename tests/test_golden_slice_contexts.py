"""The golden MemorySlice and several jobs: refused writes, abort; one test per statement of docs/hardware.md."""

import pytest
from golden_bench import fields, pack, unpack
from golden_slice_scene import BASE, LIMIT, PORTS, abort, arm, make, out, performed, request, set_range, update
from t3hdl.interface import register_map as registers
from t3hdl.interface.layouts import ConfigWrite, MemoryRequest, Op, Token
from t3sim.hardware.golden.slice.arbiter import S


def control(**fields) -> int:
    return pack(ConfigWrite, address=registers.CONTROL, data=pack(registers.Control, **fields))


@pytest.mark.parametrize("port", ["compute_write", "comm_write"])
@pytest.mark.parametrize("change", [{}, {"tagged": 0}, {"op": Op.READ_CLEAR}, {"op": 7}, {"context": 15}])
def test_a_write_to_a_range_of_another_context_is_given_back(port, change):
    bench = make()
    set_range(bench, context=3)
    comm = port == "comm_write"
    item = update(9, **{"context": 2, "stream": not comm, "source": 77, "right": 1} | change)
    bench.tick(**{port: item})
    refused, other = ("comm_refused", "compute_refused") if comm else ("compute_refused", "comm_refused")
    assert unpack(MemoryRequest, bench.item(refused)) == unpack(MemoryRequest, item) | {"stream": int(comm)}
    assert bench.item(other) is None and not bench.get("idle")
    bench.tick()
    assert (bench.item(refused), bench.item("dram"), bench.get("idle")) == (None, None, 1)


@pytest.mark.parametrize(
    ("port", "change"),
    [
        ("compute_write", {"op": Op.READ}),  # a read changes nothing
        ("compute_read", {"op": Op.STORE}),  # only write ports refuse
        ("comm_read", {"op": Op.READ_CLEAR}),
        ("comm_write", {"line": LIMIT}),
        ("comm_write", {"context": 3}),
    ],
)
def test_what_is_not_refused(port, change):
    bench = make()
    set_range(bench, context=3)
    bench.tick(**{port: update(9, **{"context": 2} | change)})
    assert bench.item("compute_refused") is None and bench.item("comm_refused") is None
    bench.tick()
    assert out(bench)["tag"] == 9


def test_both_ports_refuse_in_one_cycle_and_queues_stay_free():
    bench = make()
    set_range(bench, context=3)
    for tag in range(5):
        bench.tick(compute_write=update(tag, context=1), comm_write=update(tag + 10, context=0))
        assert fields(MemoryRequest, [bench.item("compute_refused"), bench.item("comm_refused")], "tag") == [
            tag,
            tag + 10,
        ]
    assert [bench.get(f"{port}.ready") for port in PORTS] == [1, 1, 1, 1]


def test_a_full_queue_takes_nothing_to_refuse():
    bench = make()
    set_range(bench, context=3)
    for tag in range(3):
        bench.tick(compute_write=request(tag, op=Op.STORE))
    assert bench.get("compute_write.ready") == 0
    bench.tick(compute_write=update(context=1))
    assert bench.item("compute_refused") is None


def test_the_lowest_range_decides_who_is_refused():
    bench = make()
    set_range(bench, 0, context=4)
    set_range(bench, 1, context=3)
    bench.tick(comm_write=update(1, context=3))
    assert bench.item("comm_refused") is not None
    set_range(bench, 0, valid=0)
    bench.tick(2, comm_write=update(2, context=3))
    assert bench.item("comm_refused") is None and out(bench)["tag"] == 2


def test_range_written_in_the_cycle_of_entry_refuses_the_next_item():
    bench = make()
    set_range(bench, valid=0)
    value = pack(registers.RangeAttributes, valid=1, context=3, op=Op.ADD)
    config = pack(ConfigWrite, address=registers.RANGE + 16, data=value)
    bench.tick(config=config, comm_write=update(1, context=1))
    assert bench.item("comm_refused") is None
    bench.tick(comm_write=update(2, context=1))
    assert bench.item("comm_refused") is not None


def test_disarm_wins_over_a_refusal_of_its_cycle():
    bench = make()
    set_range(bench, context=3)
    bench.tick(config=control(disarm=1), comm_write=update(context=1))
    assert bench.item("comm_refused") is None


def test_abort_drops_the_ranges_of_its_context_from_the_next_cycle_on():
    bench = make()
    set_range(bench, 0, context=3)
    set_range(bench, 1, context=4, base=LIMIT, limit=LIMIT + 8)
    bench.tick(config=control(abort=1, context=3), comm_write=update(1, context=3))
    bench.tick(comm_write=update(2, context=2))
    bench.tick(comm_write=update(3, context=4, line=LIMIT), dram_ready=1)
    seen = []
    while item := out(bench):
        seen.append((item["tag"], item["tagged"]))
        bench.tick()
    assert seen == [(2, 0), (3, 1)], "the first one left before: it had entered in the cycle of the abort"
    first = registers.RANGE + 16
    bench.write(first, pack(registers.RangeAttributes, valid=1, context=3))  # base and limit are what they were
    bench.tick(comm_write=update(context=1))
    assert bench.item("comm_refused") is not None


def test_updates_of_an_aborted_context_give_no_token():
    bench = make()
    set_range(bench, 0, context=3)
    set_range(bench, 1, context=4, base=LIMIT, limit=LIMIT + 8)
    for row, context in enumerate((3, 4, 3)):
        bench.tick(comm_write=update(row=row, context=context, line=BASE if context == 3 else LIMIT))
    abort(bench, 3)
    bench.tick(5, dram_ready=1)
    assert fields(Token, [bench.item("token")], "context", "row") == [(4, 1)]
    bench.tick(token_ready=1)
    assert bench.item("token") is None


def test_a_token_pushed_in_the_cycle_of_the_abort_stays():
    bench = make()
    set_range(bench, context=3)
    bench.tick(2, comm_write=update())
    assert out(bench)["tagged"] == 1
    bench.tick(config=control(abort=1, context=3), dram_ready=1)
    assert bench.item("token") is not None


@pytest.mark.parametrize("end", [{"arm": 1, "descriptors": 1, "context": 3}, {"disarm": 1}])
def test_arm_and_disarm_end_what_an_abort_began(end):
    bench = make()
    set_range(bench, context=3)
    abort(bench, 3)
    bench.tick(config=control(**end))
    set_range(bench, context=3)
    bench.tick(3, comm_write=update(), dram_ready=1)
    assert bench.item("token") is not None


def test_arm_of_another_context_does_not_end_an_abort():
    bench = make()
    set_range(bench, context=3)
    bench.tick(2, comm_write=update())
    abort(bench, 3)
    arm(bench, 4)
    bench.tick(3, dram_ready=1)
    assert bench.item("token") is None


def test_performed_updates_of_an_aborted_context_are_no_longer_outstanding():
    bench = performed()
    for row in range(2):
        bench.tick(comm_write=update(row=row))
    bench.tick(0, dram_ready=1)
    done = []
    for _ in range(4):
        done += [bench.item("dram")] if bench.item("dram") is not None else []
        bench.tick()
    assert len(done) == 2
    abort(bench, 3)
    for item in done:
        bench.tick(update_done=item)
    bench.tick()
    assert bench.item("token") is None and bench.state[S.outstanding] == 0
