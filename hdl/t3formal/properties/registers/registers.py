"""The registers answer every request by docs/hardware/registers.md, and keep locked configuration as it is."""

from amaranth.hdl import Cat, Mux, Signal
from t3hdl.common.broadcast import control_written
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.registers.registers import ControlRegisters

from ...models.register_rules import RegisterRules
from ...prover.harness import Harness
from ...prover.proof import Proof

_LATE_RULES = (
    "a locked register",
    "an unprivileged write under LOCK.privileged",
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
            if name in _LATE_RULES[: config.contexts + 1]:
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
    harness.claim("a lock stays", harness.inside["lock"] == rules.lock.as_value())


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
)
