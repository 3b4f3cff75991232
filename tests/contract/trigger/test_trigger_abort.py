"""The trigger: abort of a context in every state, poisoned chunks."""

from dataclasses import replace

import pytest
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkKind

from tests.contract.trigger.scene import COLUMN, LOAD_AFTER_ARM, ONE, OTHER, QUICK, Scene

LATENCY = 7
"""Cycles from the last tile of a block to its command."""


@pytest.mark.parametrize("cycle", range(1, LOAD_AFTER_ARM + 2))
def test_abort_in_every_state_of_the_loader(backend, cycle):
    """WAIT, READ, START at 9, CLEAR, LOAD at 14, the load pulse, and after it."""
    d = Scene(backend)
    d.make_live(OTHER, first=6)
    d.describe(COLUMN)
    start = d.arm(1)
    d.until_cycle(start + cycle)
    loaded = cycle >= LOAD_AFTER_ARM
    assert d["load_valid"] == (cycle == LOAD_AFTER_ARM)
    d.abort()
    assert d.values("load_valid", "context.0") == (0, 0)
    d.settle()
    assert (d["live"], len(d.loads), d["armed"]) == (1 + loaded, 1 + loaded, 1)
    assert (d.context(1).armed, d.context(1).slots) == (1, 1)
    start = d.arm(1)
    d.settle()
    assert (d.loads[-1][0] - start, d.slot_of[0]) == (LOAD_AFTER_ARM, 1)
    d.finish(0, COLUMN)
    d.finish(6, OTHER)
    d.settle()
    for context, descriptor in ((0, 0), (1, 6)):
        assert sorted(d.blocks(descriptor)) == sorted(COLUMN.blocks()) and d.context(context).complete


@pytest.mark.parametrize("cycle", range(1, 12))
def test_abort_in_the_state_skip_and_around_it(backend, cycle):
    d = Scene(backend)
    d.describe(replace(ONE, kind=ChunkKind.NONE))
    start = d.arm(1)
    d.until_cycle(start + cycle)
    d.abort()
    d.step(20)
    assert (d["live"], d["context.0"]) == (cycle > 9, 0)


@pytest.mark.parametrize("cycle", range(1, 10))
def test_abort_in_every_state_of_the_issuer(backend, cycle):
    """With the last tile at t: in the list at t+4 (FETCH), LOOKUP, BUILD, command valid at t+7."""
    d = Scene(backend)
    d.make_live(COLUMN)
    d.make_live(OTHER, first=4)
    d.tile(0, 0)
    last = d.tile(0, 0, wf=1)
    d.until_cycle(last + cycle)
    d.abort()
    d.step(20)
    given = cycle >= LATENCY
    assert (len(d.commands), d["triggers"], d.context().outstanding, d.context().ready) == (given, given, given, 0)
    d.step(command_done=0)
    assert d.context().outstanding == 0
    d.finish(4, OTHER)
    d.settle()
    assert d.blocks(4) == [(row, 0, 1, 1) for row in range(4)] and d.context(1).complete
    d.works(COLUMN)


@pytest.mark.parametrize("aborted", [0, 1])
def test_abort_with_a_command_that_waits_on_a_stalled_stream(backend, aborted):
    d = Scene(backend)
    d.make_live(COLUMN)
    d.make_live(OTHER, first=4)
    d.accept["command"] = 0
    for descriptor, row in ((0, 0), (0, 1), (4, 0), (4, 1), (0, 2)):
        d.rows(descriptor, row)
    d.step(20)  # (0, 0) is the command, (0, 1) is built, the others wait
    others = d[f"context.{1 - aborted}"]
    d.abort(aborted)
    assert d.values("command.valid", f"context.{1 - aborted}") == (1, others)
    d.step(5)
    assert (d["command.valid"], d.context(aborted).ready, d.context().outstanding) == (1, 0, 1)
    d.accept["command"] = 1
    d.settle()
    left = [(0, 0), (4, 0), (4, 1)] if aborted == 0 else [(0, 0), (0, 1), (0, 2)]
    assert d.of_commands("descriptor", "row") == left
    assert [d.context(c).outstanding for c in range(2)] == ([1, 2] if aborted == 0 else [3, 0])
    d.works((COLUMN, OTHER)[aborted], first=4 * aborted)


