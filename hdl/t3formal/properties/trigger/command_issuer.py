"""The command issuer turns every block that it takes into one command, or drops it with its chunk or context."""

from amaranth.hdl import Const, Mux, Signal, Value
from t3hdl.config import T3Config, preset
from t3hdl.trigger.command_issuer import CommandIssuer

from ...prover.harness import Harness
from ...prover.proof import Proof


def _narrow(harness: Harness, issuer: CommandIssuer, config: T3Config) -> None:
    """Plans are left out: they say nothing of when."""
    harness.drive(issuer.load, Const(0))
    harness.drive(issuer.load_slot, Const(0, 6))
    harness.drive(issuer.load_template, Const(0, len(Value.cast(issuer.load_template))))
    slot = harness.free("slot", (config.chunk_window - 1).bit_length())
    harness.drive(issuer.oldest, slot)
    harness.drive(issuer.abort_context, harness.free("aborted", (config.contexts - 1).bit_length()))


def _once(config: T3Config) -> Harness:
    """What is on its way: a block that was taken ``age`` cycles ago, of ``context`` and ``slot``."""
    issuer = CommandIssuer(config=config)
    harness = Harness(issuer)
    _narrow(harness, issuer, config)
    m, command = harness.m, issuer.command
    held, age = Signal(name="held_model"), Signal(2, name="age_model")
    slot, context = Signal(6, name="slot_model"), Signal(4, name="context_model")
    takes, winner = issuer.pop.any(), Signal(4)
    for c in range(config.contexts):
        with m.If(issuer.pop[c]):
            m.d.comb += winner.eq(c)
    aborted = issuer.abort & (issuer.abort_context == Mux(takes, winner, context))
    due = held & (age == 2)
    poisoned = due & issuer.poisoned.bit_select(slot, 1)
    free = ~command.valid | command.ready
    m.d.sync += age.eq(Mux(takes, 1, Mux(age == 2, 2, age + 1)))
    with m.If(takes):
        m.d.sync += [held.eq(~aborted), slot.eq(issuer.oldest.slot), context.eq(winner)]
    with m.Elif(held & (aborted | poisoned | (due & free))):
        m.d.sync += held.eq(0)
    issues = due & free & ~poisoned & ~aborted
    given = issuer.issue & ~aborted
    harness.claim("a block is a command after 2 cycles, as soon as the one before has left", given == issues)
    harness.claim(
        "it is the block that was taken", issuer.issued == Mux(issuer.issue, 1 << slot, 0)[: config.chunk_window]
    )
    harness.claim("for the context that it was taken for", ~issuer.issue | (issuer.issue_context == context))
    harness.claim("the command is there in the next cycle", command.valid == harness.past(issues | ~free))
    stays = harness.past(command.valid & ~command.ready)
    same = command.payload.as_value() == harness.past(command.payload.as_value())
    harness.claim("a command stays as it is until it is taken", ~stays | (command.valid & same))
    _takes(harness, issuer, held)
    harness.cover("a command waits, and a block behind it", due & ~free & harness.past(due & ~free))
    harness.cover("two commands in 3 cycles", issuer.issue & (command.valid & command.ready))
    harness.cover("a block of an aborted context is dropped", due & aborted & free)
    return harness


def _takes(harness: Harness, issuer: CommandIssuer, held: Signal) -> None:
    """When a block is taken, and of whom."""
    takes, n = issuer.pop.any(), len(issuer.pop)
    harness.claim("a block is taken as soon as none is held", takes == (~held & issuer.eligible.any()))
    harness.claim("only of contexts that may have one", (issuer.pop & ~issuer.eligible) == 0)
    harness.claim("of one context at a time", (issuer.pop & (issuer.pop - 1)[:n]) == 0)
    aborted = Mux(issuer.abort, (1 << issuer.abort_context)[:n], 0)
    left = harness.past(issuer.pop & ~aborted)
    again = issuer.pop & (left | harness.past(left & ~aborted))
    harness.claim("not of one context twice within three cycles", again == 0)
    mine = harness.chosen("context_of_interest", range(n))
    waits, passed = issuer.eligible.bit_select(mine, 1), Signal(range(n + 1), name="passed_over")
    with harness.m.If(issuer.pop.bit_select(mine, 1) | ~waits):
        harness.m.d.sync += passed.eq(0)
    with harness.m.Elif(takes):
        harness.m.d.sync += passed.eq(Mux(passed == n, n, passed + 1))
    harness.claim("every other context is taken once at most before one that waits", passed < n)
    if n > 1:
        harness.cover("the other context goes first", passed == n - 1)


_SMALL = preset("small", contexts=2, descriptors=2, chunk_window=2)
PROOFS = (
    Proof(
        name="command-issuer.once",
        invariants=(2, 3, 8),
        says="A block that is taken becomes one command 2 cycles later, or when the one before it leaves, unless its "
        "chunk is poisoned or its context aborted. Contexts take turns.",
        harness=_once,
        sizes={
            "2 contexts": _SMALL,
            "1 context": preset("small", contexts=1),
            "4 contexts": preset("small", contexts=4),
        },
        depth=12,
    ),
)
