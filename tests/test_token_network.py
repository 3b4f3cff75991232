"""Token nodes and the network: routing, latency, turns, merging only while tokens wait, no count lost."""

import gc
from collections import Counter

import pytest
from stream_checks import run
from t3hdl.config import preset
from t3hdl.token_network.network import TokenNetwork, TokenNode

_FIELDS = ("context", "epoch", "row", "col", "wf", "right", "bottom")


def token(**fields: int) -> dict[str, int]:
    return {field: 0 for field in _FIELDS} | {"n": 1} | fields


def tile(item: dict[str, int]) -> tuple[int, ...]:
    return tuple(item[field] for field in _FIELDS)


def counts(items: list[tuple[int, dict[str, int]]]) -> Counter:
    bag: Counter = Counter()
    for _, item in items:
        bag[tile(item)] += item["n"]
    return bag


def node(inputs: int, outputs: int) -> TokenNode:
    return TokenNode(inputs=inputs, outputs=outputs)


@pytest.mark.parametrize("make", [
    lambda: TokenNode(inputs=1, outputs=1), lambda: TokenNode(inputs=4, outputs=2),
    lambda: TokenNetwork(config=preset("small")),
    lambda: TokenNetwork(config=preset("small", node_inputs=4, tracker_banks=1)),
])  # fmt: skip
def test_latency_and_full_rate(make) -> None:
    part = make()

    async def scenario(bench) -> None:
        items = [token(row=k, col=k) for k in range(20)]
        bench.send["token_in.0"].extend(items)
        await bench.step(30)
        assert [t for t, _ in bench.sent["token_in.0"]] == list(range(20))
        assert bench.got["token_out.0"] == [(t + part.latency, item) for t, item in bench.sent["token_in.0"]]

    run(part, scenario)


def test_a_token_goes_to_the_bank_of_its_row_xor_column() -> None:
    async def scenario(bench) -> None:
        items = [token(row=row, col=col) for row in range(4) for col in range(8)]
        bench.send["token_in.0"].extend(items)
        bench.send["token_in.1"].extend(items)
        await bench.step(200)
        for bank in range(4):
            expected = Counter({tile(item): 2 for item in items if (item["row"] ^ item["col"]) % 4 == bank})
            assert counts(bench.got[f"token_out.{bank}"]) == expected

    run(node(2, 4), scenario)


def test_nothing_merges_while_the_output_moves() -> None:
    async def scenario(bench) -> None:
        bench.send["token_in.0"].extend([token(row=5)] * 30)
        bench.send["token_in.1"].extend([token(row=5)] * 30)
        await bench.step(80)
        assert [t for t, _ in bench.got["token_out.0"]] == list(range(2, 62)), "one token per cycle"
        assert all(item["n"] == 1 for _, item in bench.got["token_out.0"])

    run(node(2, 1), scenario)


def test_waiting_tokens_of_one_tile_merge_behind_a_stable_front() -> None:
    async def scenario(bench) -> None:
        bench.accept["token_out.0"] = 0
        bench.send["token_in.0"].extend([token(row=5)] * 10)
        bench.send["token_in.1"].extend([token(row=5)] * 10)
        await bench.step(40)  # the bench checks that the visible payload stays
        assert bench["idle"]
        assert bench["token_out.0.valid"]
        bench.accept["token_out.0"] = 1
        await bench.step(10)
        assert [item["n"] for _, item in bench.got["token_out.0"]] == [1, 19]

    run(node(2, 1), scenario)


@pytest.mark.parametrize(
    ("first", "second", "merged"), [(511, 511, [1, 1022]), (512, 1, [1, 512, 1]), (1, 512, [1, 1, 512])]
)
def test_a_count_above_511_is_not_merged(first: int, second: int, merged: list[int]) -> None:
    async def scenario(bench) -> None:
        bench.accept["token_out.0"] = 0
        bench.send["token_in.0"].extend([token(), token(n=first), token(n=second)])
        await bench.step(10)
        bench.accept["token_out.0"] = 1
        await bench.step(10)
        assert [item["n"] for _, item in bench.got["token_out.0"]] == merged

    run(node(1, 1), scenario)


