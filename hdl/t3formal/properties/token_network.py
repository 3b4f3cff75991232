"""The token network loses no count and invents none, brings each to its bank, and lets every input have its turn."""

import re
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import Token
from t3hdl.slice.token_queue import TileKey
from t3hdl.token_network.network import TokenNetwork, TokenNode

from ..models.frames import MOST_CYCLES, Frames
from ..prover.harness import Harness
from ..prover.proof import Proof

_BITS = 12
"""Width of the sums that are compared: a carry out of a token's count does not go unseen."""


def _stored(harness: Harness) -> dict[str, tuple[Value, data.View]]:
    """Every place for a token: whether one is there, and which. Its name ends in ``front`` or ``back`` in an output."""
    inside, places = harness.inside, {}
    for path in inside.registers:
        node = path.removesuffix("o__valid")
        if re.search(r"queue_\d+\.o__valid$", path):
            places[f"{node}head"] = (inside[path], inside[f"{node}o__payload"])
            places[f"{node}spare"] = (inside[f"{node}full"], inside[f"{node}spare"])
        elif path.endswith("o__valid"):
            places[f"{node}front"] = (inside[path], inside[f"{node}o__payload"])
            places[f"{node}back"] = (inside[f"{node}back_valid"], inside[f"{node}back"])
    return {name: (Value.cast(valid), data.View(Token, Value.cast(token))) for name, (valid, token) in places.items()}


def _bank(token: data.View, banks: int) -> Value:
    return (token.row ^ token.col ^ token.wf) & (banks - 1)


class _TokenAccount:
    """Keeps an account for each place: what moves is taken off one account and put on another."""

    def __init__(self, harness: Harness) -> None:
        self._m = harness.m
        self.accounts: dict[str, Signal] = {}
        self._changes: dict[str, list[Value]] = {}

    def move(self, amount: Any, source: str | None, target: str | None) -> None:
        """``None`` stands for the outside."""
        for name, change in ((source, -Value.cast(amount)), (target, Value.cast(amount))):
            if name is not None:
                self.accounts.setdefault(name, Signal(_BITS, name=f"account_of_{name.replace('.', '_')}"))
                self._changes.setdefault(name, []).append(change)

    def close(self) -> None:
        """No more moves."""
        for name, account in self.accounts.items():
            self._m.d.sync += account.eq(account + sum(self._changes[name]))


def _conserves(config: T3Config) -> Harness:
    """One tile is chosen; every queue and every output holds as much of it as was moved there and not moved on."""
    network = TokenNetwork(config=config)
    harness = Harness(network)
    tile = harness.chosen("tile_of_interest", TileKey)
    places, ledger, roots = _stored(harness), _TokenAccount(harness), config.roots

    def counts(there: Any, token: Any) -> Value:
        return Mux(there & (token.as_value()[: TileKey.size] == tile.as_value()), token.n, 0)

    for k in range(config.nodes):
        for i in range(config.node_inputs):
            port = network.token_in[k * config.node_inputs + i]
            ledger.move(counts(port.valid & port.ready, port.payload), None, f"node_{k}.queue_{i}")
        _pops(harness, ledger, places, f"node_{k}", config.node_inputs, roots, counts)
        for r in range(roots):
            valid, token = places[f"node_{k}.output_{r}.front"]
            ready = ~places[f"root_{r}.queue_{k}.spare"][0]
            ledger.move(counts(valid & ready, token), f"node_{k}.output_{r}", f"root_{r}.queue_{k}")
    for r in range(roots):
        _pops(harness, ledger, places, f"root_{r}", config.nodes, config.root_outputs, counts)
    for bank, port in enumerate(network.token_out):
        source = f"root_{bank % roots}.output_{bank // roots}"
        ledger.move(counts(port.valid & port.ready, port.payload), source, None)
    goes_to = [~o.valid | (_bank(o.payload, config.tracker_banks) == bank) for bank, o in enumerate(network.token_out)]
    harness.claim("tokens go to their bank", Cat(goes_to).all())
    ledger.close()
    for name, account in ledger.accounts.items():
        there = [counts(*place) for path, place in places.items() if path.startswith(f"{name}.")]
        harness.claim(f"{name} holds what was moved there and not moved on", account == sum(there)[:_BITS])
    for name, (valid, token) in places.items():
        if name.endswith(("back", "spare")):
            before = places[name.replace("back", "front").replace("spare", "head")][0]
            harness.claim(f"{name} is behind another token", ~valid | before)
        if match := re.match(r"node_\d+\.output_(\d+)\.|root_(\d+)\.", name):
            root = int(match[1] or match[2])
            harness.claim(f"{name} is on the way to its bank", ~valid | (_bank(token, roots) == root))
        if match := re.match(r"root_(\d+)\.output_(\d+)\.", name):
            bank = int(match[2]) * roots + int(match[1])
            harness.claim(f"{name} is at its bank", ~valid | (_bank(token, config.tracker_banks) == bank))
    crowded = [valid for name, (valid, _) in places.items() if re.match(r"root_0\.(queue_0|output_0)\.", name)]
    harness.cover("no room at the root", Cat(crowded).all())
    harness.cover("tokens became one at the root", ledger.accounts["root_0.output_0"] == 4)
    return harness


