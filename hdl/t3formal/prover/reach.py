"""How far a proof holds when what it assumes is itself only proven so far: a chain is as strong as its weakest link."""

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

from ..models.assumptions import Obligation


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What a proof shows, with all that it rests on.

    ``cycles`` : it holds in so many first cycles of every run; None: in every cycle. ``by`` : the proof that goes no
    further, itself or one that owes what it assumes, directly or not. ``trusted`` : names of the assumptions, its own
    and those of the proofs that it rests on, that an integrator owes.
    """

    cycles: int | None
    by: str
    trusted: frozenset[str]


def reaches(
    bounds: Mapping[str, int | None], assumed: Mapping[str, set[str]], obligations: Mapping[str, Obligation]
) -> dict[str, Reach]:
    """The reach of every proof by name.

    A claim holds in a cycle if what its proof assumes held up to that cycle. So if a neighbour owes it, and has shown
    it for some cycles only, the claim is shown for those cycles only.

    Parameters
    ----------
    bounds : by proof, how many cycles it looks at by itself; None for every one.
    assumed : by proof, the names of its assumptions at all its sizes.
    obligations : by assumption, who owes it.

    Raises KeyError for an assumption that nobody owes, or one that is owed by a proof that there is not;
    graphlib.CycleError if a proof rests on itself.
    """
    needs = {
        name: {proof for assumption in assumptions for proof, _ in obligations[assumption].claims}
        for name, assumptions in assumed.items()
    }
    found: dict[str, Reach] = {}
    for name in TopologicalSorter(needs).static_order():
        below = [found[proof] for proof in sorted(needs[name])]
        own = {assumption for assumption in assumed[name] if not obligations[assumption].claims}
        links = [(bounds[name], name), *((link.cycles, link.by) for link in below)]
        cycles, by = min(links, key=lambda link: (link[0] is None, link[0] or 0))
        found[name] = Reach(cycles=cycles, by=by, trusted=frozenset(own).union(*(link.trusted for link in below)))
    return found
