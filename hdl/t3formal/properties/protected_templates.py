"""The templates of commands, which the command issuer keeps for each slot, with wrong bits."""

from dataclasses import replace
from functools import partial

from amaranth.hdl import Array, Cat, Const, Signal, Value
from t3hdl.config import T3Config, preset
from t3hdl.trigger.command_issuer import CommandIssuer

from ..models.upsets import Upsets, beside
from ..prover.harness import Harness
from ..prover.proof import Proof


def _struck(upsets: Upsets, hits: int) -> Harness:
    """One word is chosen, and a place in it for each hit; a hit comes in any cycle."""
    harness = Harness(upsets.dut)
    word = Value.cast(harness.chosen("word", range(max(2, len(upsets.words)))))
    struck, strikes = Signal(range(hits + 1), name="struck"), Signal(name="strikes")
    harness.m.d.comb += strikes.eq(harness.free("strike") & (struck != hits))
    harness.m.d.sync += struck.eq(struck + strikes)
    places = Array(harness.chosen(f"place_{number}", 2) for number in range(hits))
    upsets.strike(harness, 0, now=strikes, word=word, place=Value.cast(places[struck]))
    return harness


def _issuer(config: T3Config, *, hits: int) -> Harness:
    """Templates have their first and their last bit free. A slot is loaded before a block of it is taken."""
    upsets = Upsets(lambda: CommandIssuer(config=config), r"rows\.row_\d+")
    harness, issuer = _struck(upsets, hits), upsets.part
    m = harness.m
    bits = len(Value.cast(issuer.load_template))
    template = Cat(harness.free("first_bit"), Const(0, bits - 2), harness.free("last_bit"))
    harness.drive(issuer.load_template, template)
    harness.drive(issuer.load_slot, harness.free("slot_loaded", 1))
    harness.drive(issuer.oldest, slot := harness.free("slot_taken", 1))
    harness.drive(issuer.abort_context, harness.free("aborted", 1))
    loaded = Signal(config.chunk_window, name="loaded")
    with m.If(issuer.load):
        m.d.sync += loaded.eq(loaded | (1 << issuer.load_slot))
    harness.assume("a slot is loaded before its blocks are looked at", ~issuer.pop.any() | loaded.bit_select(slot, 1))
    outputs, _ = beside(harness, issuer, CommandIssuer(config=replace(config, protect=False)))
    given, expected = outputs["command__valid"]
    mine, other = outputs["command__payload"]
    reported = Signal(name="reported")
    told = reported | issuer.faults.any()
    m.d.sync += reported.eq(told)
    same = expected & (mine == other)
    harness.claim("a command is the unprotected one's, or comes after a report", ~given | told | same)
    harness.claim("a command that does not come is reported", ~expected | given | told)
    if hits == 1:
        harness.claim("nothing is lost", ~told)
        harness.cover("a template with a wrong bit becomes a command", given & harness.past(issuer.corrected))
    else:
        lost = harness.past(issuer.faults.any())
        harness.claim("what is lost becomes no command", ~lost | harness.past(issuer.issue == 0))
        harness.cover("a template is lost", lost & expected)
    return harness


_ONCE = (
    "One wrong bit in a template of commands, whenever it comes, changes no command. Bits looked at: four of each word."
)
_TWICE = (
    "A template with two wrong bits, whenever they come, becomes no command and is reported; every command up to then "
    "is that of the unprotected part."
)
_SMALL = preset("small", protect=True, contexts=2, chunk_window=2, descriptors=2)
PROOFS = tuple(
    Proof(
        name=f"command-issuer.hit-{times}",
        invariants=(3,),
        says=says,
        harness=partial(_issuer, hits=hits),
        sizes={"2 contexts, 2 slots": _SMALL},
        method="bounded",
        depth=9,
        quick=False,
    )
    for hits, times, says in ((1, "once", _ONCE), (2, "twice", _TWICE))
)
