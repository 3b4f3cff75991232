"""What proofs assume of a part's surroundings, and who owes it.

Every name that a harness passes to ``assume`` is here. A neighbour owes it by claims that are proven; the integrator
owes what is outside the hardware (docs/integration.md).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Owed:
    """An assumption: ``says`` what, and by whom it is owed.

    ``claims`` : (proof, claim) pairs that together show it; the claim of a proof, by their names.
    ``integrator`` : why it holds where no proof of ours reaches, empty otherwise.
    """

    says: str
    claims: tuple[tuple[str, str], ...] = ()
    integrator: str = ""


ASSUMPTIONS: dict[str, Owed] = {
    "now does not run back": Owed(
        says="now is at least what it was in the cycle before",
        integrator="it counts cycles, 48 bits of them, and neither stops nor jumps while the unit is in use",
    ),
    "a token queue is pushed only with room": Owed(
        says="push is 0 while level is the depth",
        claims=(("slice.reserves-tokens", "the token queue is pushed only with room"),),
    ),
    "an AXI manager keeps its items": Owed(
        says="AWVALID, WVALID and ARVALID, and what goes with them, stay until the transfer",
        integrator="a rule of AXI4-Lite for every manager (AMBA AXI specification, A3.2.1)",
    ),
    "the bus answers every request in the next cycle": Owed(
        says="response_valid is 1 exactly in the cycle after a request was taken",
        claims=(("registers.answers", "one answer in the cycle after a request, none else"),),
    ),
    "the bus is ready unless it answers": Owed(
        says="bus_ready is 0 exactly while response_valid is 1",
        claims=(("registers.answers", "ready unless it answers"),),
    ),
    "a bank gives its word in the next cycle, with every write up to the read's cycle": Owed(
        says="the byte that is looked at is, in read_data in the cycle after read_valid, what writes up to then left",
        integrator="the memory port of NmcUnit: a synchronous memory, written through, at each bank group",
    ),
}
"""By name. Free choices of a harness (``chosen``) are no assumptions: they only name what is looked at."""
