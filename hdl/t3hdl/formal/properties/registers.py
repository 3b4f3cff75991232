"""The registers answer every request by the rules of docs/hardware.md, and keep locked configuration as it is."""

from ...config import T3Config, preset
from ...control.registers import ControlRegisters
from ..harness import Harness
from ..proof import Proof


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


PROOFS = (
    Proof(
        name="registers.answers",
        invariants=(8,),
        says="Every request is answered in the next cycle, and nothing else is; an error changes nothing outside.",
        harness=_answers,
        sizes={"small": preset("small"), "one context": preset("small", contexts=1, ranges=1)},
        depth=4,
    ),
)
