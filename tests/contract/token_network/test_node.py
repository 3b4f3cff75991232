"""Token nodes: routing, latency, turns, merging only while tokens wait, no count lost.

2 x 1, 2 x 2, and 4 x 4, in which rows that are multiples of four go to output 0 (all columns and wavefronts are 0);
``epoch`` tells the tokens apart.
"""

import gc

import numpy as np
import pytest
from t3hdl.interface.layouts import NEVER
from t3hdl.token_network.network import TokenNode
from t3sim.hardware.golden import node as golden_node

from tests.contract.bench import bench_of
from tests.contract.token_network.scene import FIELDS, accept, counts, enter, left, node, run_random_traffic, token

FULL = token(n=1023, context=15, epoch=3, wf=15, right=1, bottom=1)
small = pytest.mark.parametrize("outputs", [1, 2])


def check_ports(bench, inputs, outputs):
    """From each input to each output, alone."""
    for i in range(inputs):
        for o in range(outputs):
            bench.reset()
            accept(bench, 0)
            assert all(bench[f"token_in.{k}.ready"] for k in range(inputs))
            item = FULL | {"row": o ^ FULL["wf"]}
            enter(bench, {i: item})
            assert not bench["idle"] and bench.item(f"token_out.{o}") is None
            bench.step()
            shown = [bench.item(f"token_out.{k}") for k in range(outputs)]
            assert shown == [item if k == o else None for k in range(outputs)], "latency 2"
            bench.until("idle", 3)
            assert bench["wake_at"] == NEVER


@small
def test_from_every_input_to_every_output(backend, outputs):
    check_ports(node(backend, 2, outputs), 2, outputs)


@pytest.mark.own_size
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (4, 4)])
def test_ports_of_other_sizes(backend, inputs, outputs):
    check_ports(node(backend, inputs, outputs), inputs, outputs)


@pytest.mark.parametrize(("inputs", "outputs"), [(16, 1), (8, 4), (16, 8)])
def test_ports_of_large_golden_nodes(inputs, outputs):
    check_ports(node("golden", inputs, outputs), inputs, outputs)


@small
def test_latency_and_full_rate(backend, outputs):
    bench = node(backend, 2, outputs)
    bench.send["token_in.0"].extend(token(row=k, col=k) for k in range(20))
    bench.step(30)
    assert [cycle for cycle, _ in bench.sent["token_in.0"]] == list(range(20))
    latency = TokenNode(inputs=2, outputs=outputs).latency
    assert bench.got["token_out.0"] == [(cycle + latency, item) for cycle, item in bench.sent["token_in.0"]]


TILES = [
    token(row=row, col=col, wf=wf) for row in (0, 1, 2, 7, 4095) for col in (0, 1, 3, 16, 4092) for wf in (0, 1, 6, 15)
]


@pytest.mark.own_size
def test_a_token_goes_to_the_bank_of_its_row_xor_column_xor_wavefront(backend):
    bench = node(backend, 4, 4)
    for i in (0, 3):
        bench.send[f"token_in.{i}"].extend(TILES)
    bench.step(250)
    for bank in range(4):
        mine = [i for i in TILES if (i["row"] ^ i["col"] ^ i["wf"]) % 4 == bank]
        assert counts(left(bench, bank)) == counts(mine * 2)


@pytest.mark.own_size
def test_a_root_goes_by_the_bits_of_the_bank_that_the_leaves_have_left(backend):
    """Two roots of two banks each: root 0 has banks 0 and 2; it looks at bit 1 alone, whatever comes."""
    bench = bench_of(backend, "root", leaf_outputs=2, tracker_banks=4, tracker_sets=16, row_index_bits=2, blocks=64)
    for i in range(2):
        bench.send[f"token_in.{i}"].extend(TILES)
    bench.step(250)
    for output in range(2):
        mine = [i for i in TILES if (i["row"] ^ i["col"] ^ i["wf"]) >> 1 & 1 == output]
        assert counts(left(bench, output)) == counts(mine * 2)


def test_nothing_merges_while_the_output_moves(backend):
    bench = node(backend)
    for items in bench.send.values():
        items.extend([token(row=5)] * 30)
    bench.step(80)
    assert bench.got["token_out.0"] == [(cycle, token(row=5)) for cycle in range(2, 62)], "one token per cycle"


