"""Proofs of protected parts whose bits are hit find seeded mistakes."""

from dataclasses import replace

import pytest
from amaranth.hdl import Const
from t3hdl.common.secded import decode
from t3hdl.trigger.command_issuer import CommandIssuer
from t3hdl.trigger.context_state import ContextState
from t3hdl.trigger.settings import TriggerSettings
from t3hdl.trigger.slot_state import SlotState

from tests.formal.seeded_bugs import expect_failure
from tests.support.seeded_mistakes import seed


def test_an_entry_of_the_token_queue_that_leaves_although_it_is_lost_is_found(monkeypatch):
    """Seeded: the token queue does not look whether its oldest entry can be corrected."""

    def careless(m, stored, width):
        return replace(decode(m, stored, width), uncorrectable=Const(0, 1))

    monkeypatch.setattr("t3hdl.slice.token_queue.decode", careless)
    expect_failure(
        "token-queue.entries-hit-twice",
        None,
        "no token of a tile that was never pushed",
        "no line leaves that did not come",
        "lines are lost only with a report",
    )


def test_an_event_that_leaves_with_its_wrong_bit_is_found(monkeypatch):
    """Seeded: the event queue finds a wrong bit, says so, and gives the word as it is stored."""

    def uncorrected(m, stored, width):
        return replace(decode(m, stored, width), word=stored[:width])

    monkeypatch.setattr("t3hdl.tracker.event_queue.decode", uncorrected)
    expect_failure(
        "event-queue.entries-hit-once",
        None,
        "no tile of a slot that was never pushed",
        "one wrong bit loses no line",
        "no line leaves that did not come",
    )


def test_a_memory_that_does_not_correct_is_found(monkeypatch):
    """Seeded: a table finds a wrong bit, and gives the word as it is stored."""

    def uncorrected(m, stored, width):
        return replace(decode(m, stored, width), word=stored[:width])

    monkeypatch.setattr("t3hdl.common.ram.decode", uncorrected)
    expect_failure("blocks.memory-hit-once", None, "one wrong bit is corrected")


@pytest.mark.parametrize("part", ["settings", "contexts", "slots"])
def test_a_register_that_gives_its_wrong_bit_is_found(monkeypatch, part):
    """Seeded: a protected register finds a wrong bit, says so, and gives the word as it is stored."""

    def uncorrected(m, stored, width):
        return replace(decode(m, stored, width), word=stored[:width])

    monkeypatch.setattr("t3hdl.common.protected_register.decode", uncorrected)
    words = {"settings": ("watchdog", "tile_marks", "quota_0", "quota_1"), "contexts": ("context_0", "context_1"),
             "slots": ("slot_0", "slot_1")}[part]  # fmt: skip
    outputs = {"settings": ("cycles", "halvings", "quota__0", "quota__1"),
               "slots": ("used", "free_any", "free_slot", "descriptors__0", "descriptors__1"),
               "contexts": ("working", "credit", *(f"status__{c}" for c in range(2)))}[part]  # fmt: skip
    broken = [f"{name} is the unprotected one's" for name in outputs]
    broken += [f"{word} is stored, but for a bit" for word in words]
    expect_failure(f"trigger-{part}.hit-once", None, *broken)


@pytest.mark.parametrize(("part", "function", "old", "new", "claims"), [
    ("slots", SlotState.elaborate, "slot.following.poisoned.eq(1), ", "",
     [f"slot {s} is in use and poisoned after that" for s in range(2)]),
    ("settings", TriggerSettings.elaborate, "m.Elif(register.uncorrectable)", "m.Elif(register.uncorrectable & 0)",
     ["a lost watchdog is off", "quota 0 is 0 after that", "quota 1 is 0 after that"]),
    ("contexts", ContextState.elaborate, "credits))\n                & ~record.uncorrectable", "credits))",
     [f"context {c} has no credit and loads nothing then" for c in range(2)]),
])  # fmt: skip
def test_what_is_lost_and_goes_on_is_found(monkeypatch, part, function, old, new, claims):
    """Seeded: a slot whose record is lost is not poisoned, a setting stays as it is, a context has credit."""
    seed(monkeypatch, function, old, new)
    expect_failure(f"trigger-{part}.hit-twice", None, *claims)


@pytest.mark.long
def test_a_lost_template_that_becomes_a_command_is_found(monkeypatch):
    """Seeded: the command issuer reports a template that is lost, and builds the command all the same."""
    seed(monkeypatch, CommandIssuer.elaborate, "lost.eq(templates.uncorrectable | ", "lost.eq(")
    expect_failure("command-issuer.hit-twice", None, "what is lost becomes no command")
