"""The token queue: which waiting entry takes an update, and that the visible head and a damaged entry never do."""

import gc
import random
from collections import Counter, deque
from functools import lru_cache

import pytest
from t3hdl.interface.layouts import BURST_LINES, Token
from t3hdl.slice.token_queue import TileKey, TokenQueue

from tests.contract.backends import AmaranthBackend
from tests.contract.bench import Bench
from tests.support.single_event_upsets import invert

TILE = {"context": 3, "epoch": 1, "row": 7, "col": 9, "wf": 2, "right": 0, "bottom": 1}


@lru_cache
def _backend(depth: int, protect: bool) -> AmaranthBackend:
    return AmaranthBackend(TokenQueue(depth=depth, protect=protect))


def _queue(*, depth: int = 8, protect: bool = False, seed: int = 1) -> Bench:
    """A queue after reset."""
    backend = _backend(depth, protect)
    backend.restart()
    return Bench(backend, moore=False, seed=seed)  # `merges` and `leaves` follow what comes


def _push(bench: Bench, *, accept: float = 0, times: int = 1, **fields: int) -> None:
    bench.accept["o"] = accept
    bench.step(times, push=1, tile=TILE | fields)
    bench.set("push", 0)


def _drain(bench: Bench) -> list[tuple[int, int]]:
    """Row and count of everything that is left."""
    start = len(bench.got["o"])
    bench.accept["o"] = 1
    bench.step(10)
    return [(token["row"], token["n"]) for _, token in bench.got["o"][start:]]


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_depth_below_two_is_refused():
    with pytest.raises(ValueError, match="depth of a queue must be at least 2, not 1"):
        TokenQueue(depth=1)
    gc.collect()  # the refused object dies here, where its warning is expected


def test_never_merges_into_the_visible_head():
    bench = _queue()
    _push(bench, times=6)
    assert bench["level"] == 2
    assert _drain(bench) == [(7, 1), (7, 5)]


@pytest.mark.parametrize("tiles", [2, 3])
def test_tiles_in_turns_take_an_entry_each(tiles: int):
    bench = _queue()
    for k in range(30):
        _push(bench, row=k % tiles)
    # The head keeps its count; the later updates of its tile have an entry behind the others.
    each = 30 // tiles
    assert _drain(bench) == [(0, 1), *((row, each) for row in range(1, tiles)), (0, each - 1)]


def test_push_comes_after_the_pop_of_the_same_cycle():
    bench = _queue()
    _push(bench)
    _push(bench, accept=1)  # the only entry leaves: nothing to merge into
    assert (bench["level"], len(bench.got["o"])) == (1, 1)
    _push(bench)
    assert bench["level"] == 2
    _push(bench, accept=1)  # the head leaves, the entry behind it was not visible: merge
    assert bench["level"] == 1
    assert _drain(bench) == [(7, 2)]


def test_a_merge_into_the_middle_while_the_head_leaves():
    bench = _queue()
    for row in (0, 1, 2, 3):
        _push(bench, row=row)
    _push(bench, accept=1, row=2)
    assert bench["level"] == 3
    assert _drain(bench) == [(1, 1), (2, 2), (3, 1)]


def test_a_full_queue_takes_an_update_for_which_it_keeps_a_place():
    bench = _queue(depth=4)
    for row in (0, 1, 2):
        _push(bench, row=row)
    _push(bench, row=1)
    _push(bench, accept=1, row=3)
    assert bench["level"] == 3
    assert _drain(bench) == [(1, 2), (2, 1), (3, 1)]


@pytest.mark.parametrize("field", TILE)
def test_merges_equal_names_only(field: str):
    bench = _queue()
    _push(bench, times=2)
    _push(bench, **{field: TILE[field] ^ 1})
    assert bench["level"] == 3
    _push(bench)
    assert bench["level"] == 3
    assert [n for _, n in _drain(bench)] == [1, 2, 1]


def test_stops_merging_at_1016():
    bench = _queue()
    _push(bench, row=0)
    _push(bench, times=1016)
    _push(bench, row=2)
    assert bench["level"] == 3
    _push(bench, times=3)  # the full entry stays as it is, the one behind it takes what comes
    assert bench["level"] == 4
    assert _drain(bench) == [(0, 1), (7, 1016), (2, 1), (7, 3)]


@pytest.mark.parametrize("protect", [False, True])
@pytest.mark.parametrize("depth", [2, 3, 4, 8])
def test_follows_its_rule_under_random_traffic(depth: int, protect: bool):
    bench = _queue(depth=depth, seed=depth, protect=protect)
    model: deque = deque()
    rng = random.Random(depth)
    hit: Counter = Counter()
    for cycle in range(1000):
        assert bench["level"] == len(model) and bench["o.valid"] == bool(model)
        if cycle % 100 == 0:
            bench.accept["o"] = rng.choice((0.2, 0.5, 0.9))
        push = rng.random() < 0.7 and len(model) < depth
        token = {**TILE, "row": rng.randrange(depth // 2 + 1), "n": rng.randint(1, BURST_LINES)}
        candidates = [entry for entry in list(model)[1:] if entry["row"] == token["row"]]
        popped = len(bench.got["o"])
        bench.step(push=push, tile={name: token[name] for name in TILE}, length=token["n"] - 1)
        leaves = len(bench.got["o"]) > popped
        if push and candidates:
            hit["merge while the head leaves" if leaves else "merge"] += 1
            hit["merge before the last"] += candidates[0] is not model[-1]
            candidates[0]["n"] += token["n"]
        if leaves:
            assert bench.got["o"][-1][1] == model.popleft()
        if push and not candidates:
            model.append(token)
    # Two entries have only a head that an update may find; of three, the middle one is the last when it may.
    assert len(+hit) == {2: 0, 3: 2}.get(depth, 3) and all(count > 20 for count in (+hit).values())


def test_latency():
    bench = _queue(depth=2)
    _push(bench, accept=1)
    bench.step(3)
    assert [t for t, _ in bench.got["o"]] == [TokenQueue(depth=2).latency]


def test_the_name_is_everything_but_the_count():
    assert set(TILE) == set(TileKey.members) == set(Token.members) - {"n"}
    assert [TileKey[name].offset for name in TILE] == [Token[name].offset for name in TILE]


# Wrong bits: 0 to 35 are the name, 36 to 45 the count, the rest check bits.


@pytest.mark.parametrize("bit", [0, 35, 36, 45, 46, 52])
@pytest.mark.parametrize("updates", [1, 2, 8])
def test_a_merge_does_not_hide_two_wrong_bits(bit: int, updates: int):
    bench = _queue(protect=True)
    _push(bench, times=2)
    invert(bench.backend, "entry_1", bit, 40)
    _push(bench, times=updates)
    bench.accept["o"] = 1
    bench.step()
    assert (bench["uncorrectable"], bench["o.valid"]) == (1, 0)
    assert sum(n for _, n in _drain(bench)) in (0, updates)  # of an entry of their own, if at all


@pytest.mark.parametrize("bit", [0, 35, 36, 45, 46, 52])
def test_an_entry_with_a_wrong_bit_takes_no_more_updates(bit: int):
    bench = _queue(protect=True)
    _push(bench, times=4)
    invert(bench.backend, "entry_1", bit)
    _push(bench, times=2)
    bench.accept["o"] = 1
    bench.step()
    assert (bench["corrected"], bench["o.valid"]) == (1, 1)
    assert _drain(bench) == [(7, 3), (7, 2)]
