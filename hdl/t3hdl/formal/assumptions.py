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
    "now is far from its end": Owed(
        says="now and the time that an abort takes are below 2**48",
        integrator="48 bits are 78 hours at 1 GHz: reset the unit and its time before, or count in a slower unit",
    ),
    "one action per CONTROL write": Owed(
        says="a CONTROL write has at most one of arm, disarm, abort, quiesce, resume",
        claims=(("registers.rules", "one action per CONTROL write"),),
    ),
    "the tracker's requests come one at a time": Owed(
        says="no arm, abort or debug read before init_done, while maintenance or while abort_busy",
        claims=(("registers.rules", "the tracker's requests come one at a time"),),
    ),
    "only registers that exist are written": Owed(
        says="no PROFILE register of a wavefront that does not exist, no address between registers",
        claims=(("registers.rules", "only registers that exist are written"),),
    ),
    "a chunk has a descriptor that exists": Owed(
        says="a load names a descriptor below `descriptors`",
        claims=(("trigger.loads", "a chunk has a descriptor that exists"),),
    ),
    "tokens go to their bank": Owed(
        says="bank (row XOR column) modulo banks takes a token",
        claims=(("token-network.routes", "tokens go to their bank"),),
    ),
}
"""By name. Free choices of a harness (``chosen``) are no assumptions: they only name what is looked at."""
