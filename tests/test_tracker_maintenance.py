"""What the tracker does to its tables between tokens: arm and abort sweeps, the end of an abort, debug reads."""

import pytest
from t3hdl.config import preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import NEVER
from tracker_driver import Driver, check

ROWS = 2  # of a bank of `small`


@pytest.mark.parametrize("kind", ["arm", "abort"])
def test_a_sweep_takes_a_cycle_per_row_and_tokens_wait(kind: str) -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(context=1, slot=1)
        await d.control(**{kind: 1, "context": 0})
        asked = d.bench.now - 1
        for k in range(6):
            d.send(context=1, col=k % 2)
        assert d["maintenance"]
        # Nothing is in the pipeline, so the sweep begins at once.
        assert await d.maintained() == asked + 1 + 2 + ROWS
        assert d["updates"] == 0
        assert [len(d.bench.sent[f"token.{b}"]) for b in range(2)] == [2, 2], "the input queues are full"
        await d.settle()
        assert (d["updates"], d["entries"], d["unmatched"]) == (6, 2, 0)

    check(scenario)


def test_the_sweep_waits_for_tokens_in_the_pipeline() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load()
        for k in range(4):
            d.send(row=0, col=2 * k)
        await d.step(2)  # M and the input queue hold a token each
        await d.control(arm=1, context=1, descriptors=1)
        asked = d.bench.now - 1
        # A token was taken into M at `asked`; it leaves R two cycles later.
        assert await d.maintained() == asked + 3 + 2 + ROWS
        assert d["updates"] == len(d.bench.sent["token.0"]) - 2
        await d.settle()
        assert d["updates"] == 4

    check(scenario)


def test_a_sweep_frees_the_entries_of_its_context_row_by_row() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(slot=0)
        await d.load(slot=1, context=1)
        for context in (0, 1):
            for row, col in ((0, 0), (0, 1), (1, 0), (1, 1)):
                d.send(context=context, row=row, col=col)
        await d.settle()
        assert (d["entries"], d["peak_entries"]) == (8, 8)
        await d.control(abort=1, context=1)
        seen = []
        while d["maintenance"]:
            seen.append(d["entries"])
            await d.step()
        # d, one cycle to read, then one row of both banks per cycle; `entries` follows
        assert (seen, d["entries"]) == ([8, 8, 8, 8], 6)
        await d.step()
        assert d["entries"] == 4
        d.send(n=5)
        d.send(context=1, n=5)
        await d.abort_over()
        await d.settle()
        assert (d.done_tiles, d["peak_entries"], d.errors) == ([(0, 0, 0, 0)], 8, [])

    check(scenario)


def test_an_arm_clears_the_marks_of_its_window_only() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(slot=0, row1=2, descriptor=3)
        await d.load(slot=1, row0=2, row1=4, descriptor=4)
        for row in (0, 2):
            for col in (0, 2, 4):
                d.send(row=row, col=col)
        await d.settle()
        assert (d["entries"], d["overflowed"]) == (1, 2)
        await d.control(arm=1, context=1, first=3, descriptors=1)
        await d.maintained()
        # Entries and slots are those of context 0: they stay. Its way is freed by its last update.
        d.send(row=0, col=0, n=5)
        await d.settle()
        d.send(row=2, col=2, n=1)
        await d.settle()
        assert d["entries"] == 0, "descriptor 4 is still marked"
        d.send(row=0, col=2, n=1)
        await d.settle()
        assert d["entries"] == 1, "descriptor 3 is not"

    check(scenario, tracker_ways=1)


@pytest.mark.parametrize("kind", ["arm", "abort"])
def test_slots_of_the_context_end_with_its_arm_and_abort(kind: str) -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(slot=0)
        await d.load(slot=1, context=1)
        await d.control(**{kind: 1, "context": 0})
        await d.abort_over()
        await d.maintained()
        d.send(context=1, n=6)
        await d.settle()
        assert (d.done_tiles, d.errors) == ([(1, 0, 0, 0)], [])
        d.send(n=6)
        await d.settle()
        assert (len(d.tiles), d.errors) == (1, ["unmatched"])

    check(scenario)


@pytest.mark.parametrize("kind", ["arm", "abort"])
@pytest.mark.parametrize("context", [0, 1])
def test_a_load_in_the_cycle_of_an_arm_or_abort(kind: str, context: int) -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(slot=2, context=1, expected=12)
        d.send(context=1, n=6)
        await d.settle()
        control = regs.Control.const({kind: 1, "context": 1}).as_bits()
        load = {"row1": 4095, "col1": 4095, "addends": 1, "valid": 1, "slot": 2, "context": context, "expected": 6}
        await d.step(config_valid=1, config={"address": regs.CONTROL, "data": control}, load_valid=1, load=load)
        await d.step(config_valid=0, load_valid=0)
        await d.abort_over()
        await d.maintained()
        d.send(context=context, n=6)
        await d.settle()
        lost = context == 1
        assert len(d.tiles) == (1 if lost else 2)
        assert len(d.chunks) == (0 if lost else 1)
        assert d.errors == (["unmatched"] if lost else [])

    check(scenario)