def _pops(
    harness: Harness, ledger: _TokenAccount, places: dict[str, Any], node: str, inputs: int, outputs: int, counts: Any
) -> None:
    """Moves from the queues of a node to its outputs, each of one whole token."""
    pops = [harness.inside[f"{node}.output_{o}.pop"] for o in range(outputs)]
    for i in range(inputs):
        valid, token = places[f"{node}.queue_{i}.head"]
        for o, pop in enumerate(pops):
            ledger.move(counts(pop[i], token), f"{node}.queue_{i}", f"{node}.output_{o}")
            harness.claim(f"{node} output {o} takes from queue {i} what is there", ~pop[i] | valid)
        mine = Cat(pop[i] for pop in pops)
        harness.claim(f"{node} gives the head of queue {i} to one output", (mine & (mine - 1)) == 0)
    for o, pop in enumerate(pops):
        harness.claim(f"{node} output {o} takes one token at a time", (pop & (pop - 1)) == 0)


class _Turns:
    """A node of which one input is chosen, ``mine``; counts how often each output preferred another one to its head.

    ``head`` : whether the input has a head. ``goes`` : whether that leaves in this cycle. ``asks``, ``others`` : for
    each output whether the head asks it, and for how many others it has waited.
    """

    def __init__(self, config: T3Config) -> None:
        inputs, outputs = config.node_inputs, config.tracker_banks
        self.node = node = TokenNode(inputs=inputs, outputs=outputs)
        self.harness = harness = Harness(node)
        m, inside, places = harness.m, harness.inside, _stored(harness)
        self.mine = mine = harness.chosen("input_of_interest", range(inputs))
        heads = [places[f"queue_{i}.head"] for i in range(inputs)]
        self.head = Cat(valid for valid, _ in heads).bit_select(mine, 1)
        pops = [inside[f"output_{number}.pop"] for number in range(outputs)]
        self.goes = Cat(pop.bit_select(mine, 1) for pop in pops).any()
        self.asks, self.others = [], []
        for number, output in enumerate(node.token_out):
            at, goes = f"output_{number}", pops[number]
            asks = Cat(valid & (_bank(token, outputs) == number) for valid, token in heads)
            room = ~places[f"{at}.back"][0] | (output.valid & output.ready)
            others = Signal(range(inputs + 1), name=f"others_{number}")
            waits = (asks & ~goes).bit_select(mine, 1)
            m.d.sync += others.eq(Mux(waits, others + (room & goes.any()), 0))
            self.asks.append(asks.bit_select(mine, 1))
            self.others.append(others)
            harness.claim(f"{at} with room takes one token, if one is there", ~room | (goes.any() == asks.any()))
            harness.claim(f"{at} takes one token at a time", (goes & (goes - 1)) == 0)
            harness.claim(
                f"{at} takes a token without room only into one of its tile",
                room | ~goes.any() | _merges(goes, [token for _, token in heads], places[f"{at}.back"][1]),
            )
            harness.claim(f"{at} prefers each other input once at most", others < inputs)
            # What makes it inductive: those that come before the input at its turn have not been preferred yet.
            behind = inside[f"{at}.turn.behind"]
            turn = sum((~behind)[:inputs][i] for i in range(inputs)) % inputs
            in_order = ~Cat(behind[i] & ~behind[i + 1] for i in range(inputs - 1)).any()
            harness.claim(f"{at} has its turn in order", in_order)
            harness.claim(f"{at} counts those before", others + (mine + inputs - turn) % inputs < inputs)
            harness.claim(f"{at} has its first token in front", places[f"{at}.front"][0] | ~places[f"{at}.back"][0])
        for name, (valid, _) in places.items():
            if name.endswith("spare"):
                harness.claim(f"{name} is behind another token", ~valid | places[name.replace("spare", "head")][0])