def test_waiting_tokens_of_one_tile_merge_behind_a_stable_front(backend):
    bench = node(backend)
    accept(bench, 0)
    for first, items in zip((1, 2), bench.send.values(), strict=True):
        items.extend(token(row=5, n=first * 4**k) for k in range(4))
    bench.step(20)
    bench.settle()
    assert bench.item("token_out.0") == token(row=5)
    accept(bench, 1)
    bench.step(4)
    assert left(bench) == [token(row=5), token(row=5, n=254)]


@pytest.mark.parametrize(
    ("first", "second", "merged"), [(511, 511, [1, 1022]), (512, 1, [1, 512, 1]), (1, 512, [1, 1, 512])]
)
def test_a_count_above_511_is_not_merged(backend, first, second, merged):
    bench = node(backend)
    accept(bench, 0)
    bench.send["token_in.0"].extend([token(), token(n=first), token(n=second)])
    bench.step(10)
    accept(bench, 1)
    bench.step(10)
    assert [item["n"] for item in left(bench)] == merged


@pytest.mark.parametrize("field", FIELDS)
def test_tokens_that_differ_in_one_field_do_not_merge(backend, field):
    bench = node(backend)
    items = [token(), token(n=2), token(**{field: 1}, n=4), token(n=8)]
    accept(bench, 0)
    bench.send["token_in.0"].extend(items)
    bench.step(10)
    accept(bench, 1)
    bench.step(10)
    assert left(bench) == items


def test_an_input_holds_two_tokens_and_an_output_two(backend):
    bench = node(backend)
    accept(bench, 0)
    items = [token(row=row) for row in range(8)]
    bench.send["token_in.0"].extend(items)
    bench.step(12)
    assert [cycle for cycle, _ in bench.sent["token_in.0"]] == [0, 1, 2, 3]
    assert (bench["token_in.0.ready"], bench["token_in.1.ready"], bench["idle"]) == (0, 1, 1)
    accept(bench, 1)
    bench.step(12)
    assert left(bench) == items


@pytest.mark.own_size
def test_inputs_take_turns(backend):
    bench = node(backend, 4, 4)
    for number, items in enumerate(bench.send.values()):
        items.extend(token(epoch=number, row=4 * k) for k in range(5))
    bench.step(30)
    assert left(bench) == [token(epoch=number, row=4 * k) for k in range(5) for number in range(4)]


@pytest.mark.own_size
def test_a_turn_starts_at_the_pointer_and_skips_silent_inputs(backend):
    bench = node(backend, 4, 4)
    accept(bench, 0)
    enter(bench, {2: token(epoch=2)})  # the pointer becomes 3
    bench.step()
    enter(bench, {0: token(epoch=0), 1: token(epoch=1)})
    bench.step(3)
    accept(bench, 1)
    bench.step(5)
    assert [item["epoch"] for item in left(bench)] == [2, 0, 1]


@pytest.mark.own_size
def test_a_merge_takes_the_lowest_input_and_leaves_the_pointer(backend):
    bench = node(backend, 4, 4)
    accept(bench, 0)
    enter(bench, {0: token(epoch=9)})  # front; the pointer becomes 1
    enter(bench, {0: token(epoch=7)})  # back; still 1
    bench.step(2)
    # Input 1 merges; then `back` is too large for input 2, which it would not be the other way round.
    enter(bench, {0: token(epoch=5), 1: token(epoch=7, n=511), 2: token(epoch=7, n=500)})
    bench.step()
    bench.until("idle", 3)
    enter(bench, {1: token(epoch=6)})
    accept(bench, 1)
    bench.step(8)
    assert [(item["epoch"], item["n"]) for item in left(bench)] == [(9, 1), (7, 512), (6, 1), (7, 500), (5, 1)]


@pytest.mark.own_size
def test_one_merge_per_cycle_and_turns_go_on_after_it(backend):
    bench = node(backend, 4, 4)
    accept(bench, 0)
    # Front and back take rows 0 and 20 (inputs 0 and 1); input 2 merges its first token into back.
    for number, rows in enumerate(([0, 4, 8], [20, 24, 28], [20, 32, 36])):
        bench.send[f"token_in.{number}"].extend(token(row=row) for row in rows)
    bench.step(12)
    accept(bench, 1)
    bench.step(20)
    assert [(item["row"], item["n"]) for item in left(bench)] == [
        (0, 1), (20, 2), (32, 1), (4, 1), (24, 1), (36, 1), (8, 1), (28, 1),
    ]  # fmt: skip


