"""Ways of a tracker set per context, and what the tracker counts of itself."""

import pytest
from t3hdl.interface import register_map as regs
from tracker_driver import Driver, check


async def _quota(d: Driver, context: int, ways: int) -> None:
    await d.write(regs.QUOTA + 8 * context, {"ways": ways, "slots": 64, "credits": 255}, regs.Quota)


@pytest.mark.parametrize("ways", [0, 1, 2, 3, 31])
def test_a_context_uses_no_more_ways_of_a_set_than_its_quota(ways: int) -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await _quota(d, 1, ways)
        await d.load(slot=0, descriptor=0)
        await d.load(slot=1, context=1, descriptor=1, expected=24)
        for col in (0, 2, 4, 6):
            d.send(context=1, col=col)
        await d.settle()
        assert d["entries"] == min(ways, 3)
        assert d["overflowed"] == 1
        d.send(col=0)
        await d.settle()
        room = ways < 3
        assert (d["entries"], d["overflowed"]) == (min(ways, 3) + room, 1 + (not room))
        for col in (0, 2, 4, 6):
            d.send(context=1, col=col, n=5)
        await d.settle()
        assert [(chunk["slot"], chunk["overflowed"]) for _, chunk in d.chunks] == [(1, 1)]
        assert len(d.tiles) == min(ways, 3)
        assert d.errors == []

    check(scenario, tracker_ways=3)


def test_a_mark_that_a_quota_made_outlasts_it() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await _quota(d, 0, 1)
        await d.load()
        for col in (0, 2):
            d.send(col=col)
        await d.settle()
        assert (d["entries"], d["overflowed"]) == (1, 1)
        await _quota(d, 0, 2)
        d.send(col=2)
        await d.settle()
        assert d["entries"] == 1
        await d.control(disarm=1)
        await d.start()
        await d.load()
        for col in (0, 2, 4):
            d.send(col=col)
        await d.settle()
        assert (d["entries"], d["overflowed"]) == (2, 1), "a disarm keeps the quota"

    check(scenario, tracker_ways=4)


def test_contexts_that_do_not_exist_have_no_quota() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        for context in range(3):
            await _quota(d, context, 0)
        await d.load(context=2)
        for col in (0, 2):
            d.send(context=2, col=col)
        await d.settle()
        assert (d["entries"], d["overflowed"]) == (2, 0)

    check(scenario)


def test_a_whole_tile_needs_no_quota() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await _quota(d, 0, 0)
        await d.load()
        d.send(n=6)
        await d.settle()
        assert (len(d.tiles), d["overflowed"]) == (1, 0)

    check(scenario)


def test_updates_and_tiles_are_counted() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(row1=4)
        for col in range(4):
            d.send(col=col, n=4)
            d.send(row=5, col=col, n=100)  # no chunk
        await d.settle()
        assert (d["updates"], d["tiles"]) == (16, 0)
        for col in range(4):
            d.send(col=col, n=2)
        for _ in range(30):
            await d.step()
            assert d["tiles"] == len(d.tiles) + d["tile_done_valid"], "visible together with the pulse"
        assert (d["updates"], d["tiles"]) == (24, 4)
        d.send(col=0, n=7)  # too many: an error, but an update all the same
        await d.settle()
        assert (d["updates"], d["tiles"], d["over_count"]) == (31, 4, 1)

    check(scenario, tracker_ways=4)
