"""What limited each run, in the sentences of ``t3 explain``."""

from collections.abc import Sequence

from t3sim.explain.folder import explain
from t3sim.run.ideal import COMPUTED
from t3sim.run.result import Result

from .parts import Block, Bullets, Item, tabbed


def limits_block(results: Sequence[Result]) -> Block:
    """A list of sentences for each policy; the fastest that was simulated is first."""
    found = explain(list(results))
    order = sorted(results, key=lambda result: (result.policy in COMPUTED, result.time_ns.total))
    lists: dict[str, Sequence[Item]] = {
        result.policy: [Bullets(items=[finding.text for finding in found[result.policy]])] for result in order
    }
    return Block(title="What limited the time", items=tabbed("policies", lists))
