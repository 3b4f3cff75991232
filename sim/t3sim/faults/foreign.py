"""Stores of a job that does not own the output: they come in on the communication stream like a neighbour's."""

import random
from dataclasses import dataclass

import numpy as np
from t3hdl.interface.layouts import MemoryRequest, Op

from t3sim.common.compiled import kernel
from t3sim.engine.requests import append, make_request
from t3sim.engine.rows import carried_line, store_data
from t3sim.engine.state import COMM_WRITE, RS_WRITE

from .scene import FaultSystem

_CONTEXT, _TAGGED = MemoryRequest["context"].offset, MemoryRequest["tagged"].offset
_ROW, _COL = (MemoryRequest[name].offset - 64 for name in ("row", "col"))
_NOBODY = -3
"""An owner that is neither a workgroup nor a row of this GPU, nor a packet, whose room would go back as a credit."""


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
        line=rng.randrange(lines), op=rng.choice((Op.STORE, Op.ADD, Op.MIN, Op.MAX)),
        context=rng.randrange(1, contexts + 1), tagged=rng.random() < 0.75,
        tile=(rng.randrange(tiles[0]), rng.randrange(tiles[1])), data=rng.getrandbits(62),
    )  # fmt: skip


def send_foreign(system: FaultSystem, gpu: int, store: Store) -> None:
    """The store arrives at a GPU in this cycle."""
    word0 = store.context << _CONTEXT | store.tagged << _TAGGED
    word1 = store.tile[0] << _ROW | store.tile[1] << _COL
    data = np.full(4, store.data, np.int64)
    _inject(system.gpus[gpu], store.line, int(store.op), word0, word1, data, system.now)


@kernel
def _inject(g, line, op, word0, word1, data, now):
    """Queue the request at its channel, with data if lines carry some."""
    n = make_request(g, g.p[0].out_base + line, op, RS_WRITE, COMM_WRITE, 32, _NOBODY)
    node = g.nodes[n]
    node.word0 |= word0
    node.word1 |= word1
    node.carry = carried_line(g, g.p[0].out_base + line)
    if node.carry >= 0:
        node.row = store_data(g, data)
    g.s[0].incoming = g.s[0].incoming + 1
    append(g, n, COMM_WRITE, node.channel, now + g.p[0].request)