def _takes_turns(config: T3Config) -> Harness:
    turns = _Turns(config)
    for number, others in enumerate(turns.others):
        turns.harness.cover(f"output_{number} has preferred every other input", others == config.node_inputs - 1)
    return turns.harness


def _keeps_moving(config: T3Config, *, behind: str) -> Harness:
    """``behind``: what takes the node's tokens. Frames are of any length; a round is as many as there are inputs."""
    turns, inputs = _Turns(config), config.node_inputs
    harness, node = turns.harness, turns.node
    m, begin = harness.m, harness.free("begin")
    frames = Frames(m, begin, harness.chosen("frame_length", range(MOST_CYCLES)) + 1)
    rests = [frames.seen(f"rests_{n}", ~output.valid | output.ready) for n, output in enumerate(node.token_out)]
    all_rest = Cat(now for _, now in rests).all()
    harness.assume(f"{behind} takes a token in every frame, or there is none", ~frames.ends | all_rest)
    number, round_ends = Signal(range(inputs)), Signal()
    m.d.comb += round_ends.eq(frames.ends & (number == inputs - 1))
    m.d.sync += number.eq(Mux(begin | round_ends, 0, number + frames.ends))
    left = ~turns.head | turns.goes
    moved_before, moved = frames.seen("moved", left, round_ends)
    harness.claim("an input's head leaves in every round, unless there is none", ~round_ends | moved)
    ready = Cat(port.ready for port in node.token_in).bit_select(turns.mine, 1)
    harness.claim("in the cycle after that the input is ready", ~harness.past(left) | ready)
    for o, (asks, others, (rested, _)) in enumerate(zip(turns.asks, turns.others, rests, strict=True)):
        waited = others >= number + rested
        harness.claim(f"who waits for output {o} has seen one go in every frame", ~asks | moved_before | waited)
    harness.cover("a head waits until the last frame", round_ends & ~moved_before & turns.goes)
    return harness


def _merges(goes: Value, heads: list[data.View], back: data.View) -> Value:
    """Whether the head that goes is of the tile of ``back``, and both counts are so small that their sum fits."""
    return Cat(
        ~go | ((head.as_value()[: TileKey.size] == back.as_value()[: TileKey.size]) & (head.n < 512) & (back.n < 512))
        for go, head in zip(goes, heads, strict=True)
    ).all()


_SIZES = {
    "2 slices, 1 bank": preset("small", slices=2, leaf_outputs=1, tracker_banks=1),
    "4 slices, 2 banks": preset("small", leaf_outputs=1),
    "4 slices, 2 banks, 2 roots": preset("small"),
    "4 slices at a node, 4 banks, 2 roots": preset(
        "small", slices=4, node_inputs=4, tracker_banks=4, tracker_sets=16, row_index_bits=2, blocks=16
    ),
}
_NODES = {
    f"{inputs} x {outputs}": preset(
        "small", slices=inputs, node_inputs=inputs, leaf_outputs=1, tracker_banks=outputs, tracker_sets=16,
        row_index_bits=2, blocks=16,
    )
    for inputs, outputs in ((2, 1), (2, 2), (4, 1), (4, 4))
}  # fmt: skip

PROOFS = (
    Proof(
        name="token-network.conserves",
        invariants=(3,),
        says="Every update that enters the token network leaves it in exactly one token of its tile, at its bank.",
        harness=_conserves,
        sizes=_SIZES,
        method="induction",
        depth=1,
        cover_depth=14,
    ),
    Proof(
        name="token-network.takes-turns",
        invariants=(3,),
        says="An output of a node that has room takes a token at once if one is there, and prefers each other input at "
        "most once: with n inputs a token waits for n - 1 others, and never in order to merge.",
        harness=_takes_turns,
        sizes=_NODES,
        method="induction",
        depth=1,
        cover_depth=14,
    ),
    *(
        Proof(
            name=f"token-network.{node}-keeps-moving",
            invariants=(3,),
            says="A lemma of drain_cycles: if in every frame of some cycles each output of a node of n inputs gives a "
            "token, or has none, then in every n frames each input takes one, or has none, a cycle later at most.",
            harness=partial(_keeps_moving, behind=behind),
            sizes=_NODES,
            method="induction",
            depth=1,
            cover_depth=24,
        )
        for node, behind in (("root", "a bank"), ("leaf", "a root"))
    ),
)
