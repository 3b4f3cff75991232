"""The golden TokenNode against scenarios worked out from docs/hardware.md."""

import random
from collections import Counter

import pytest
from golden_bench import Bench, pack, unpack
from t3hdl.interface.layouts import NEVER, Token
from t3hdl.interface.signatures import node_signature
from t3sim.hardware.golden import node

SIZES = [(1, 1), (2, 1), (8, 1), (16, 1), (2, 2), (8, 4), (16, 8)]


def make(inputs: int = 2, outputs: int = 1) -> Bench:
    return Bench(node, node_signature(inputs, outputs), node.init_state(inputs, outputs))


def token(row: int = 0, n: int = 1, **fields: int) -> int:
    return pack(Token, row=row, n=n, **fields)


def ready(bench: Bench, value: int, outputs: int = 1) -> None:
    for o in range(outputs):
        bench.instance.set(f"token_out.{o}.ready", value)


def send(bench: Bench, **items: int) -> None:
    """One cycle with these items: ``i0=token`` at input 0."""
    bench.tick(**{f"token_in.{name[1:]}": item for name, item in items.items()})


def drain(bench: Bench, cycles: int, output: int = 0) -> list[tuple[int, int, int]]:
    """(cycle, row, n) of every token that leaves in the next cycles."""
    ready(bench, 1)
    seen = []
    for _ in range(cycles):
        item = bench.item(f"token_out.{output}")
        if item is not None:
            fields = unpack(Token, item)
            seen.append((bench.now, fields["row"], fields["n"]))
        bench.tick()
    ready(bench, 0)
    return seen


@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_every_port_lies_where_the_word_map_says(inputs, outputs):
    for i in range(inputs):
        for o in range(outputs):
            bench = make(inputs, outputs)
            assert all(bench.get(f"token_in.{k}.ready") for k in range(inputs))
            item = token(row=o, n=1023, context=15, epoch=3, wf=15, right=1, bottom=1)
            bench.tick(**{f"token_in.{i}": item})
            assert not bench.get("idle")
            bench.tick()
            shown = [bench.item(f"token_out.{k}") for k in range(outputs)]
            assert shown == [item if k == o else None for k in range(outputs)], "latency 2, bank = row"
            assert bench.get("idle") and bench.get("wake_at") == NEVER


def test_size_out_of_range_is_refused():
    for inputs, outputs in ((0, 1), (17, 1), (2, 3), (2, 0)):
        with pytest.raises(ValueError, match="of a node must be"):
            node.init_state(inputs, outputs)


@pytest.mark.parametrize(("row", "col", "bank"), [(0, 0, 0), (5, 0, 1), (5, 3, 2), (4095, 4092, 3), (8, 16, 0)])
def test_bank_is_row_xor_col(row, col, bank):
    bench = make(2, 4)
    send(bench, i1=token(row=row, col=col))
    bench.tick()
    assert [bench.item(f"token_out.{o}") is not None for o in range(4)] == [o == bank for o in range(4)]


def test_input_queue_holds_two_and_the_output_two():
    bench = make()
    accepted = 0
    for row in range(8):  # different tiles: nothing merges
        accepted += bench.get("token_in.0.ready")
        send(bench, i0=token(row=row))
        if not bench.get("token_in.0.ready"):
            break
    assert accepted == 4
    assert bench.get("idle"), "it waits for its output"
    assert [row for _, row, _ in drain(bench, 8)] == [0, 1, 2, 3]


def test_full_rate():
    bench = make()
    ready(bench, 1)
    for row in range(20):
        assert bench.get("token_in.0.ready")
        if row >= 2:
            assert unpack(Token, bench.item("token_out.0"))["row"] == row - 2
        send(bench, i0=token(row=row))


def test_only_back_takes_a_merge_and_front_is_stable():
    bench = make()
    for n in (1, 2, 4, 8):  # cycles 0 to 3, one tile: the first is front, the second back, the others merge
        send(bench, i0=token(n=n))
        assert bench.item("token_out.0") in (None, token(n=1))
    bench.tick(2)
    assert bench.get("idle")
    assert [n for _, _, n in drain(bench, 4)] == [1, 14]


@pytest.mark.parametrize(
    ("first", "second", "left"), [(511, 511, [1, 1022]), (512, 1, [1, 512, 1]), (1, 512, [1, 1, 512])]
)
def test_merge_of_counts_up_to_511(first, second, left):
    bench = make()
    for n in (1, first, second):
        send(bench, i0=token(n=n))
    bench.tick(3)
    assert [n for _, _, n in drain(bench, 5)] == left


@pytest.mark.parametrize("field", ["context", "epoch", "row", "col", "wf", "right", "bottom"])
def test_no_merge_with_another_tile(field):
    bench = make()
    for item in (token(), token(n=2), pack(Token, n=4, **{field: 1})):
        send(bench, i0=item)
    bench.tick(3)
    assert [n for _, _, n in drain(bench, 5)] == [1, 2, 4]