@pytest.mark.parametrize("field", _FIELDS)
def test_tokens_that_differ_in_one_field_do_not_merge(field: str) -> None:
    async def scenario(bench) -> None:
        items = [token(), token(), token(**{field: 1}), token()]
        bench.accept["token_out.0"] = 0
        bench.send["token_in.0"].extend(items)
        await bench.step(20)
        bench.accept["token_out.0"] = 1
        await bench.step(10)
        assert [item for _, item in bench.got["token_out.0"]] == items

    run(node(1, 1), scenario)


def test_inputs_take_turns_and_a_merge_leaves_the_turn_alone() -> None:
    async def scenario(bench) -> None:
        bench.accept["token_out.0"] = 0
        # Front and back take rows 10 and 20 (inputs 0 and 1); input 2 merges its first token into back.
        bench.send["token_in.0"].extend([token(row=10), token(row=11), token(row=12)])
        bench.send["token_in.1"].extend([token(row=20), token(row=21), token(row=22)])
        bench.send["token_in.2"].extend([token(row=20), token(row=31), token(row=32)])
        await bench.step(12)
        bench.accept["token_out.0"] = 1
        await bench.step(20)
        assert [(item["row"], item["n"]) for _, item in bench.got["token_out.0"]] == [
            (10, 1), (20, 2), (31, 1), (11, 1), (21, 1), (32, 1), (12, 1), (22, 1),
        ]  # fmt: skip

    run(node(3, 1), scenario)


def test_a_blocked_bank_delays_only_the_inputs_that_wait_for_it() -> None:
    async def scenario(bench) -> None:
        bench.accept["token_out.0"] = 0
        bench.send["token_in.0"].extend([token(col=2 * k) for k in range(10)])
        bench.send["token_in.1"].extend([token(col=2 * k + 1) for k in range(10)])
        await bench.step(20)
        assert len(bench.got["token_out.1"]) == 10
        assert len(bench.sent["token_in.0"]) == 4, "front, back and a queue of two"

    run(node(2, 2), scenario)


@pytest.mark.parametrize(("seed", "make"), [
    (100, lambda: TokenNode(inputs=3, outputs=1)),
    (101, lambda: TokenNode(inputs=2, outputs=4)),
    (102, lambda: TokenNetwork(config=preset("small"))),
    (103, lambda: TokenNetwork(config=preset("small", slices=8, tracker_banks=1))),
])  # fmt: skip
def test_no_count_is_lost_or_doubled_under_random_back_pressure(seed: int, make) -> None:
    async def scenario(bench) -> None:
        banks = len(bench.got)
        for items in bench.send.values():
            items.extend(
                token(row=bench.random.randrange(3), col=bench.random.randrange(2), n=bench.random.choice([1, 2, 400]))
                for _ in range(150)
            )
        expected = sum((counts([(0, item) for item in items]) for items in bench.send.values()), Counter())
        sent = sum(len(items) for items in bench.send.values())
        while any(bench.send.values()) or not bench["idle"] or any(bench[f"token_out.{b}.valid"] for b in range(banks)):
            if bench.now % 30 == 0:
                bench.gap = bench.random.choice([0.0, 0.5, 0.95])
                bench.accept = {name: bench.random.choice([0.0, 0.3, 1.0]) for name in bench.accept}
            await bench.step()
            assert bench.now < 6000
        got = [item for items in bench.got.values() for item in items]
        assert counts(got) == expected
        assert len(got) < sent, "some tokens merged"
        assert bench.idle_checks > 50

    run(make(), scenario, seed=seed)


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
@pytest.mark.parametrize(("inputs", "outputs", "message"), [(0, 1, "inputs"), (1, 3, "outputs"), (1, 0, "outputs")])
def test_illegal_shapes_are_refused(inputs: int, outputs: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TokenNode(inputs=inputs, outputs=outputs)
    gc.collect()  # Amaranth warns of the refused component when it goes
