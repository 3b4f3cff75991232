"""``protect``: a wrong bit of any register is told in the next cycle, if that register has no check bits of its own."""

from dataclasses import replace
from functools import partial

from amaranth.hdl import Array, Const, Signal, Value
from t3hdl.common.broadcast import control_pulses
from t3hdl.config import T3Config, preset
from t3hdl.export.single_event_upsets import BIT_BITS, Upsettable, stored_words
from t3hdl.export.verilog import PARTS
from t3hdl.interface.parts import TABLE

from ..prover.harness import Harness
from ..prover.proof import Proof
from .idle import LEAST

_TOLD = {"registers": "events.damage"}
"""Where a part remembers what it found, but for its output ``uncorrectable``."""
_RESET = ("tracker", "trigger")
"""Parts that a disarm resets, with what was wrong in them."""


def _told(name: str, config: T3Config) -> Harness:
    """One bit is inverted, in any cycle: any bit of any register that is not checked by others, parities too."""
    words = [word for word in stored_words(PARTS[name](config)) if not word.checked]
    part = PARTS[name](config)
    harness = Harness(Upsettable(part))
    m, struck = harness.m, Signal(name="struck")
    place, bit = harness.chosen("place", range(len(words))), harness.chosen("bit", BIT_BITS)
    number, bits = (Array(getattr(word, field) for word in words)[place] for field in ("number", "bits"))
    strikes = Signal(name="strikes")
    m.d.comb += strikes.eq(harness.free("strike") & ~struck & (bit < bits))
    m.d.sync += struck.eq(struck | strikes)
    harness.drive(harness.dut.upset_word, number & strikes.replicate(len(number)))
    harness.drive(harness.dut.upset_bit, bit)
    damaged, was_struck = harness.inside["state_damaged"], harness.past(strikes)
    remembered = harness.inside[_TOLD[name]] if name in _TOLD else part.uncorrectable
    harness.claim("nothing is told before a bit is wrong", struck | ~damaged)
    harness.claim("a wrong bit is told in the next cycle", ~was_struck | damaged)
    forgotten: Value = Const(0)
    if name in _RESET:
        forgotten = harness.past(control_pulses(m, part.config_valid, part.config).disarm)
    harness.claim("and the part says so in the one after", ~harness.past(was_struck) | forgotten | remembered)
    harness.cover("a bit is wrong", damaged)
    return harness


_SIZES = {"nmc": preset("small", dtypes=("int32",), nmc_latency=2, nmc_lanes=2)}
"""Of the parts whose size ``LEAST`` does not decide."""
PROOFS = tuple(
    Proof(
        name=f"{name}.wrong-bit-is-told",
        invariants=(3,),
        says="A wrong bit of any register that has no check bits of its own, in any cycle, is told in the next one, "
        "and by the part itself in the one after"
        + (", if no disarm resets it before; " if name in _RESET else "; ")
        + "nothing is told before.",
        harness=partial(_told, name),
        sizes={"least": replace(_SIZES.get(name, LEAST), protect=True)},
        method="induction",
        depth=2,
        cover_depth=6,
        quick=name in ("leaf", "root", "registers"),
    )
    for name, part in TABLE.items()
    if "uncorrectable" in part.ports(LEAST).members
)
