"""What the whole trigger promises to its neighbours and to its parts."""

from dataclasses import replace
from typing import Any

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.common.broadcast import control_written
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.trigger.block_table import BlockOp
from t3hdl.trigger.trigger import Trigger

from ...models.naive_trigger_blocks import last_place, too_large
from ...models.narrow_trigger import legal_control, narrow_trigger
from ...prover.harness import Harness
from ...prover.proof import Proof


def _loads(config: T3Config) -> Harness:
    """One descriptor and one context are chosen. Every state that is claimed follows from the one before."""
    dut = Trigger(config=config)
    harness = Harness(dut)
    m, inside = harness.m, harness.inside
    legal_control(harness, dut)
    control: Any = data.View(regs.Control, dut.config.data[: regs.Control.size])
    written = control_written(dut.config_valid, dut.config)
    context = harness.chosen("context_of_interest", range(max(config.contexts, 2)))
    number = harness.chosen("descriptor_of_interest", range(config.descriptors))
    chosen = inside["loader.chosen"]
    slot, loading, owner = chosen[:6], chosen[6:12], chosen[12:16]
    works = ~inside["loader.waits"]
    used = inside["slots.used"]
    for c, status in enumerate(dut.context):
        mine = works & (owner == c)
        harness.claim(
            f"context {c} comes to its end, and its end is in the table",
            ((status.following <= status.end) & (status.end <= config.descriptors)),
        )
        harness.claim(
            f"the loader works on what follows in context {c}",
            ~mine | (status.armed & (loading == status.following) & (status.following < status.end)),
        )
    harness.claim("the loader works for a context that there is", ~works | (owner < config.contexts))
    harness.claim("a slot is loaded only if it is free", ~works | ~used.bit_select(slot, 1))
    harness.claim("into a slot that there is", slot < config.chunk_window)
    active = Cat(status.armed & ~status.complete for status in dut.context).any()
    shared = dut.config_valid & (dut.config.address == regs.TILE_MARKS)
    harness.assume("shares of the marks stay while a context is active", ~(shared & active))
    shares = Signal(7, name="slots_with_a_share")
    m.d.comb += shares.eq((1 << config.slot_bits) >> inside[r"settings\.tile_marks"])
    harness.claim("into a slot that has a share of the marks", ~works | (slot < shares) | (slot == 0))
    harness.claim("a chunk has a descriptor that exists", ~dut.load_valid | (dut.load.descriptor < config.descriptors))
    harness.claim("the loader is in one of its six states", inside["loader_state"] < 6)
    harness.claim("no descriptor is damaged", ~(inside["loader.data_error"] | inside["loader.uncorrectable_error"]))
    harness.claim("the loader waits when a chunk becomes live", ~(dut.load_valid & works))
    loads = dut.load_valid & (dut.load.descriptor == number) & (owner == context)
    made, arms = Signal(name="made_live"), written & control.arm & (control.context == context)
    aborts = written & control.abort & (control.context == context)
    with m.If(written & control.disarm | arms | aborts):
        m.d.sync += made.eq(0)
    with m.Elif(loads):
        m.d.sync += made.eq(1)
    following = sum((Mux(context == c, status.following, 0) for c, status in enumerate(dut.context)), start=Const(0))
    armed = sum((Mux(context == c, status.armed, 0) for c, status in enumerate(dut.context)), start=Const(0))
    harness.claim("a chunk is made live once", ~(loads & made))
    harness.claim("what is live is before what follows", ~made | (armed == 0) | (number < following))
    harness.claim("what becomes live too", ~loads | (armed == 0) | (number + 1 == following))
    harness.cover("the second descriptor becomes live", loads & (number == 1))
    return harness


