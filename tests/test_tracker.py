"""The tracker: thresholds, exactly-once completions, overflow, errors, disarm, and no count lost when it is full."""

import pytest
from stream_checks import run
from t3hdl.config import preset
from t3hdl.interface import register_map as regs
from t3hdl.tracker.tracker import Tracker
from table_garbage import fill_tables
from tracker_driver import LINES, Driver, check


def test_latency_and_one_event_per_cycle() -> None:
    tracker = Tracker(config=preset("small"))

    async def scenario(bench) -> None:
        d = Driver(bench)
        await d.start()
        await d.load()
        d.send(row=1, col=1, n=6)
        d.send(row=1, col=0, n=6)
        await d.step(20)
        entered = bench.sent["token.0"][0][0]
        assert bench.sent["token.1"][0][0] == entered
        first, second = sorted(t for t, _ in d.tiles)
        assert (first, second) == (entered + tracker.latency, entered + tracker.latency + 1)

    run(tracker, scenario)


def test_one_token_per_bank_and_cycle() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(addends=40)
        for _ in range(50):
            d.send(row=0, col=0)
            d.send(row=0, col=1)
        await d.settle()
        for bank in range(2):
            times = [t for t, _ in d.bench.sent[f"token.{bank}"]]
            assert times == list(range(times[0], times[0] + 50))
        assert d["entries"] == 2

    check(scenario)


