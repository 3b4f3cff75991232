"""The ring against a walk that moves every partial chunk by hand and counts its bytes."""

from collections import Counter

import pytest
from t3hdl.interface.layouts import ChunkKind
from t3sim.collective.ring import ChunkMap, closed_forms, ring_maps, ring_next, ring_order

RINGS = (2, 3, 4, 5, 8, 16, 64)
FIRST, SECOND = 6, 10
"""Bytes of even and odd chunks: bytes of unequal chunks must come out too."""


def size(chunk: int) -> int:
    return SECOND if chunk % 2 else FIRST


def output_bytes(gpus: int) -> int:
    return sum(size(chunk) for chunk in range(gpus))


@pytest.mark.parametrize("gpus", RINGS)
def test_ring_is_one_cycle(gpus):
    seen, gpu = [], 0
    for _ in range(gpus):
        seen.append(gpu)
        gpu = ring_next(gpu, gpus)
    assert gpu == 0 and sorted(seen) == list(range(gpus))


@pytest.mark.parametrize("gpus", RINGS)
def test_order_of_a_gpu_is_that_of_its_source_one_step_later(gpus):
    """What a GPU sends in step s is what its neighbour sends in step s + 1; its own chunk is the last."""
    for gpu in range(gpus):
        order, following = ring_order(gpu, gpus), ring_order(ring_next(gpu, gpus), gpus)
        assert sorted(order) == list(range(gpus)) and order[-1] == gpu
        assert following[1:] == order[:-1]


@pytest.mark.parametrize("gpus", RINGS)
def test_maps_follow_the_order(gpus):
    for gpu in range(gpus):
        maps = ring_maps(gpu, gpus)
        assert [entry.chunk for entry in maps] == ring_order(gpu, gpus)
        kinds = [entry.kind for entry in maps]
        assert kinds == [ChunkKind.REMOTE] + [ChunkKind.DMA] * (gpus - 2) + [ChunkKind.LOCAL]
    assert ring_maps(1, 3) == [
        ChunkMap(2, ChunkKind.REMOTE, 0),
        ChunkMap(0, ChunkKind.DMA, 2),
        ChunkMap(1, ChunkKind.LOCAL, 2),
    ]


@pytest.mark.parametrize("gpus", RINGS)
def test_addends_are_the_updates_that_arrive(gpus):
    """A stored copy gets the GPU's own update and one from the neighbour; a remote chunk gets none here."""
    updates = Counter()
    for gpu in range(gpus):
        for entry in ring_maps(gpu, gpus):
            if entry.kind != ChunkKind.REMOTE:
                updates[gpu, entry.chunk] += 1
            if entry.kind != ChunkKind.LOCAL:
                updates[ring_next(gpu, gpus), entry.chunk] += 1
    for gpu in range(gpus):
        for entry in ring_maps(gpu, gpus):
            assert updates[gpu, entry.chunk] == entry.addends


def t3_walk(gpus: int) -> tuple[Counter, dict[int, list[int]]]:
    """Bytes per cause, and the GPUs whose partials each owner ends up with."""
    cost: Counter = Counter()
    memory: dict[tuple[int, int], list[int]] = {(gpu, chunk): [] for gpu in range(gpus) for chunk in range(gpus)}
    kind = {(gpu, entry.chunk): entry.kind for gpu in range(gpus) for entry in ring_maps(gpu, gpus)}
    for step in range(gpus):
        sent = []
        for gpu in range(gpus):
            chunk = ring_order(gpu, gpus)[step]
            peer = ring_next(gpu, gpus)
            if kind[gpu, chunk] == ChunkKind.REMOTE:
                sent.append((peer, chunk, [gpu]))
                continue
            memory[gpu, chunk].append(gpu)
            cost["gemm_write"] += size(chunk)
            if kind[gpu, chunk] == ChunkKind.DMA:
                cost["rs_read"] += size(chunk)
                sent.append((peer, chunk, memory[gpu, chunk]))
        for peer, chunk, partials in sent:
            memory[peer, chunk] = memory[peer, chunk] + partials
            cost["rs_write"] += size(chunk)
    cost.update(gather_walk(gpus))
    return cost, {chunk: memory[chunk, chunk] for chunk in range(gpus)}


def sequential_walk(gpus: int) -> tuple[Counter, dict[int, list[int]]]:
    cost: Counter = Counter()
    received: dict[int, list[int]] = {}
    for gpu in range(gpus):
        cost["gemm_write"] += sum(size(chunk) for chunk in range(gpus))
    for step in range(gpus - 1):
        arriving = {}
        for gpu in range(gpus):
            chunk = ring_order(gpu, gpus)[step]
            # read the GEMM's result and, after the first step, what has come; send the sum
            cost["rs_read"] += size(chunk) * (2 if step else 1)
            cost["rs_write"] += size(chunk)
            arriving[ring_next(gpu, gpus)] = [gpu, *received.get(gpu, [])]
        received = arriving
    for gpu in range(gpus):
        cost["rs_read"] += 2 * size(gpu)
        cost["rs_write"] += size(gpu)
    cost.update(gather_walk(gpus))
    return cost, {gpu: [gpu, *received[gpu]] for gpu in range(gpus)}


def near_memory_walk(gpus: int) -> tuple[Counter, dict[int, list[int]]]:
    """Every GPU's copy holds its own partial; a send is read once and added at the neighbour."""
    cost: Counter = Counter()
    memory = {(gpu, chunk): [gpu] for gpu in range(gpus) for chunk in range(gpus)}
    for _, chunk in memory:
        cost["gemm_write"] += size(chunk)
    for step in range(gpus - 1):
        sent = []
        for gpu in range(gpus):
            chunk = ring_order(gpu, gpus)[step]
            cost["rs_read"] += size(chunk)
            sent.append((ring_next(gpu, gpus), chunk, memory[gpu, chunk]))
        for peer, chunk, partials in sent:
            memory[peer, chunk] = memory[peer, chunk] + partials
            cost["rs_write"] += size(chunk)
    cost.update(gather_walk(gpus))
    return cost, {chunk: memory[chunk, chunk] for chunk in range(gpus)}


WALKS = {
    "sequential": sequential_walk,
    "sequential-pipelined": sequential_walk,
    "sequential-nmc": near_memory_walk,
    "t3": t3_walk,
    "t3-mca": t3_walk,
}


def gather_walk(gpus: int) -> Counter:
    cost: Counter = Counter()
    held = {gpu: {gpu} for gpu in range(gpus)}
    for step in range(gpus - 1):
        sent = [(ring_next(gpu, gpus), (gpu + step) % gpus) for gpu in range(gpus)]
        for peer, chunk in sent:
            source = (peer + 1) % gpus
            assert chunk in held[source] and chunk not in held[peer]
            cost["ag_read"] += size(chunk)
            cost["ag_write"] += size(chunk)
        for peer, chunk in sent:
            held[peer].add(chunk)
    assert all(chunks == set(range(gpus)) for chunks in held.values())
    return cost


@pytest.mark.parametrize("gpus", RINGS)
@pytest.mark.parametrize("policy", WALKS)
def test_closed_forms_are_what_the_walk_costs(policy, gpus):
    cost, owners = WALKS[policy](gpus)
    assert closed_forms(policy, gpus, output_bytes(gpus)) == {
        cause: cost[cause] for cause in ("gemm_write", "rs_read", "rs_write", "ag_read", "ag_write")
    }
    for partials in owners.values():
        assert sorted(partials) == list(range(gpus))
