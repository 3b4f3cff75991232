"""The proofs of the trigger and its parts find seeded mistakes."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from t3formal.prover.catalogue import chosen_proofs
from t3formal.prover.check import check
from t3formal.prover.proof import Task

pytestmark = pytest.mark.long  # seconds for each mistake


def broken_claims(name: str, patch: Callable[[str], str], **changes: object) -> tuple[str, ...]:
    """What the proof says is broken, at its first size, in the patched netlist."""

    def patched(text):
        changed = patch(text)
        assert changed != text
        return changed

    (proof,) = chosen_proofs((name,))
    proof = replace(proof, **changes)
    verdict = check(Task(proof=proof, size=next(iter(proof.sizes))), patch=patched, covers=False)
    assert verdict.outcome == "violated"
    return verdict.counterexample.claims


def in_module(text: str, module: str, change: Callable[[str], str]) -> str:
    """``text`` with the module whose name ends so changed."""
    found = re.search(rf"^module \\[\w.]*{module}\n.*?^end\n", text, re.MULTILINE | re.DOTALL)
    assert found
    return text[: found.start()] + change(found[0]) + text[found.end() :]


def test_a_ready_list_that_looks_behind_the_wrong_block_is_found():
    """Seeded: the next block is always read behind that of slot 0, whatever block has left."""
    claims = broken_claims(
        "ready-lists.in-order",
        lambda text: text.replace(r"connect \A \left [0]", r"connect \A 1'0"),
        method="bounded",
        depth=8,
    )
    assert {claim.replace("1", "0") for claim in claims} == {"the oldest of list 0 is read"}


def test_a_block_beyond_the_last_row_is_found():
    """Seeded: the chunk ends before its last block row or column."""
    claims = broken_claims(
        "block-table.fires-once",
        lambda text: in_module(text, r"\.dut", lambda module: re.sub(r"cell \$le (\$\d+)", r"cell $lt \1", module)),
        method="bounded",
        depth=8,
    )
    assert "a block is ready with its last tile or its chunk, once, and never else" in claims


def test_a_command_that_does_not_wait_for_the_one_before_is_found():
    """Seeded: the command register counts as free whether its command leaves or not."""
    claims = broken_claims(
        "command-issuer.once",
        lambda text: in_module(
            text, r"\.dut", lambda module: re.sub(r"connect \\B \\command__ready \[0\]", "connect \\\\B 1'1", module)
        ),
    )
    assert "a block is a command after 2 cycles, as soon as the one before has left" in claims


def test_a_watchdog_that_never_has_a_bit_of_its_cycles_is_found():
    """Seeded: bit 7 of WATCHDOG stays 0, which no short wait shows."""

    def forgets(module):
        return module.replace(r"\config [47:16]", r"{ \config [47:24] 1'0 \config [22:16] }")

    claims = broken_claims("trigger.settings", lambda text: in_module(text, r"\.settings", forgets))
    assert claims == ("0x0080 holds what was written last",)


def test_a_count_that_loses_its_high_bits_is_found():
    """Seeded: TRIGGERS begins anew after 2^30 commands, which no run shows."""

    def forgets(module):
        return module.replace(r"connect \A \triggers [31:0]", r"connect \A { 2'00 \triggers [29:0] }")

    (proof,) = chosen_proofs(("trigger.counts",))
    task = Task(proof=replace(proof, cover_depth=4), size="1 context")
    verdict = check(task, patch=lambda text: in_module(text, r"\.meter", forgets), covers=False)
    assert verdict.outcome == "not inductive"
    assert verdict.counterexample.claims == ("TRIGGERS counts the commands that left",)


def test_a_reset_that_leaves_a_bit_is_found():
    """Seeded: a bit of WATCHDOG is 1 after a reset; after power-up it is 0."""

    def leaves(module):
        return re.sub(
            r"(switch \\rst \[0\]\n +case 1'1\n +assign \$\d+ \[31:0\] 32'0{31})0", r"\g<1>1", module, count=1
        )

    (proof,) = chosen_proofs(("trigger.reset",))
    verdict = check(
        Task(proof=proof, size="small"), patch=lambda text: in_module(text, r"\.settings", leaves), covers=False
    )
    assert verdict.outcome == "violated"
    assert [event.split()[1] for event in verdict.counterexample.events] == ["settings.watchdog"]


@pytest.mark.slow
def test_a_trigger_that_loads_the_descriptors_of_another_context_differs_from_the_naive_one():
    """Seeded: the loader does not compare the context of a descriptor with its own."""

    def forgets(module):
        return re.sub(r"(connect \\A (\\descriptor \[\d+:\d+\])\n +connect \\B )\\chosen \[15:12\]", r"\1\2", module)

    claims = broken_claims("trigger.as-naive", lambda text: in_module(text, r"\.loader", forgets), depth=13)
    assert "live is the same" in claims


@pytest.mark.slow
def test_a_loader_that_goes_one_descriptor_too_far_is_found():
    """Seeded: a context has a descriptor left to load when the next one is the one after its last."""
    claims = broken_claims(
        "trigger.loads",
        lambda text: in_module(
            text, r"\.contexts", lambda module: re.sub(r"cell \$ne (\$\d+)", r"cell $le \1", module)
        ),
        method="bounded",
        depth=14,
    )
    assert claims[0].startswith("the loader works on what follows in context")
