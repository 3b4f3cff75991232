"""Token nodes of any size on a bench, tokens, and what is counted of them."""

from collections import Counter

from amaranth.utils import ceil_log2

from tests.contract.bench import Bench, bench_of

FIELDS = ("context", "epoch", "row", "col", "wf", "right", "bottom")
"""What tells tiles apart."""
Token = dict[str, int]


def token(**fields: int) -> Token:
    """One update of tile 0, unless said otherwise."""
    return dict.fromkeys(FIELDS, 0) | {"n": 1} | fields


def counts(items: list[Token]) -> Counter:
    """Updates by tile."""
    sums: Counter = Counter()
    for item in items:
        sums[tuple(item[field] for field in FIELDS)] += item["n"]
    return sums


def node(backend: str, inputs: int = 2, outputs: int = 1, *, seed: int = 1) -> Bench:
    """A node that chooses by the lowest bits of a bank's number. 2 x 1 has the size of a root of the preset "small"."""
    if outputs == 1:
        return bench_of(backend, "leaf", slices=max(inputs, 4), node_inputs=inputs, leaf_outputs=1, seed=seed)
    sizes = {"leaf_outputs": 1}
    if outputs > 2:
        sizes |= {"tracker_sets": outputs**2, "row_index_bits": ceil_log2(outputs), "blocks": 64}
    return bench_of(backend, "root", slices=2 * inputs, node_inputs=2, tracker_banks=outputs, seed=seed, **sizes)


def accept(bench: Bench, probability: float) -> None:
    """The probability with which each output's taker is ready."""
    bench.accept = dict.fromkeys(bench.accept, probability)


def enter(bench: Bench, items: dict[int, Token]) -> None:
    """One cycle, in which these inputs take these tokens."""
    for number, item in items.items():
        bench.send[f"token_in.{number}"].append(item)
    bench.step()
    assert not any(bench.send.values())


def left(bench: Bench, output: int = 0) -> list[Token]:
    """The tokens that have left."""
    return [item for _, item in bench.got[f"token_out.{output}"]]


def run_random_traffic(bench: Bench, tokens: int = 150) -> None:
    """Random tokens of few tiles, gaps and back-pressure: no count is lost or doubled."""
    rng = bench.random
    for items in bench.send.values():
        items.extend(
            token(row=rng.randrange(3), col=rng.randrange(4), wf=rng.randrange(2), n=rng.choice([1, 2, 300, 600]))
            for _ in range(tokens)
        )
    sent = [item for items in bench.send.values() for item in items]
    while any(bench.send.values()) or not bench["idle"] or any(bench[f"{name}.valid"] for name in bench.got):
        if bench.now % 30 == 0:
            bench.gap = rng.choice([0.0, 0.5, 0.95])
            bench.accept = {name: rng.choice([0.0, 0.3, 1.0]) for name in bench.accept}
        bench.step()
        assert bench.now < 6000
    received = [left(bench, number) for number in range(len(bench.got))]
    for bank, items in enumerate(received):
        assert all((item["row"] ^ item["col"] ^ item["wf"]) % len(received) == bank for item in items)
    assert counts([item for items in received for item in items]) == counts(sent)
    assert sum(map(len, received)) < len(sent), "some tokens merged"
