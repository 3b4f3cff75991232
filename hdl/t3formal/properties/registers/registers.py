"""The registers answer every request by docs/hardware/registers.md, and keep locked configuration as it is."""

from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data
from t3hdl.common.broadcast import control_written
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import EPOCH_BITS
from t3hdl.registers.barred_epochs import ContextEpochs
from t3hdl.registers.registers import ControlRegisters

from ...models.register_rules import RegisterRules
from ...prover.harness import Harness
from ...prover.proof import Proof

_LATE_RULES = (
    "a locked register",
    "an unprivileged write under LOCK.privileged",
    "a range in use with the epoch of a job of its context that did not end",
    "arm of descriptors of another active context",  # takes two contexts
)
"""Rules that are broken after other writes only."""


def _answers(config: T3Config) -> Harness:
    """Requests and answers, whatever they say."""
    registers = ControlRegisters(config=config)
    harness = Harness(registers)
    taken = registers.bus_valid & registers.bus_ready
    harness.claim("one answer in the cycle after a request, none else", registers.response_valid == harness.past(taken))
    harness.claim("ready unless it answers", registers.bus_ready == ~registers.response_valid)
    harness.claim(
        "a configuration write goes out beside a good answer alone",
        ~registers.config_valid | (registers.response_valid & ~registers.response_error),
    )
    harness.cover("a configuration write", registers.config_valid)
    harness.cover("an error", registers.response_valid & registers.response_error)
    return harness


def _rules(config: T3Config) -> Harness:
    """Every rule of the contract, beside masks of who has which descriptors and ranges."""
    registers = ControlRegisters(config=config)
    harness = Harness(registers)
    rules = RegisterRules(harness, registers, config)
    taken = Signal(name="taken_model")
    harness.m.d.comb += taken.eq(registers.bus_valid & registers.bus_ready)
    error = registers.response_error
    for write, named in ((1, rules.writes), (0, rules.reads)):
        for name, broken in named.items():
            breaks = harness.past(taken & (registers.bus_write == write) & broken)
            harness.claim(f"an error: {name}", ~breaks | error)
            if name in _LATE_RULES[: config.contexts + 2]:
                alone = ~Cat(other for other in named.values() if other is not broken).any()
                harness.cover(f"an error for this alone: {name}", breaks & harness.past(alone))
    harness.claim("nothing else is an error", ~harness.past(taken & ~rules.refused) | ~error)
    goes = harness.past(taken & rules.broadcast & ~rules.refused)
    written = harness.past(Cat(registers.bus_address, registers.bus_data))
    harness.claim("every good configuration write goes out, and no other", registers.config_valid == goes)
    harness.claim("as it was written", ~goes | (registers.config.as_value() == written))
    harness.claim(
        "what the parts take for a write of CONTROL is one",  # they look at one bit of the address
        control_written(registers.config_valid, registers.config)
        == (registers.config_valid & (registers.config.address == regs.CONTROL)),
    )
    harness.claim("locked configuration does not change", ~(registers.config_valid & harness.past(rules.locked)))
    harness.claim(
        "a write to a locked register interrupts",
        ~harness.past(taken & rules.hits_lock) | harness.inside[r"events\.irq"][regs.Interrupts["locked_write"].offset],
    )
    _links(harness, rules, config)
    return harness