def test_round_robin_over_inputs():
    bench = make(3)
    ready(bench, 1)
    order = []
    for cycle in range(12):
        send(bench, **{f"i{i}": token(row=i, col=cycle) for i in range(3)})
        item = bench.item("token_out.0")
        if item is not None:
            order.append(unpack(Token, item)["row"])
    assert order == [0, 1, 2] * 3 + [0, 1]


def test_round_robin_starts_at_the_pointer_and_skips_silent_inputs():
    bench = make(4)
    send(bench, i2=token(row=2))  # pointer becomes 3
    bench.tick()
    send(bench, i0=token(row=0), i1=token(row=1))  # first at or after 3: input 0
    bench.tick(3)
    assert [row for _, row, _ in drain(bench, 5)] == [2, 0, 1]


def test_merge_takes_the_lowest_input_and_leaves_the_pointer():
    bench = make(3)
    send(bench, i0=token(row=9))  # front; pointer 1
    send(bench, i0=token(row=7))  # back; pointer 1
    bench.tick(2)
    send(bench, i0=token(row=5), i1=token(row=7, n=2), i2=token(row=7, n=4))
    bench.tick()  # input 1 merges
    assert not bench.get("idle")
    bench.tick()  # input 2 merges
    assert bench.get("idle")
    send(bench, i1=token(row=6))
    assert [(row, n) for _, row, n in drain(bench, 6)] == [(9, 1), (7, 7), (6, 1), (5, 1)], "pointer still 1"


def test_one_pop_per_cycle_and_a_move_makes_room_for_a_grant():
    bench = make(2)
    send(bench, i0=token(row=0))
    send(bench, i0=token(row=1))
    send(bench, i0=token(row=2), i1=token(row=3))
    bench.tick()
    # front 0, back 1; heads 2 and 3; from now on one token leaves and one enters per cycle
    start = bench.now
    assert drain(bench, 5) == [(start, 0, 1), (start + 1, 1, 1), (start + 2, 3, 1), (start + 3, 2, 1)]


def test_a_pop_does_not_show_the_next_head_to_another_output_in_its_cycle():
    bench = make(1, 2)
    for row in (0, 2, 4, 1):  # output 0 gets front and back; 4 waits for it, 1 (output 1) behind 4
        send(bench, i0=token(row=row))
    bench.tick(2)
    assert bench.get("idle") and bench.item("token_out.1") is None
    ready(bench, 1)
    bench.tick()
    ready(bench, 0)  # 0 left, 2 moved, 4 was popped: 1 is head from now on
    assert bench.item("token_out.0") == token(row=2) and bench.item("token_out.1") is None
    bench.tick()
    assert bench.item("token_out.1") == token(row=1)


def test_head_of_another_output_is_not_blocked_by_a_full_one():
    bench = make(2, 2)
    for row in (0, 2, 4, 6):
        send(bench, i0=token(row=row))
    send(bench, i1=token(row=1))
    bench.tick()
    assert bench.item("token_out.1") == token(row=1)
    assert not bench.get("token_in.0.ready")


def test_reset_forgets_everything():
    bench = make(2, 2)
    for row in range(4):
        send(bench, i0=token(row=row), i1=token(row=row))
    bench.instance.reset()
    assert bench.item("token_out.0") is None and bench.item("token_out.1") is None
    assert bench.get("token_in.0.ready") and bench.get("token_in.1.ready") and bench.get("idle")
    bench.tick(3)
    assert bench.item("token_out.0") is None


@pytest.mark.parametrize(("inputs", "outputs"), [(8, 1), (4, 4)])
def test_nothing_is_lost_under_random_stalls(inputs, outputs):
    seed = 20240
    print(f"seed {seed}")
    rng = random.Random(seed)
    bench, sent, got = make(inputs, outputs), Counter(), Counter()
    for cycle in range(1500):
        busy = cycle < 1200
        for o in range(outputs):
            bench.instance.set(f"token_out.{o}.ready", int(rng.random() < 0.4 or not busy))
        offered = {}
        for i in range(inputs):
            if busy and rng.random() < 0.5 and bench.get(f"token_in.{i}.ready"):
                item = token(
                    row=rng.randrange(6), col=rng.randrange(2), wf=rng.randrange(2), n=rng.choice((1, 2, 300, 600))
                )
                offered[f"token_in.{i}"] = item
                fields = unpack(Token, item)
                sent[fields["row"], fields["col"], fields["wf"]] += fields["n"]
        for o in range(outputs):
            item = bench.item(f"token_out.{o}")
            if item is not None and bench.instance.inputs[bench.inputs[f"token_out.{o}.ready"][0]]:
                fields = unpack(Token, item)
                assert (fields["row"] ^ fields["col"]) % outputs == o
                got[fields["row"], fields["col"], fields["wf"]] += fields["n"]
        bench.tick(**offered)
    assert got == sent and sent