def test_tokens_of_an_aborted_context_are_dropped_until_the_drain_is_over() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(slot=0)
        await d.load(slot=1, context=1)
        await d.step(3)
        asked = d.bench.now
        await d.control(abort=1, context=0)
        assert d["abort_busy"]
        await d.maintained()
        deadline = asked + preset("small").drain_cycles
        await d.step(4)
        assert (d["idle"], d["wake_at"]) == (1, deadline)
        for col in (0, 1):
            d.send(col=col, n=6)
            d.send(context=1, col=col, n=6)
        await d.settle()
        assert [tile[0] for tile in d.done_tiles] == [1, 1]
        assert (d.errors, d["updates"]) == ([], 12)
        assert await d.abort_over() == deadline + 1
        assert d["wake_at"] == NEVER
        d.send(n=6)
        await d.settle()
        assert d.errors == ["unmatched"]
        assert d.bench.idle_checks > 20

    check(scenario)


def test_an_abort_lasts_for_its_sweep_and_for_the_tokens_that_wait_behind_it() -> None:
    overrides = {"tracker_sets": 256, "row_index_bits": 4, "slices": 1, "node_inputs": 1, "token_queue": 2}
    config = preset("small", **overrides)

    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(slot=0)
        asked = d.bench.now
        await d.control(abort=1, context=0)
        for _ in range(12):
            d.send(n=1)
        assert await d.maintained() == asked + 1 + 2 + config.sets_per_bank
        await d.settle()
        assert d["abort_busy"] == 1
        await d.abort_over()
        assert (d.errors, d["updates"], d["entries"]) == ([], 0, 0)

    check(scenario, **overrides)


@pytest.mark.parametrize("delay", range(6))
def test_a_token_in_flight_at_an_abort_leaves_no_entry(delay: int) -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load()
        d.send(n=2)
        await d.step(delay)
        await d.control(abort=1, context=0)
        await d.abort_over()
        await d.settle()
        assert (d["entries"], d.errors, d["updates"]) == (0, [], 2 if delay > 1 else 0)

    check(scenario)


def test_a_disarm_ends_maintenance_and_abort() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load()
        d.send(n=6)
        await d.settle()
        assert (await d.look())["ready"] == 1
        await d.control(abort=1, context=0)
        await d.step(2)
        await d.control(disarm=1)
        names = ("maintenance", "abort_busy", "debug_data", "updates", "tiles", "init_done")
        assert [d[name] for name in names] == [0] * 6
        await d.settle()
        await d.load()
        d.send(n=6)
        await d.settle()
        assert (d["updates"], d["tiles"], d.errors) == (6, 1, [])

    check(scenario)


# Debug read

TILE = {"context": 1, "epoch": 2, "row": 0x5A5, "col": 0x35A, "wf": 1}


@pytest.mark.parametrize("sizes", [
    {}, {"tracker_sets": 1, "tracker_banks": 1, "row_index_bits": 0},
    {"tracker_sets": 64, "tracker_banks": 4, "row_index_bits": 4, "blocks": 16},
    {"tracker_sets": 8, "tracker_banks": 2},
])  # fmt: skip
def test_a_debug_read_shows_an_entry(sizes: dict[str, int]) -> None:
    async def scenario(d: Driver) -> None:
        config = d.bench.part.parameters
        await d.start()
        await d.load(context=1, epoch=2)
        d.send(**TILE, n=5)
        await d.settle()
        bank = (TILE["row"] ^ TILE["col"]) % config.tracker_banks
        row_index = TILE["row"] % (1 << config.row_index_bits)
        column_index = TILE["col"] % (1 << config.column_index_bits)
        row = column_index | (row_index >> config.bank_bits) << config.column_index_bits
        asked = d.bench.now
        entry = await d.look(bank=bank, row=row, way=0)
        assert entry == {**TILE, "valid": 1, "count": 5, "ready": 1}
        assert d.bench.now == asked + 1 + 3, "maintenance ends with the answer"
        assert await d.look(bank=bank + config.tracker_banks & 7, row=row) == entry, "modulo the banks"
        nothing = {**dict.fromkeys(entry, 0), "ready": 1}
        for place in ({"way": 1}, {"way": config.tracker_ways}, {"way": 15}, {"row": row + config.sets_per_bank}):
            assert await d.look(**({"bank": bank, "row": row} | place)) == nothing
        d.send(**TILE, n=1)
        await d.settle()
        assert await d.look(bank=bank, row=row) == nothing, "the entry is free"

    check(scenario, **sizes)


def test_a_debug_read_waits_for_the_pipeline_and_begins_with_zero() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load()
        await d.look()
        assert d["debug_data"]
        for _ in range(4):
            d.send(n=1)
        await d.step(3)
        await d.write(regs.DEBUG_SELECT, {"row": 0}, regs.DebugSelect)
        assert d["debug_data"] == 0
        await d.maintained()
        assert regs.DebugData.from_bits(d["debug_data"]).count == d["updates"]
        assert 0 < d["updates"] < 4
        await d.settle()
        assert d["updates"] == 4

    check(scenario)