def test_a_move_makes_room_for_a_grant_in_its_cycle(backend):
    bench = node(backend)
    accept(bench, 0)
    enter(bench, {0: token(row=0)})
    enter(bench, {0: token(row=1)})
    enter(bench, {0: token(row=2), 1: token(row=3)})
    bench.step()
    accept(bench, 1)
    start = bench.now
    bench.step(5)
    assert [(cycle - start, item["row"]) for cycle, item in bench.got["token_out.0"]] == [
        (0, 0),
        (1, 1),
        (2, 3),
        (3, 2),
    ]


def test_a_pop_does_not_show_the_next_head_to_another_output_in_its_cycle(backend):
    bench = node(backend, 2, 2)
    accept(bench, 0)
    for row in (0, 2, 4, 1):  # output 0 gets front and back; 4 waits for it, 1 (output 1) behind 4
        enter(bench, {0: token(row=row)})
    bench.step(2)
    assert bench["idle"] and bench.item("token_out.1") is None
    accept(bench, 1)
    bench.step()
    accept(bench, 0)  # 0 left, 2 moved, 4 was popped: 1 is head from now on
    assert (bench.item("token_out.0"), bench.item("token_out.1")) == (token(row=2), None)
    bench.step()
    assert bench.item("token_out.1") == token(row=1)


def test_a_blocked_output_delays_only_the_inputs_that_wait_for_it(backend):
    bench = node(backend, 2, 2)
    bench.accept["token_out.0"] = 0
    bench.send["token_in.0"].extend(token(col=2 * k) for k in range(10))
    bench.send["token_in.1"].extend(token(col=2 * k + 1) for k in range(10))
    bench.step(20)
    assert len(left(bench, 1)) == 10
    assert len(bench.sent["token_in.0"]) == 4


@small
def test_reset_in_any_state(backend, outputs):
    bench = node(backend, 2, outputs)
    fresh = bench.backend.state()
    accept(bench, 0)
    for items in bench.send.values():  # one after the other, so that every pointer is 1 at the end
        items.extend(token(row=row) for row in range(6))
        bench.step(8)
    bench.reset()
    assert all(bench.item(name) is None for name in bench.got)
    assert bench["token_in.0.ready"] and bench["token_in.1.ready"] and bench.backend.state() == fresh
    accept(bench, 1)
    enter(bench, {0: token(epoch=0), 1: token(epoch=1)})
    bench.step(4)
    assert [item["epoch"] for item in left(bench)] == [0, 1], "the pointer too"


def test_reset_clears_random_state():
    bench = node("golden")
    fresh = bench.backend.state()
    memory = bench.backend.memory
    memory[3:] = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, len(memory) - 3)  # before that: sizes
    bench.reset()
    assert bench.backend.state() == fresh


@small
def test_no_count_is_lost_or_doubled_under_random_back_pressure(backend, outputs):
    bench = node(backend, 2, outputs, seed=100 + outputs)
    run_random_traffic(bench)
    assert backend == "rtl" or bench.idle_checks > 50


@pytest.mark.own_size
def test_random_back_pressure_at_four_inputs_and_outputs(backend):
    bench = node(backend, 4, 4, seed=103)
    run_random_traffic(bench, 80)
    assert backend == "rtl" or bench.idle_checks > 50


@pytest.mark.parametrize(("inputs", "outputs", "message"), [(0, 1, "inputs"), (1, 3, "outputs"), (1, 0, "outputs")])
def test_illegal_sizes_are_refused(inputs, outputs, message):
    with pytest.raises(ValueError, match=message):
        TokenNode(inputs=inputs, outputs=outputs)
    gc.collect()  # Amaranth warns of the refused component when it is deleted
    with pytest.raises(ValueError, match=f"{message} of a node must be"):
        golden_node.init_state(inputs, outputs)


def test_more_than_sixteen_inputs_have_no_golden_model():
    with pytest.raises(ValueError, match="inputs of a node must be"):
        golden_node.init_state(17, 1)