@pytest.mark.parametrize("delay", range(7))
def test_abort_during_a_flush(backend, delay):
    d = Scene(backend)
    d.accept["command"] = 0
    d.make_live(COLUMN)
    d.make_live(OTHER, first=4)
    d.chunk_done(0, overflowed=1)
    d.step(delay)
    d.abort()
    assert d["done_mask"] == 1
    d.step(10)
    assert (d["done_mask"], d["chunks_done"], d.context().ready) == (1, 1, 0)
    d.accept["command"] = 1
    d.settle()
    assert len(d.commands) <= 1
    d.works(COLUMN)
    d.finish(4, OTHER)
    d.settle()
    assert len(d.blocks(4)) == 4 and d.context(1).complete


@pytest.mark.parametrize("pulse", ["chunk_done", "poison", "tile_done"])
def test_an_abort_wins_over_pulses_of_its_cycle(backend, pulse):
    d = Scene(backend)
    d.make_live(COLUMN)
    inputs = {"poison_valid": 1, "poison_slot": 0} if pulse == "poison" else {pulse: {"slot": 0}}
    d.step(config={"address": regs.CONTROL, "data": regs.Control.const({"abort": 1}).as_bits()}, **inputs)
    assert d.values("done_mask", "chunks_done", "poisoned") == (0, 0, 0)
    d.works(COLUMN)


def test_no_chunk_is_begun_while_the_tracker_is_busy_with_an_abort(backend):
    d = Scene(backend)
    d.describe(OTHER, OTHER)
    d.arm(2, context=1)
    d.step(3)
    d.step(40, abort_busy=1)
    assert d["live"] == 1, "the one that was on its way"
    assert backend != "golden" or d["idle"]
    start = d.now
    d.step(abort_busy=0)
    d.settle()
    assert d.loads[1][0] - start == LOAD_AFTER_ARM - 1


def test_an_abort_in_the_cycle_of_a_retirement_leaves_no_flush(backend):
    d = Scene(backend)
    d.quota(1, credits=0)
    d.make_live(ONE)
    d.make_live(OTHER, first=4)
    d.all_tiles(0, ONE)
    d.settle()
    d.chunk_done(4, overflowed=1)  # the walker is busy with this one
    d.chunk_done(0, overflowed=1)  # all issued: the slot is retired in the next cycle
    d.abort()
    d.step(7)
    assert (d["idle"], d.context(1).ready) == (1, 4), "no walk for the retired slot"


def test_a_poisoned_chunk_gives_no_command_and_never_ends(backend):
    d = Scene(backend)
    d.accept["command"] = 0
    d.make_live(COLUMN, COLUMN)
    for descriptor, row in ((1, 0), (0, 0), (0, 1), (1, 1)):
        d.rows(descriptor, row)
    d.step(20)
    assert d.context().ready == 2
    d.poison(0)
    assert d.values("poisoned", "done_mask") == (1, 0)
    d.accept["command"] = 1
    d.rows(0, 2, 3)
    d.chunk_done(0, overflowed=1)
    d.settle()
    # The block of chunk 0 that was built, and those in the list, are dropped.
    assert d.of_commands("descriptor", "row") == [(1, 0), (1, 1)]
    assert (d["done_mask"], d["chunks_done"], d.context().slots, d.context().ready) == (1, 1, 2, 0)
    d.rows(1, 2, 3)
    d.chunk_done(1)
    d.settle()
    assert (len(d.commands), d.context().slots, d.context().complete) == (4, 1, 0)
    d.poison(1)
    assert d["poisoned"] == 1, "the slot is free"
    d.abort()
    assert (d["poisoned"], d.context().slots) == (1, 0), "the bit stays until the next arm"
    d.arm(1)
    assert d["poisoned"] == 0
    d.settle()
    assert d.slot_of[0] == 0, "the slot can be used again"
    d.finish(0, COLUMN)
    d.settle()
    assert len(d.blocks(0)) == 4 and d.context().complete


def test_poison_stops_blocks_that_wait_but_no_command(backend):
    d = Scene(backend)
    d.accept["command"] = 0
    d.make_live(QUICK)
    d.all_tiles(0, QUICK)
    d.step(20)  # one is the command, one is built, two are in the list
    d.poison(0)
    d.step(20)
    assert (d.context().ready, d.context().outstanding, d["idle"]) == (0, 1, 1)
    d.accept["command"] = 1
    d.settle()
    assert d.of_commands("row") == [(0,)]


@pytest.mark.parametrize("cycle", range(1, 9))
def test_poison_at_any_time_after_the_last_tile(backend, cycle):
    d = Scene(backend)
    d.make_live(COLUMN)
    d.tile(0, 0)
    last = d.tile(0, 0, wf=1)
    d.until_cycle(last + cycle)
    d.poison(0)
    d.settle()
    assert len(d.commands) == (cycle >= LATENCY - 1)  # BUILD
    assert (d.context().ready, d.context().outstanding) == (0, len(d.commands))
