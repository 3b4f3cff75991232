"""The tokens of the golden MemorySlice against hand-computed scenarios, one per statement of docs/hardware.md."""

import pytest
from golden_bench import fields, unpack
from golden_slice_scene import drain, make, out, performed, request, set_range, tokens, update
from t3hdl.interface.layouts import MemoryRequest, Op, Token


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
    assert fields(Token, tokens(bench, 3), "n") == [1, 2, 2]
    assert bench.item("token") is None


@pytest.mark.parametrize("tiles", [2, 3])
def test_tiles_in_turns_take_an_entry_each(tiles):
    bench = make(token_queue=8)
    set_range(bench)
    bench.tick(0, dram_ready=1)
    for k in range(30):
        bench.tick(comm_write=update(row=k % tiles))
    bench.tick(3)
    each = 30 // tiles
    expected = [(0, 1), *((row, each) for row in range(1, tiles)), (0, each - 1)]
    assert fields(Token, tokens(bench, tiles + 1), "row", "n") == expected
    assert bench.item("token") is None


def test_merge_into_the_middle_while_the_head_leaves():
    bench = make(token_queue=8)
    set_range(bench)
    bench.tick(0, dram_ready=1)
    for row in (0, 1, 2, 3, 2):
        bench.tick(comm_write=update(row=row))
    bench.tick()  # the last is in `out`; entries: rows 0 to 3
    bench.tick(token_ready=1)
    bench.tick(0, token_ready=0)
    assert fields(Token, tokens(bench, 3), "row", "n") == [(1, 1), (2, 2), (3, 1)]
    assert bench.item("token") is None


def test_a_full_entry_is_left_behind_by_a_second_of_its_name():
    bench = make(token_queue=8)
    set_range(bench)
    bench.tick(0, dram_ready=1)
    for row in (0, *[1] * 1022, 2, *[1] * 4):
        bench.tick(comm_write=update(row=row))
    bench.tick(3)
    assert fields(Token, tokens(bench, 4), "row", "n") == [(0, 1), (1, 1023), (2, 1), (1, 3)]


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