def _aborts(config: T3Config) -> Harness:
    """An abort from its request to its end, as the registers show it; what is in flight is free to end, or not to."""
    registers = ControlRegisters(config=config)
    harness = Harness(registers)
    control = data.View(regs.Control, registers.config.data[: regs.Control.size])
    given = control_written(registers.config_valid, registers.config)
    aborting, tables = harness.inside[r"aborts\.aborting"], registers.maintenance | registers.abort_busy
    for c, context in enumerate(registers.context):
        mine = given & control.abort & (control.context == c)
        quiet = ~tables & ~registers.pending[c] & (context.outstanding == 0)
        was, disarmed = harness.past(aborting[c]), given & control.disarm
        harness.claim(f"an abort of context {c} begins with its pulse", ~mine | aborting[c])
        harness.claim(f"nothing else begins one of context {c}", was | ~aborting[c] | mine)
        harness.claim(
            f"one of context {c} ends only when nothing of it is in flight, or with a disarm",
            ~was | aborting[c] | disarmed | harness.past(quiet & ~mine),
        )
        harness.claim(
            f"one of context {c} is over as soon as nothing is in flight, but for a cycle after another abort",
            ~aborting[c] | ~harness.past(quiet) | mine | harness.past(given & control.abort),
        )
        harness.claim(
            f"context {c} is not armed before it",
            ~(given & control.arm & (control.context == c)) | ~harness.past(aborting[c] | registers.pending[c]),
        )
        harness.cover(f"an abort of context {c} ends while its last report comes", was & ~aborting[c] & ~disarmed)
    busy = Cat((context.armed & ~context.complete) | (context.outstanding != 0) for context in registers.context)
    under_way = tables | aborting.any() | registers.pending[: config.contexts].any() | busy.any()
    harness.claim(
        "nothing is under way when a disarm without force is let through",
        ~(given & control.disarm & ~control.forced) | ~harness.past(under_way),
    )
    harness.cover("a disarm by force while something is under way", given & control.disarm & harness.past(under_way))
    return harness


def _links(harness: Harness, rules: RegisterRules, config: T3Config) -> None:
    """What the registers remember is what the rules remember."""
    for c, window in enumerate(rules.windows):
        first, end = (harness.inside[f"window_{c}"].word_select(i, 7) for i in range(2))
        mask = Cat((first <= d) & (end > d) for d in range(config.descriptors))
        harness.claim(f"the window of context {c} is that of its last arm", window == mask)
        some = (first < end) & (end <= config.descriptors)
        harness.claim(f"the window of context {c} is empty after reset and disarm alone", some | ((first | end) == 0))
    for i, owner in enumerate(rules.owners):
        kept = harness.inside[f"owner_{i}"]
        harness.claim(f"range {i} has the owner that it was given last", owner == Mux(kept[0], 1 << kept[1:], 0))
    for c, barred in enumerate(rules.barred):
        kept = data.View(ContextEpochs, harness.inside[f"epochs_{c}"])
        harness.claim(f"the epoch of the last range of context {c}", kept.last == rules.epochs[c])
        harness.claim(f"the epoch of the last job of context {c}", kept.job == rules.job_epochs[c])
        reach = (kept.first == barred.first) & ((kept.first + kept.more)[:EPOCH_BITS] == barred.last)
        harness.claim(f"the epochs that context {c} may not have", (kept.valid == barred.some) & (~kept.valid | reach))
    harness.claim("a lock stays", harness.inside["lock"] == rules.lock.as_value())
    aborting = harness.inside[r"aborts\.aborting"]
    harness.claim("the contexts that are being aborted are those of the rules", aborting == rules.aborting)
    harness.claim("an abort is known for its first cycle", harness.inside["begun"] == rules.begun)


PROOFS = (
    Proof(
        name="registers.answers",
        invariants=(8,),
        says="Every request is answered in the next cycle, and nothing else is; an error changes nothing outside.",
        harness=_answers,
        sizes={"small": preset("small"), "one context": preset("small", contexts=1, ranges=1)},
        depth=4,
    ),
    Proof(
        name="registers.rules",
        invariants=(8,),
        says="Exactly the requests that the contract calls errors are refused: above all, writes to a locked "
        "register never reach a part.",
        harness=_rules,
        sizes={
            "small": preset("small"),
            "one context": preset("small", contexts=1, ranges=1),
            "four descriptors": preset("small", contexts=3, ranges=4, descriptors=4),
        },
        method="induction",
        depth=1,
        cover_depth=8,
    ),
    Proof(
        name="registers.aborts",
        invariants=(1, 3),
        says="A context is being aborted from the pulse of its abort until nothing of it is in flight: no tracked "
        "access, no command, no sweep. It is over in the cycle after, unless another abort has just begun. No arm of a "
        "context that is pending or being aborted is let through, nor a disarm without force while anything is under "
        "way.",
        harness=_aborts,
        sizes={"small": preset("small"), "one context": preset("small", contexts=1, ranges=1)},
        method="induction",
        depth=2,
        cover_depth=8,
    ),
)
