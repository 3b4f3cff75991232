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
    "a token queue is pushed only with room": Owed(
        says="push is 0 while level is the depth",
        claims=(("slice.reserves-tokens", "the token queue is pushed only with room"),),
    ),
}
"""By name. Free choices of a harness (``chosen``) are no assumptions: they only name what is looked at."""
