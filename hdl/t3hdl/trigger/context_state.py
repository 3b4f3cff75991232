"""State per context: window of descriptors, chunks in use, outstanding commands."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.protected_register import ProtectedRegister, protected_register
from ..config import T3Config
from ..interface import register_map as regs
from ..interface.layouts import ContextStatus

_State = data.StructLayout({"armed": 1, "following": 7, "end": 7, "slots": 7, "outstanding": 16})
_STOPPED = _State.const({"armed": 1, "slots": 1, "outstanding": 0xFFFF})
"""Never complete, never quiet, loads nothing: what a context is when nobody knows what it was."""


class ContextState(wiring.Component):
    """A record per context, and what its quotas allow.

    Parameters
    ----------
    config : gives ``contexts``, ``protect``.

    Members
    -------
    arm, abort, context, first, descriptors : In : pulses; CONTROL.
    load, skip, load_context : In : pulses; the next descriptor of the context is live, is skipped.
    retire : In(contexts) : pulse; a chunk of this context leaves use.
    issue, issue_context : In : pulse; a command of the context is given.
    done_valid, done : In : pulse; a command of context ``done`` is done. Ignored for a context without commands.
    quota : In(Quota).array(contexts)
    ready : In(13).array(contexts) : blocks that wait, for ``status``.
    loadable : Out(contexts) : has a descriptor to be made live, and quota for it.
    following : Out(6).array(contexts) : number of that descriptor.
    credit : Out(contexts) : may give a command.
    working : Out(1) : some context has commands that are not done.
    status : Out(ContextStatus).array(contexts)
    uncorrectable_error : Out(contexts) : pulse; of the record. The context is stopped until a disarm.
    corrected : Out(1) : a single-bit error of a record is corrected.

    Latency: 1. Throughput: one of each pulse per cycle; an abort wins, but for the commands. Reset: 0.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "arm": In(1), "abort": In(1), "context": In(4), "first": In(6), "descriptors": In(7),
            "load": In(1), "skip": In(1), "load_context": In(4),
            "retire": In(config.contexts),
            "issue": In(1), "issue_context": In(4),
            "done_valid": In(1), "done": In(4),
            "quota": In(regs.Quota).array(config.contexts),
            "ready": In(13).array(config.contexts),
            "loadable": Out(config.contexts), "following": Out(6).array(config.contexts),
            "credit": Out(config.contexts), "working": Out(1),
            "status": Out(ContextStatus).array(config.contexts),
            "uncorrectable_error": Out(config.contexts), "corrected": Out(1),
        })  # fmt: skip
        self._contexts, self._protect = config.contexts, config.protect

    def elaborate(self, platform: Any) -> Module:
        """One record per context; the pulses say which one they are about."""
        m = Module()
        records = [
            protected_register(m, _State, name=f"context_{c}", protect=self._protect) for c in range(self._contexts)
        ]
        for c, record in enumerate(records):
            state = record.value
            self._update(m, c, record)
            m.d.comb += [
                self.loadable[c].eq(
                    state.armed
                    & (state.following != state.end)
                    & (state.slots < self.quota[c].slots)
                    & ~record.uncorrectable
                ),
                self.following[c].eq(state.following),
                self.credit[c].eq(
                    ((self.quota[c].credits == regs.NO_CREDIT_LIMIT) | (state.outstanding < self.quota[c].credits))
                    & ~record.uncorrectable
                ),
                *(self.status[c][field].eq(state[field]) for field in _State.members),
                self.status[c].complete.eq(state.armed & (state.following == state.end) & (state.slots == 0)),
                self.status[c].ready.eq(self.ready[c]),
            ]
        m.d.comb += [
            self.working.eq(Cat(record.value.outstanding.any() for record in records).any()),
            self.uncorrectable_error.eq(Cat(record.uncorrectable for record in records)),
            self.corrected.eq(Cat(record.corrected for record in records).any()),
        ]
        return m

    def _update(self, m: Module, c: int, record: ProtectedRegister) -> None:
        """What the pulses of this cycle do to context ``c``."""
        state, following = record.value, record.following

        def addressed(pulse: Value, context: Value) -> Value:
            return pulse & (context == c)

        load, retire, abort = (
            addressed(self.load, self.load_context),
            self.retire[c],
            addressed(self.abort, self.context),
        )
        issue = addressed(self.issue, self.issue_context) & ~abort
        done = addressed(self.done_valid, self.done) & (state.outstanding != 0)
        m.d.comb += [
            following.following.eq(state.following + (load | addressed(self.skip, self.load_context))),
            following.slots.eq(_counted(state.slots, up=load, down=retire)),
            following.outstanding.eq(_counted(state.outstanding, up=issue, down=done)),
        ]
        with m.If(addressed(self.arm, self.context)):
            m.d.comb += [
                following.armed.eq(1),
                following.following.eq(self.first),
                following.end.eq(self.first + self.descriptors),
            ]
        with m.If(abort):
            m.d.comb += [following[field].eq(0) for field in ("armed", "following", "end", "slots")]
        with m.If(record.uncorrectable):
            m.d.comb += following.eq(_STOPPED)


def _counted(count: Value, *, up: Value, down: Value) -> Value:
    """``count`` + ``up`` - ``down``, both chosen late: they come later than the count."""
    n = len(count)
    return Mux(up, Mux(down, count, (count + 1)[:n]), Mux(down, (count - 1)[:n], count))
