"""Ready lists, command issuer and command counters of the naive trigger (docs/hardware/trigger.md)."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from t3hdl.interface.register_map import NO_CREDIT_LIMIT

from .naive_trigger_blocks import Push
from .naive_trigger_state import Issuing, NaiveState, any_of, block_row, in_turn, pick


def commands(m: Module, ports: Any, state: NaiveState, push: Push) -> None:
    """From ready blocks to commands."""
    ready = [
        context.ready.any() & ((quota.credits == NO_CREDIT_LIMIT) | (context.outstanding < quota.credits))
        for context, quota in zip(state.contexts, ports.quotas, strict=True)
    ]
    winner = in_turn(m, ready, state.issuer_turn)
    fetches = Signal(name="naive_fetches")
    m.d.comb += fetches.eq((state.issuing == Issuing.FETCH) & ~state.quiesced & any_of(ready))
    with m.If(fetches):
        m.d.sync += [state.issuer_turn.eq((winner + 1) % len(ready)), state.issuer_context.eq(winner)]
        m.d.sync += state.held.eq(pick([context.waiting[0] for context in state.contexts], winner))
        with m.If(~ports.aborted(winner)):
            m.d.sync += state.issuing.eq(Issuing.LOOKUP)
    _lists(m, state, push, [fetches & (winner == c) for c in range(len(ready))])
    with m.If(state.issuing == Issuing.LOOKUP):
        m.d.sync += state.issuing.eq(Issuing.BUILD)
    builds = _build(m, ports, state)
    _count(m, ports, state, builds)


def _lists(m: Module, state: NaiveState, push: Push, pops: list[Value]) -> None:
    """Shift registers: a pop moves every block one place ahead, a push fills the first free place."""
    for c, context in enumerate(state.contexts):
        pop, pushed = pops[c], push.valid & (push.context == c)
        with m.If(pop):
            m.d.sync += [to.eq(of) for to, of in zip(context.waiting, context.waiting[1:], strict=False)]
        for i, place in enumerate(context.waiting):
            with m.If(pushed & (context.ready == i + pop)):
                m.d.sync += place.eq(push.block)
        m.d.sync += context.ready.eq(context.ready + pushed - pop)
    total = sum((context.ready for context in state.contexts), start=Value.cast(0))
    with m.If(total > state.peak):
        m.d.sync += state.peak.eq(total)
    m.d.sync += state.backlog.eq(total + sum(context.outstanding for context in state.contexts))


def _build(m: Module, ports: Any, state: NaiveState) -> Signal:
    """Writes ``command``; gives whether it does."""
    builds, held, taken = Signal(name="naive_builds"), state.held, state.command_valid & ports.command.ready
    poisoned = pick([slot.poisoned for slot in state.slots], held.slot)
    with m.If(taken):
        m.d.sync += state.command_valid.eq(0)
    with m.If(state.issuing == Issuing.BUILD):
        with m.If(poisoned):
            m.d.sync += state.issuing.eq(Issuing.FETCH)
        with m.Elif((~state.command_valid | taken) & ~ports.aborted(state.issuer_context)):
            m.d.comb += builds.eq(1)
            m.d.sync += [state.issuing.eq(Issuing.FETCH), state.command_valid.eq(1)]
    with m.If(builds):
        for s, slot in enumerate(state.slots):
            with m.If(held.slot == s):
                m.d.sync += slot.unissued.eq(slot.unissued - 1)
                with m.If(slot.unissued == 1):
                    m.d.sync += slot.all_issued.eq(1)
                _fill(m, state, slot)
    return builds


def _fill(m: Module, state: NaiveState, slot: Any) -> None:
    """The words of the command for the block that is held."""
    chunk, held, command = slot.chunk, state.held, state.command
    place, target = chunk.place, chunk.target
    row = (place.row0 + (block_row(held.number, target) << target.row_shift))[:12]
    col = (place.col0 + ((held.number >> target.row_blocks_log) << target.col_shift))[:12]
    fields = {
        "descriptor": slot.descriptor, "context": slot.context, "epoch": chunk.amount.epoch, "peer": place.peer,
        "op": place.op, "dtype": chunk.amount.dtype, "by_chunk": held.by_chunk, "row": row, "col": col,
        "rows": _least(1 << target.row_shift, (place.row1 - row)[:12]),
        "cols": _least(1 << target.col_shift, (place.col1 - col)[:12]),
        "pitch": chunk.buffer.pitch, "base": chunk.buffer.base, "peer_base": target.peer_base,
        **_tiles(chunk.last, block_row(held.number, target), held.number >> target.row_blocks_log),
    }  # fmt: skip
    m.d.sync += [command[name].eq(value) for name, value in fields.items()]


def _tiles(chunk: Any, row: Value, col: Value) -> dict[str, Value]:
    """What the command says of its tiles: the last ones of a block are whole unless it is the chunk's last block."""
    at_bottom, at_right = row == chunk.last_block_row, col == chunk.last_block_col
    return {
        "tile_rows": chunk.tile_rows, "wavefront_rows": chunk.wavefront_rows, "tile_lines": chunk.tile_lines,
        "last_rows": Mux(at_bottom, chunk.last_rows, chunk.tile_rows),
        "last_lines": Mux(at_right, chunk.last_lines, chunk.tile_lines),
        "bottom": at_bottom & chunk.bottom, "right": at_right & chunk.right,
    }  # fmt: skip


def _least(a: Value, b: Value) -> Value:
    return Mux(a < b, a, b)


def _count(m: Module, ports: Any, state: NaiveState, builds: Signal) -> None:
    """Outstanding commands by context; transfers and how long they waited."""
    for c, context in enumerate(state.contexts):
        issues = builds & (state.issuer_context == c)
        ends = ports.command_done_valid & (ports.command_done == c) & context.outstanding.any()
        m.d.sync += context.outstanding.eq(context.outstanding + issues - ends)
    with m.If(builds):
        m.d.sync += state.built.eq(ports.now)
    with m.If(state.command_valid & ports.command.ready):
        m.d.sync += state.triggers.eq(state.triggers + 1)
        m.d.sync += state.stall.eq(state.stall + ports.now - state.built - 1)