def _blocks(config: T3Config) -> Harness:
    """One block of one slot is chosen; what comes to the block table and the ready lists is followed."""
    harness, dut, chunks = narrow_trigger(config, watchdog=False)
    m, blocks, lists = harness.m, dut.blocks, dut.lists
    slot = harness.chosen("slot_of_interest", range(max(config.chunk_window, 2)))
    number = harness.chosen("block_of_interest", range(max(config.blocks, 2)))
    op = Mux(blocks.tile_valid, BlockOp.TILE, Value.cast(blocks.walk_op))
    mine = Mux(blocks.tile_valid, blocks.tile.slot, blocks.walk_slot) == slot
    loads, clears = blocks.load & (blocks.load_slot == slot), mine & (op == BlockOp.CLEAR)
    looks = mine & (op != BlockOp.NONE) & ~clears
    loaded, cleared = Signal(name="loaded_model"), Signal(name="cleared_model")
    with m.If(loads):
        m.d.sync += [loaded.eq(1), cleared.eq(0)]
    with m.If(clears & (blocks.walk_number % config.blocks == number)):
        m.d.sync += cleared.eq(1)
    _clears_marks(harness, dut, chunks, loads, clears)
    inside_chunk = number < config.blocks
    harness.claim("a block is cleared before its slot is loaded", ~(loads & inside_chunk) | cleared)
    harness.claim("a slot is loaded before its blocks are looked at", ~looks | loaded)
    harness.claim("a slot is not looked at while it is loaded", ~(looks & loads))
    pushed = lists.push & (lists.block.slot == slot) & (lists.block.block == number)
    popped = lists.pop.any() & (lists.oldest.slot == slot) & (lists.oldest.block == number)
    waits, left, whose = Signal(name="waits_model"), Signal(name="left_model"), Signal(4, name="whose_model")
    dropped = lists.clear.bit_select(Mux(pushed, lists.push_context, whose), 1)
    with m.If(pushed):
        m.d.sync += [waits.eq(1), whose.eq(lists.push_context)]
    with m.If(popped):
        m.d.sync += [waits.eq(0), left.eq(1)]
    control: Any = data.View(regs.Control, dut.config.data[: regs.Control.size])
    disarm = control_written(dut.config_valid, dut.config) & control.disarm
    with m.If(((waits | pushed) & dropped) | disarm):
        m.d.sync += waits.eq(0)
    with m.If(loads):
        m.d.sync += left.eq(0)
    harness.claim("a ready block is of a context that there is", ~lists.push | (lists.push_context < config.contexts))
    harness.claim("a block that waits is not pushed again", ~(pushed & waits))
    harness.claim("a slot is not cleared while its blocks wait", ~(clears & waits))
    harness.claim("a block leaves its list once, from load to load", ~(popped & left))
    _answers(harness, dut)
    harness.cover("a block leaves its list", popped)
    harness.cover("a slot is cleared again", clears & left)
    return harness


def _clears_marks(harness: Harness, dut: Any, chunks: list[Any], loads: Value, clears: Value) -> None:
    """One word of a slot's marks is chosen; if the chunk that is loaded has tiles there, it was cleared since the slot
    was loaded before."""
    word, config = harness.chosen("word_of_interest", 1), dut.parameters
    words, cleared = 1 << config.share_bits - config.word_tile_bits, Signal(name="word_cleared")
    with harness.m.If(loads):
        harness.m.d.sync += cleared.eq(0)
    with harness.m.If(clears & (dut.blocks.walk_number % words == word)):
        harness.m.d.sync += cleared.eq(1)
    place = Array(chunk.place for chunk in chunks)[dut.number]
    has = (last_place(place) >> config.word_tile_bits >= word) & ~too_large(config, place) & (word < words)
    harness.claim("marks are cleared before their slot is loaded", ~(loads & has) | cleared)
    if words > 1:
        harness.cover("a chunk with two words of marks is loaded", loads & has & (word == 1))


def _answers(harness: Harness, dut: Any) -> None:
    """The command of a block that is alone comes 4 cycles after the block is pushed, 7 after its last tile."""
    lists, age = dut.lists, Signal(3, name="age_model")
    credit = dut.contexts.credit.bit_select(lists.push_context, 1)
    alone = (dut.peak_ready == 0) & dut.issuer.waits & ~dut.command.valid & ~lists.waiting.any()
    undisturbed = ~dut.config_valid & ~dut.poison_valid & ~dut.quiesced & ~dut.blocks.twice
    with harness.m.If(~undisturbed):
        harness.m.d.sync += age.eq(0)
    with harness.m.Elif(lists.push & alone & credit & (age == 0)):
        harness.m.d.sync += age.eq(1)
    with harness.m.Elif(age != 0):
        harness.m.d.sync += age.eq(Mux(age == 4, 0, age + 1))
    harness.claim("a block that is alone is a command 4 cycles after its push", (age != 4) | dut.command.valid)
    harness.claim("and not earlier", (age == 0) | (age == 4) | ~dut.command.valid)
    harness.cover("it is", age == 4)


_SMALL = preset(
    "small",
    contexts=2,
    descriptors=2,
    chunk_window=2,
    blocks=1,
    tile_marks=8,
    event_queue=3,
    tracker_banks=1,
    row_index_bits=1,
)
PROOFS = (
    Proof(
        name="trigger.loads",
        invariants=(3, 4),
        says="Every descriptor of an armed window is made live once, in order, in a slot that is free.",
        harness=_loads,
        sizes={"2 descriptors": _SMALL, "small": preset("small"), "1 context": preset("small", contexts=1)},
        method="induction",
        depth=1,
        cover_depth=30,
        quick=False,
    ),
    Proof(
        name="trigger.blocks",
        invariants=(1, 2, 3),
        says="The block table and the ready lists get what they rely on: slots are cleared, loaded, then used, and "
        "no block is in a list when its slot is cleared. A block that is alone is a command 4 cycles after its push.",
        harness=_blocks,
        sizes={
            "1 context, 2 words of marks": replace(_SMALL, contexts=1, tile_marks=16, wavefronts=16),
            "2 contexts": _SMALL,
            "1 context, 2 blocks": replace(_SMALL, contexts=1, blocks=2),
        },
        method="bounded",
        depth=29,
        cover_depth=29,
        quick=False,
    ),
)
