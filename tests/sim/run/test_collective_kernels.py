"""The kernels' lists, walked by a machine without time: any order of progress ends with every partial once."""

import random

import pytest
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import custom_workload
from t3sim.run.collective_kernels import ALL_GATHER, NOTHING, transfers
from t3sim.run.plan import RunPlan
from t3sim.run.request import RunRequest

SIZES = [(256, 256, 4), (200, 136, 3), (256, 200, 8), (64, 64, 2), (333, 170, 5)]


def new_plan(size: tuple[int, int, int], policy: str, slice_kib: int = 2) -> RunPlan:
    m, n, tp = size
    machine = load_machine("toy", {"kernel.slice_kib": slice_kib})
    return RunPlan(RunRequest(workload=custom_workload(m, n, 64 * tp, tp), machine=machine, policy=policy))


class Walk:
    """Tiles as multisets of the GPUs whose partials they hold; one rectangle of a random GPU at a time."""

    def __init__(self, plan: RunPlan) -> None:
        self.plan, gpus = plan, range(plan.gpus)
        tiles = [(row, col) for row in range(plan.grid.rows) for col in range(plan.grid.cols)]
        self.out = [{tile: [gpu] for tile in tiles} for gpu in gpus]
        self.temp: list[dict] = [{} for _ in gpus]
        self.lists = [transfers(plan, gpu) for gpu in gpus]
        self.arrived: set[tuple[int, int, int]] = set()
        self.position = [0] * plan.gpus

    def ready(self, gpu: int) -> bool:
        if self.position[gpu] == len(self.lists[gpu]):
            return False
        move = self.lists[gpu][self.position[gpu]]
        return move["need"] == NOTHING or (gpu, move["need"], move["need_part"]) in self.arrived

    def step(self, gpu: int) -> None:
        move, out = self.lists[gpu][self.position[gpu]], self.plan.bases["out"]
        self.position[gpu] += 1
        peer = (gpu - 1) % self.plan.gpus if move["link"] else gpu
        kind = ALL_GATHER if move["read_cause"] >= 4 else ALL_GATHER - 1
        for tile in ((r, c) for r in range(move["row0"], move["row1"]) for c in range(move["col0"], move["col1"])):
            value = list(self.out[gpu][tile])
            if move["source2"] >= 0:
                value += self.temp[gpu].pop(tile)
            target = self.out[peer] if move["target"] == out else self.temp[peer]
            target[tile] = target[tile] + value if move["op"] >= 2 else value
        if move["link"]:
            self.arrived.add((peer, kind, move["need_part"]))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("policy", ["sequential", "sequential-pipelined", "sequential-nmc"])
def test_every_gpu_ends_with_every_partial_once(policy, size):
    for seed in range(5):
        print("seed", seed)
        order, walk = random.Random(seed), Walk(new_plan(size, policy))
        while ready := [gpu for gpu in range(size[2]) if walk.ready(gpu)]:
            walk.step(order.choice(ready))
        assert walk.position == [len(steps) for steps in walk.lists], "stuck"
        for memory in walk.out:
            assert all(sorted(partials) == list(range(size[2])) for partials in memory.values())
        assert not any(walk.temp)


def test_only_the_pipelined_ring_cuts_chunks():
    for policy, kib, parts in (("sequential", 2, 1), ("sequential-nmc", 2, 1), ("sequential-pipelined", 2, 16),
                               ("sequential-pipelined", 16, 2), ("sequential-pipelined", 1000, 1)):  # fmt: skip
        plan = new_plan((256, 256, 4), policy, kib)  # four chunks of 8 x 2 tiles of 2 KiB
        assert [len(parts) for parts in plan.parts] == [parts] * 4
        # three sends of each ring, and the owned chunk's reduction by a kernel
        assert len(transfers(plan, 0)) == (6 if policy == "sequential-nmc" else 7) * parts


def test_a_pipelined_gather_waits_for_the_reduction_and_for_nothing_else():
    steps = transfers(new_plan((256, 256, 4), "sequential-pipelined"), 1)
    assert [i for i, move in enumerate(steps) if move["drain"]] == [4 * 16]
    assert all(move["drain"] for move in transfers(new_plan((256, 256, 4), "sequential"), 1))


def test_the_owned_chunk_is_reduced_while_it_arrives():
    steps = transfers(new_plan((256, 256, 4), "sequential-pipelined"), 1)
    links = [move["link"] for move in steps[2 * 16 : 4 * 16]]
    assert links == [1, 1] + [0, 1] * 14 + [0, 0]
