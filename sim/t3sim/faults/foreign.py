"""Stores of a job that does not own the output: they come in on the communication stream like a neighbour's."""

import random
from dataclasses import dataclass

import numpy as np
from t3hdl.interface.layouts import LINE_BYTES, MemoryRequest, Op
from t3hdl.interface.words import pack, split

from t3sim.common.compiled import compiled
from t3sim.engine.requests import append, make_burst
from t3sim.engine.row_segments import carried_line, keep_data
from t3sim.engine.state import COMM_WRITE, LINE_WORDS, OUTSIDER, RS_WRITE

from .setup import FaultSystem


@dataclass(frozen=True)
class Store:
    """A line of the output (counted from its first one) that is written, and by whom. ``tile``: row, column."""

    line: int
    op: int
    context: int
    tagged: bool
    tile: tuple[int, int]
    data: int


def draw_store(rng: random.Random, lines: int, tiles: tuple[int, int], contexts: int) -> Store:
    """A store or update by any context but 0, to any line of the output."""
    return Store(
        line=rng.randrange(lines),
        op=rng.choice((Op.STORE, Op.ADD, Op.MIN, Op.MAX)),
        context=rng.randrange(1, contexts + 1),
        tagged=rng.random() < 0.75,
        tile=(rng.randrange(tiles[0]), rng.randrange(tiles[1])),
        data=rng.getrandbits(62),
    )


def inject_foreign_store(system: FaultSystem, gpu: int, store: Store) -> None:
    """The store arrives at a GPU in this cycle."""
    row, col = store.tile
    name = pack(MemoryRequest, context=store.context, tagged=store.tagged, row=row, col=col)
    word0, word1 = split(name, 2)
    data = np.full(LINE_WORDS, store.data, np.int64)
    _inject(system.gpus[gpu], store.line, int(store.op), word0, word1, data, system.now)


@compiled
def _inject(g, line, op, word0, word1, data, now):
    """Queue the request at its channel, with data if lines carry some."""
    n = make_burst(g, g.output.line + line, 1, op, RS_WRITE, COMM_WRITE, LINE_BYTES, OUTSIDER, 0)
    burst = g.bursts[n]
    burst.word0 |= word0
    burst.word1 |= word1
    if carried_line(g, g.output.line + line) >= 0:
        keep_data(g, burst, 0, data)
    g.comm.incoming = g.comm.incoming + 1
    append(g, n, COMM_WRITE, burst.channel, now + g.fabric.request_cycles)
