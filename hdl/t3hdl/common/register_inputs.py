"""Netlists rebuilt by what their registers take: base for state parity and for the injection of single-event upsets."""

from typing import Any

from amaranth.hdl import Fragment, MemoryInstance, Signal, Value
from amaranth.hdl._ast import Assign, Part, SignalDict, Switch, SwitchValue
from amaranth.hdl._xfrm import FragmentTransformer, LHSMaskCollector, StatementTransformer, ValueTransformer

Chunk = tuple[Signal, int, int | None]
"""Bits of a signal that are registers: the signal, the first bit, the end (None: all of them)."""


class RegisterInputs(FragmentTransformer):
    """Gives the value that a register takes next a name, in every fragment of a netlist in the domain ``sync``.

    What becomes of it is the subclass's: :meth:`taken` for registers, :meth:`memory` for memories.
    """

    def __init__(self) -> None:
        self.path: tuple[str, ...] = ()
        """Names of the fragments from the top to the present one."""

    def taken(self, fragment: Fragment, chunks: list[tuple[Chunk, Value]]) -> list[Value]:
        """What the registers of ``fragment`` take, instead of the values beside them; may add statements."""
        raise NotImplementedError

    def memory(self, memory: MemoryInstance) -> Fragment:
        """The replacement of a memory."""
        return self.on_fragment(memory)

    def map_subfragments(self, fragment: Fragment, new_fragment: Fragment) -> None:
        """Rebuild the parts, and note where they are."""
        for index, (part, name, source) in enumerate(fragment.subfragments):
            outer, self.path = self.path, (*self.path, name or f"part_{index}")
            rebuilt = self.memory(part) if isinstance(part, MemoryInstance) else self.on_fragment(part)
            new_fragment.add_subfragment(rebuilt, name, src_loc=source)
            self.path = outer

    def map_statements(self, fragment: Fragment, new_fragment: Fragment) -> None:
        """The statements of ``sync`` drive signals of their own in ``comb``; the registers take those."""
        new_fragment.add_statements("comb", fragment.statements.get("comb", []))
        clocked = fragment.statements.get("sync", [])
        if not clocked:
            return
        written = LHSMaskCollector()
        written.visit_stmt(clocked)
        following: Any = SignalDict()
        chunks = []
        for signal, start, stop in written.chunks():
            if signal not in following:
                following[signal] = Signal(len(signal), name=f"{signal.name}_taken")
                new_fragment.add_statements("comb", following[signal].eq(signal))
            chunks.append(((signal, start, stop), following[signal][start:stop]))
        new_fragment.add_statements("comb", map(_Redirect(following).on_statement, clocked))
        for (chunk, _), value in zip(chunks, self.taken(new_fragment, chunks), strict=True):
            new_fragment.add_statements("sync", bits_of(chunk).eq(value))


def bits_of(chunk: Chunk) -> Value:
    """The bits of a signal that a chunk names."""
    signal, start, stop = chunk
    return Value.cast(signal)[start:stop]


class _Redirect(ValueTransformer, StatementTransformer):
    """Assigns to other signals instead of registers; what is read stays."""

    def __init__(self, targets: Any) -> None:
        self._targets = targets

    def on_Assign(self, stmt: Assign) -> Assign:
        return Assign(self.on_value(stmt.lhs), stmt.rhs)

    def on_Switch(self, stmt: Switch) -> Switch:
        return Switch(stmt.test, [(patterns, self.on_statement(body), source) for patterns, body, source in stmt.cases])

    def on_Signal(self, value: Signal) -> Value:
        return self._targets[value]

    def on_Part(self, value: Part) -> Value:
        return Part(self.on_value(value.value), value.offset, value.width, value.stride)

    def on_SwitchValue(self, value: SwitchValue) -> Value:
        return SwitchValue(value.test, [(patterns, self.on_value(inner)) for patterns, inner in value.cases])