@pytest.mark.parametrize("banks", [1, 2])
def test_walker_takes_one_cycle_per_row_and_refuses_tokens_until_done(banks: int) -> None:
    async def scenario(d: Driver) -> None:
        for again in range(2):
            for _ in range(8 // banks):
                assert not d["init_done"]
                assert not any(d[f"token.{b}.ready"] for b in range(banks))
                await d.step(config_valid=0)
            assert d["init_done"]
            assert all(d[f"token.{b}.ready"] for b in range(banks))
            if not again:
                await d.step(config_valid=1, config={"address": regs.CONTROL, "data": 2})

    check(scenario, tracker_sets=8, tracker_banks=banks)


@pytest.mark.parametrize(("lines", "addends", "threshold"), [(1, 1, 1), (1, 2, 2), (6, 2, 12), (255, 1, 255)])
def test_a_tile_is_done_once_and_exactly_at_its_threshold(lines: int, addends: int, threshold: int) -> None:
    async def scenario(d: Driver) -> None:
        await d.start({(0, 0): lines})
        await d.load(slot=3, addends=addends, expected=2 * threshold)
        for wf in range(2):
            for k in range(threshold):
                d.send(row=7, col=9, wf=wf)
                if k % 50 == 49 or k == threshold - 2:
                    await d.settle()
                    assert len(d.tiles) == wf, "not before its last line"
        await d.settle()
        assert d.done_tiles == [(3, 7, 9, 0), (3, 7, 9, 1)]
        assert [chunk for _, chunk in d.chunks] == [{"slot": 3, "overflowed": 0}]
        assert d.chunks[0][0] == d.tiles[1][0], "the event that completes both gives both pulses"
        assert (d["entries"], d.errors) == (0, [])

    check(scenario)


def test_thresholds_follow_edge_class_and_wavefront() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.step(config_valid=1, config={"address": regs.PROFILE + 8, "data": 5})
        await d.step(config_valid=0)
        await d.load(addends=2)
        for col, ((bottom, right), lines) in enumerate(LINES.items()):
            tile = {"row": 0, "col": col, "bottom": bottom, "right": right}
            d.send(**tile, n=2 * lines - 1)
            await d.settle()
            assert len(d.tiles) == col
            d.send(**tile)
            await d.settle()
            assert d.done_tiles[col] == (0, 0, col, 0)
        d.send(wf=1, n=10)
        await d.settle()
        assert d.done_tiles[-1] == (0, 0, 0, 1)

    check(scenario)


def test_back_to_back_tokens_of_one_entry_while_the_event_queue_is_full() -> None:
    async def scenario(d: Driver) -> None:
        await d.start({(0, 0): 2})
        await d.load(expected=4 * 60)
        stalled = 0
        for k in range(60):  # two tiles per two cycles against one event per cycle, then four
            for bank in range(2):
                tile = {"row": k // 8 * 2, "col": (k % 8) * 2 + bank}
                d.send(**tile, n=1 + k % 2)
                if not k % 2:
                    d.send(**tile, n=1)
        while any(d.bench.send.values()) or not d["idle"]:
            stalled += any(not d[f"token.{b}.ready"] for b in range(2))
            await d.step()
        assert stalled > 10, "the event queues were full"
        assert sorted(d.done_tiles) == sorted((0, k // 8 * 2, k % 8 * 2 + b, 0) for k in range(60) for b in (0, 1))
        assert ([chunk for _, chunk in d.chunks], d.errors, d["entries"]) == ([{"slot": 0, "overflowed": 0}], [], 0)

    check(scenario, event_queue=3, tracker_ways=1)


def test_a_full_set_marks_the_chunk_and_counts_the_rest_without_entries() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(expected=18, descriptor=5)
        # Same set (4 sets in 2 banks: low bit of row and column): columns 0, 2, 4.
        d.send(col=0, n=1)
        d.send(col=2, n=2)  # no way left: overflow, mark
        await d.settle()
        assert (d["overflowed"], d["entries"], d.tiles) == (1, 1, [])
        d.send(col=0, n=5)  # an entry that exists goes on to its TileDone
        await d.settle()
        assert d.done_tiles == [(0, 0, 0, 0)]
        d.send(col=4, n=1)  # the way is free again, but the set is marked
        d.send(col=4, n=5)
        await d.settle()
        assert (d["entries"], d.chunks) == (0, [])
        d.send(col=2, n=4)
        await d.settle()
        assert d.done_tiles == [(0, 0, 0, 0)]
        assert [chunk for _, chunk in d.chunks] == [{"slot": 0, "overflowed": 1}]
        assert (d["overflowed"], d.errors) == (1, [])

    check(scenario, tracker_ways=1)


def test_the_first_overflow_may_complete_the_chunk() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(expected=2)
        d.send(col=0)
        d.send(col=2, n=2)
        await d.settle()
        assert [chunk for _, chunk in d.chunks] == [{"slot": 0, "overflowed": 1}]

    check(scenario, tracker_ways=1)


def test_a_mark_holds_for_one_descriptor_and_one_set_only() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(slot=0, row1=2, descriptor=6)
        await d.load(slot=1, row0=2, descriptor=7)
        for col in (0, 2, 4):
            d.send(row=0, col=col)
        await d.settle()
        assert (d["entries"], d["overflowed"]) == (2, 1)
        d.send(row=0, col=0, n=5)
        d.send(row=0, col=2, n=5)
        d.send(row=2, col=0)  # other descriptor, same set
        d.send(row=0, col=1)  # same descriptor, other set
        await d.settle()
        assert (d["entries"], d["overflowed"]) == (2, 1)
        d.send(row=2, col=0, n=5)
        d.send(row=0, col=1, n=5)
        await d.settle()
        assert d.done_tiles[2:] in ([(1, 2, 0, 0), (0, 0, 1, 0)], [(0, 0, 1, 0), (1, 2, 0, 0)])

    check(scenario)


def test_a_whole_tile_in_one_token_needs_no_entry() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load()
        d.send(col=0, n=1)
        d.send(col=2, n=6)
        await d.settle()
        assert d.done_tiles == [(0, 0, 2, 0)]
        assert (d["entries"], d["overflowed"]) == (1, 0)

    check(scenario, tracker_ways=1)


def test_a_count_above_the_threshold_is_an_error_and_never_a_tile() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load()
        d.send(n=7)  # no entry: nothing but the error
        await d.settle()
        assert (d.errors, d["entries"], d.tiles) == (["over_count"], 0, [])
        await d.control(disarm=1)
        await d.start()
        await d.load()
        d.send(n=4)
        d.send(n=3)
        d.send(n=253)  # saturates; cut to 8 bits it would be 4, and the tile would be done with the next token
        d.send(n=2)
        await d.settle()
        assert (d.errors, d["entries"], d.tiles) == (["over_count"], 1, [])

    check(scenario)


def test_more_lines_than_the_chunk_expects() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(expected=6)
        d.send(col=0, n=6)
        await d.settle()
        assert (len(d.chunks), d.errors) == (1, [])
        d.send(col=1, n=6)  # the finished chunk matches nothing any more
        await d.settle()
        assert (len(d.chunks), len(d.tiles), d.errors) == (1, 1, ["unmatched"])
        await d.control(disarm=1)
        await d.start()
        assert d.errors == []
        await d.load(expected=5)
        d.send(col=0, n=6)
        await d.settle()
        assert (len(d.chunks), len(d.tiles), d.errors) == (1, 2, ["over_total"])
        await d.control(disarm=1)
        await d.start()
        await d.load(expected=6)
        for _ in range(2):  # both are matched before the first one completes the chunk
            d.send(row=1, col=1, n=6)
            d.send(row=1, col=0, n=6)
        await d.settle()
        assert d.errors[-1] == "over_total" and len(d.chunks) == 2

    check(scenario)


@pytest.mark.parametrize(("field", "value"), [
    ("row", 3), ("row", 6), ("col", 1), ("col", 9), ("context", 2), ("epoch", 0), (None, None),
])  # fmt: skip
def test_only_tiles_of_a_live_chunk_are_counted(field: str | None, value: int) -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(row0=4, row1=6, col0=2, col1=9, context=9, epoch=1, expected=12)
        inside = [{"row": 4, "col": 2}, {"row": 5, "col": 8}]
        for corner in inside:
            d.send(**(corner | {"context": 9, "epoch": 1, "n": 6} | ({field: value} if field else {})))
        await d.settle()
        counted = field is None
        assert (len(d.tiles), len(d.chunks)) == ((2, 1) if counted else (0, 0))
        assert d.errors == ([] if counted else ["unmatched"])

    check(scenario)


def test_a_retired_slot_matches_nothing_and_the_lowest_slot_wins() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(slot=2)
        await d.load(slot=1)
        d.send(n=6)
        await d.settle()
        await d.load(slot=1, valid=0)
        d.send(n=6)
        await d.settle()
        await d.load(slot=2, valid=0)
        await d.load(slot=4)  # the window of `small` ends at slot 3
        assert d.errors == []
        d.send(n=6)
        await d.settle()
        assert d.done_tiles == [(1, 0, 0, 0), (2, 0, 0, 0)]
        assert d.errors == ["unmatched"]

    check(scenario)


def test_a_load_starts_the_slot_from_zero() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(expected=12, descriptor=1)
        for col in (0, 2, 4):  # overflows with one way
            d.send(col=col)
        await d.settle()
        assert d["overflowed"] == 1
        await d.load(expected=6, context=1, descriptor=2)
        d.send(row=1, context=1, n=6)
        await d.settle()
        assert [chunk for _, chunk in d.chunks] == [{"slot": 0, "overflowed": 0}]
        await d.load(expected=6, context=2, descriptor=3)  # complete is gone, too
        d.send(row=1, context=2, n=6)
        await d.settle()
        assert (len(d.chunks), d.errors) == (2, [])

    check(scenario, tracker_ways=1)


@pytest.mark.parametrize("delay", [5, 6, 7])
def test_a_load_acts_after_an_event_of_the_same_cycle(delay: int) -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(expected=12)
        d.send(col=0, n=6)
        await d.step(delay)  # the event is counted 6 cycles after the token is taken
        await d.load(expected=12)
        d.send(col=2, n=6)
        await d.settle()
        assert len(d.tiles) == 2
        assert len(d.chunks) == (1 if delay < 6 else 0)

    check(scenario)


def test_entries_and_their_peak() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load()
        seen = []
        for col in (0, 1):
            d.send(col=col)
        d.send(col=0, n=5)
        for _ in range(12):
            seen.append((d["entries"], d["peak_entries"]))
            await d.step()
        assert [pair for k, pair in enumerate(seen) if k == 0 or pair != seen[k - 1]] == [(0, 0), (2, 0), (1, 2)]
        await d.control(disarm=1)
        await d.start()
        assert (d["entries"], d["peak_entries"], d["overflowed"]) == (0, 0, 0)

    check(scenario)


def test_disarm_forgets_counts_and_slots_but_keeps_the_profile() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(expected=999)
        for col in range(8):
            d.send(col=col)
        await d.step(6)  # tokens in every stage
        d.bench.send["token.0"].clear()
        d.bench.send["token.1"].clear()
        await d.control(disarm=1)
        for name in ("token.0", "token.1"):
            d.bench.send[name].clear()
        await d.settle()
        assert (d["entries"], d.errors, d["overflowed"]) == (0, [], 0)
        await d.load(expected=12)
        for col in (0, 1):
            d.send(col=col, n=5)
        await d.settle()
        assert d.tiles == [], "counts of before are gone"
        for col in (0, 1):
            d.send(col=col, n=1)
        await d.settle()
        assert (len(d.tiles), len(d.chunks), d.errors) == (2, 1, [])

    check(scenario)


def test_tables_may_hold_anything_before_reset() -> None:
    async def scenario(d: Driver) -> None:
        fill_tables(d.bench)
        await d.start({(0, 0): 6})
        await d.load(expected=8 * 6)
        for _ in range(2):
            for col in range(8):
                d.send(col=col, n=3)
        d.send(right=1)  # no profile was written for it: no lines, so this is one too many
        await d.settle()
        assert sorted(d.done_tiles) == [(0, 0, col, 0) for col in range(8)]
        assert (len(d.chunks), d["entries"], d["overflowed"], d.errors) == (1, 0, 0, ["over_count"])

    check(scenario, tracker_ways=4)
