"""The ready lists against queues: order within a list, all lists in one table, clear."""

import random
from collections import deque
from typing import Any

import pytest
from t3hdl.config import preset
from t3hdl.trigger.ready_lists import ReadyLists

from tests.contract.backends import AmaranthBackend

_EMPTY = {"slot": 0, "block": 0, "by_chunk": 0}


class _Lists:
    """The part beside a queue per context; no bench of a part, because ``oldest`` follows an input."""

    def __init__(self, **overrides: Any) -> None:
        self.config = preset("small", **overrides)
        self.part = ReadyLists(config=self.config)
        self.backend = AmaranthBackend(self.part)
        self.queues = [deque() for _ in self.part.length]
        self.rng = random.Random(len(self.queues))

    def _another(self) -> tuple[int, dict[str, int]]:
        """Any context and block: what is only offered changes nothing."""
        return self.rng.randrange(len(self.queues)), _block(self.rng.randrange(3), self.rng.randrange(4))

    def step(self, *, push: tuple[int, dict[str, int]] | None = None, pop: int | None = None, clear: int = 0) -> None:
        """One cycle; checks what is popped, and the lists afterwards."""
        ctx, part = self.backend.context, self.part
        ctx.set(part.push, push is not None)
        context, block = push or self._another()
        ctx.set(part.offered, push is not None or self.rng.random() < 0.5)
        ctx.set(part.push_context, context)
        ctx.set(part.block, block)
        ctx.set(part.pop, 0 if pop is None else 1 << pop)
        ctx.set(part.clear, clear)
        if pop is not None:
            oldest = ctx.get(part.oldest)
            assert {field: oldest[field] for field in _EMPTY} == self.queues[pop].popleft()
        if push:
            self.queues[push[0]].append(push[1])
        for context, queue in enumerate(self.queues):
            if clear >> context & 1:
                queue.clear()
        self.backend.clock()
        assert [ctx.get(length) for length in part.length] == [len(queue) for queue in self.queues]
        assert ctx.get(part.waiting) == sum(bool(queue) << c for c, queue in enumerate(self.queues))
        assert (ctx.get(part.uncorrectable_error), ctx.get(part.corrected)) == (0, 0)


def _block(slot: int, block: int) -> dict[str, int]:
    return {"slot": slot, "block": block, "by_chunk": (slot + block) % 2}


@pytest.mark.parametrize("gap", range(4))
def test_a_pop_beside_a_push_to_a_list_of_one(gap):
    lists = _Lists()
    lists.step(push=(1, _block(0, 0)))
    for i in range(1, 12):
        for _ in range(gap):
            lists.step()
        lists.step(push=(1, _block(i % 3, i % 4)), pop=1)
        lists.step()
        lists.step()
    lists.step(pop=1)


def test_all_blocks_of_all_slots_fit_into_one_list():
    lists = _Lists()
    blocks = [_block(slot, block) for slot in range(4) for block in range(4)]
    random.Random(3).shuffle(blocks)
    for block in blocks:
        lists.step(push=(0, block))
    for _ in blocks:
        lists.step(pop=0)
        lists.step()
        lists.step()


@pytest.mark.parametrize(("seed", "overrides"), [
    (401, {}), (402, {"contexts": 1, "blocks": 1, "tracker_banks": 1}),
    (403, {"contexts": 5, "blocks": 16, "chunk_window": 3}), (404, {"protect": True}),
])  # fmt: skip
def test_random_lists(seed, overrides):
    print(f"seed {seed}")
    lists = _Lists(**overrides)
    rng = random.Random(seed)
    every = [_block(slot, block) for slot in range(lists.config.chunk_window) for block in range(lists.config.blocks)]
    since_pop = 3  # cycles; the oldest block is stale for two
    for _ in range(1200):
        listed = [block for queue in lists.queues for block in queue]
        free = [block for block in every if block not in listed]
        full = [c for c, queue in enumerate(lists.queues) if queue]
        push = (rng.randrange(lists.config.contexts), rng.choice(free)) if free and rng.random() < 0.5 else None
        pop = rng.choice(full) if full and since_pop > 2 and rng.random() < 0.7 else None
        clear = 1 << rng.randrange(lists.config.contexts) if rng.random() < 0.02 else 0
        since_pop = 1 if pop is not None else since_pop + 1
        lists.step(push=push, pop=pop, clear=clear)
