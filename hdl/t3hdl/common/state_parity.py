"""A parity over every register of a part that has no check bits of its own."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from amaranth.hdl import Cat, Const, Fragment, Module, Signal, Value

from .register_inputs import Chunk, RegisterInputs, bits_of
from .synthesis_attributes import KEEP

CHECKED: Mapping[str, int] = MappingProxyType({"t3_checked": 1})
"""Attributes of a register whose owner sees a wrong bit of it by check bits or parity; ``attrs=CHECKED``."""
GROUP_BITS = 16
"""Register bits that share a parity bit: four levels of gates behind what they take."""


def under_state_parity(parts: Callable[[Value], Module], platform: Any, *, protect: bool) -> Module | Fragment:
    """What ``parts`` makes, with ``protect`` under :func:`add_state_parity`; it gets ``damaged``, else a constant 0."""
    if not protect:
        return parts(Const(0))
    damaged = Signal(name="state_damaged")
    return add_state_parity(parts(damaged), platform, damaged)


def add_state_parity(part: Any, platform: Any, damaged: Signal) -> Fragment:
    """The netlist of ``part`` with a parity bit for every 16 register bits of a module, but for memories and registers
    with the attributes :data:`CHECKED`.

    ``damaged``, a signal that the part reads, becomes 1 in the cycle in which an odd number of bits of a group is
    wrong. Latency: 0 from the wrong bit. Without faults nothing else changes. The parity is odd, so that it is not the
    copy of a single bit. It has the attributes :data:`~t3hdl.common.synthesis_attributes.KEEP`; registers that have
    check bits or parity of their own get them, too.
    """
    guard = _StateParity()
    netlist = guard.on_fragment(Fragment.get(part, platform))
    netlist.add_statements("comb", damaged.eq(Cat(guard.wrong).any()))
    return netlist


class _StateParity(RegisterInputs):
    """Adds parities beside registers; ``wrong``: a signal per group."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[Signal] = []

    def taken(self, fragment: Fragment, chunks: list[tuple[Chunk, Value]]) -> list[Value]:
        """Registers take what they did; parities take that of their groups."""
        guarded = []
        for chunk, value in chunks:
            if CHECKED.keys() <= chunk[0].attrs.keys():
                chunk[0].attrs.update(KEEP)
            else:
                guarded.append((chunk, value))
        stored = Cat(bits_of(chunk) for chunk, _ in guarded)
        following = Cat(value for _, value in guarded)
        initial = Const.cast(Cat(_initial(chunk) for chunk, _ in guarded)).value
        for first in range(0, len(stored), GROUP_BITS):
            last = first + GROUP_BITS
            even = (initial >> first & (1 << GROUP_BITS) - 1).bit_count() & 1 ^ 1
            parity, wrong = (
                Signal(name=f"state_{name}_{first // GROUP_BITS}", init=init, attrs=attrs)
                for name, init, attrs in (("parity", even, dict(KEEP)), ("wrong", 0, {}))
            )
            fragment.add_statements("sync", parity.eq(~following[first:last].xor()))
            fragment.add_statements("comb", wrong.eq(stored[first:last].xor() == parity))
            self.wrong.append(wrong)
        return [value for _, value in chunks]


def _initial(chunk: Chunk) -> Value:
    signal, start, stop = chunk
    return Const(signal.init, len(signal))[start:stop]
