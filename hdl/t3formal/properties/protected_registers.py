"""The trigger's protected registers: settings, records of contexts, records of slots. A hit may come in every cycle."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Value
from amaranth.lib.wiring import Component
from t3hdl.common.secded import encode
from t3hdl.config import T3Config, preset
from t3hdl.trigger.context_state import ContextState
from t3hdl.trigger.settings import TriggerSettings
from t3hdl.trigger.slot_state import SlotState

from ..models.upsets import Upsets, beside
from ..prover.harness import Harness
from ..prover.proof import Proof

_REPORTS = ("corrected", "uncorrectable", "uncorrectable_error", "marks_lost")


def _strike(harness: Harness, upsets: Upsets) -> None:
    """Every hit is in any word in any cycle."""
    for number in range(len(upsets.hits)):
        word, place = harness.free(f"word_{number}", range(len(upsets.words))), harness.free(f"place_{number}", 2)
        upsets.strike(harness, number, now=harness.free(f"now_{number}"), word=Value.cast(word), place=place)


def _once(config: T3Config, *, part: Callable[..., Component], names: tuple[str, ...]) -> Harness:
    """Beside it the unprotected part: what a register of that holds is stored in the protected one, but for a bit."""
    upsets = Upsets(lambda: part(config=config), *names)
    harness = Harness(upsets.dut)
    _strike(harness, upsets)
    plain = part(config=replace(config, protect=False))
    outputs, registers = beside(harness, upsets.part, plain)
    for stored in upsets.words:
        register, code = registers[stored.path], harness.inside[stored.path]
        wrong = Value.cast(code) ^ encode(Value.cast(register) ^ register.init)
        harness.claim(f"{stored.path} is stored, but for a bit", (wrong & (wrong - 1)[: len(wrong)]) == 0)
    for name, (mine, expected) in outputs.items():
        if name in _REPORTS:
            if name != "corrected":
                harness.claim(f"{name} is never said", ~mine.any())
        else:
            harness.claim(f"{name} is the unprotected one's", mine == expected)
    corrected: Value = upsets.part.corrected
    harness.cover("a bit is corrected twice in a row", corrected & harness.past(corrected))
    return harness


def _twice(config: T3Config, *, part: Callable[..., Component], names: tuple[str, ...]) -> Harness:
    """Two bits of a word at once, and one in any other cycle."""
    upsets = Upsets(lambda: part(config=config), *names, twice=True)
    harness, unit = Harness(upsets.dut), upsets.part
    _strike(harness, upsets)
    lost = {stored.path: harness.past(upsets.both(stored)) for stored in upsets.words}
    _silent(harness, unit, lost)
    harness.cover("two wrong bits are found", Cat(*lost.values()).any())
    return harness


def _silent(harness: Harness, unit: Any, lost: dict[str, Value]) -> None:
    """``lost`` : of each word, whether two bits of it are wrong now."""
    for kind in ("quota", "context", "slot"):
        mine = [value for path, value in lost.items() if path.startswith(kind)]
        for number, value in enumerate(mine):
            report = unit.uncorrectable_error[number]
            harness.claim(f"{kind} {number} is reported, and only when two bits are wrong", report == value)
            if kind == "context":
                quiet = ~unit.credit[number] & ~unit.loadable[number]
                harness.claim(f"context {number} has no credit and loads nothing then", ~value | quiet)
                after = ~harness.past(value) | value | ~unit.status[number].complete
                harness.claim(f"context {number} is not complete after that", after)
            elif kind == "quota":
                rewritten = harness.past(unit.config_valid)
                none = unit.quota[number].as_value() == 0
                harness.claim(f"quota {number} is 0 after that", ~harness.past(value) | value | rewritten | none)
            else:
                retired = harness.past(value) & ~value
                poisoned = unit.used[number] & unit.poisoned[number]
                harness.claim(f"slot {number} is in use and poisoned after that", ~retired | poisoned)
    if "watchdog" in lost:
        rewritten = harness.past(unit.config_valid)
        after = harness.past(lost["watchdog"]) & ~lost["watchdog"]
        harness.claim("a lost watchdog is off", ~after | rewritten | (unit.cycles == 0))
        harness.claim("lost marks are reported", unit.marks_lost == lost["tile_marks"])
        harness.claim("every loss is reported", unit.uncorrectable == Cat(*lost.values()).any())


_SMALL = preset("small", protect=True, contexts=2, chunk_window=2, descriptors=2)
_PARTS: dict[str, tuple[Any, tuple[str, ...], str, str]] = {
    "settings": (
        TriggerSettings, (r"watchdog", r"tile_marks", r"quota_\d+"), "WATCHDOG, TILE_MARKS and QUOTA",
        "a quota or the watchdog's cycles are 0 in the next one, lost shares are told to the trigger",
    ),
    "contexts": (
        ContextState, (r"context_\d+",), "the records of contexts",
        "the context has no credit and loads nothing, and in the next cycle it is not complete",
    ),
    "slots": (
        SlotState, (r"slot_\d+",), "the records of slots", "in the next one the slot is in use and poisoned",
    ),
}  # fmt: skip

PROOFS = tuple(
    proof
    for name, (part, names, what, then) in _PARTS.items()
    for proof in (
        Proof(
            name=f"trigger-{name}.hit-once",
            invariants=(3,),
            says=f"A wrong bit in {what}, in every cycle anew and in any word, changes nothing but `corrected`. "
            "Bits looked at: four of each word.",
            harness=partial(_once, part=part, names=names),
            sizes={
                "2 contexts, 2 slots": _SMALL,
                "1 context, 4 slots": replace(_SMALL, contexts=1, chunk_window=4, descriptors=4),
            },
            method="induction",
            depth=1,
            cover_depth=6,
        ),
        Proof(
            name=f"trigger-{name}.hit-twice",
            invariants=(3,),
            says=f"Two wrong bits in a word of {what} are reported in the cycle in which they are there: {then}. Bits "
            "looked at: four of each word.",
            harness=partial(_twice, part=part, names=names),
            sizes={"2 contexts, 2 slots": _SMALL},
            method="induction",
            depth=2,
            cover_depth=6,
        ),
    )
)
