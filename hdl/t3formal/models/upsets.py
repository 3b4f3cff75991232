"""A part of which one or two stored bits are inverted in a cycle."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Array, Fragment, Signal, Value
from amaranth.lib.wiring import Component, In, Out, Signature
from t3hdl.export.single_event_upsets import BIT_BITS, WORD_BITS, Stored, Upsettable, stored_words

from ..prover.harness import Harness
from ..prover.inside import Inside


class _SecondPort(Component):
    """A part with the ports ``second_word`` and ``second_bit``, so that :class:`Upsettable` can add two more."""

    def __init__(self, part: Component) -> None:
        self._inner = Upsettable(part)
        more = {"second_word": In(WORD_BITS), "second_bit": In(BIT_BITS)}
        super().__init__(Signature({**part.signature.members, **more}))
        for name in part.signature.members:
            setattr(self, name, getattr(part, name))
        self.second_word, self.second_bit = self._inner.upset_word, self._inner.upset_bit

    def elaborate(self, platform: Any) -> Fragment:
        """The part that can be hit once."""
        return Fragment.get(self._inner, platform)


@dataclass(frozen=True)
class Hit:
    """``word`` : the number of the stored word that is hit in this cycle, 0 for none; ``bit`` : which bit of it."""

    word: Value
    bit: Value


class Upsets:
    """A part under proof that a hit per cycle may reach, or two if it has no memories (``twice``).

    ``part`` : its ports are those of the part. ``hits`` : where hits come in. ``words`` : what may be hit, those whose
    path ends in one of ``patterns``. Who makes one drives every hit by :meth:`strike`.
    """

    def __init__(self, make: Callable[[], Component], *patterns: str, twice: bool = False) -> None:
        self.words: list[Stored] = [
            word for word in stored_words(make()) if any(re.search(rf"(^|\.){each}$", word.path) for each in patterns)
        ]
        self.part: Any = make()
        self.dut: Any = Upsettable(_SecondPort(self.part) if twice else self.part)
        self.hits = [Hit(self.dut.upset_word, self.dut.upset_bit)]
        if twice:
            self.hits.append(Hit(self.dut.second_word, self.dut.second_bit))

    def strike(self, harness: Harness, number: int, *, now: Value, word: Value, place: Value) -> None:
        """Drives hit ``number``, in cycles with ``now``. ``word`` counts from 0 in :attr:`words`; beyond: no hit.

        ``place`` : of four places of the word, which together stand for data bits and check bits: that the others are
        as good is shown of the code (blocks.secded-*).
        """
        m, hit = harness.m, self.hits[number]
        chosen, bit = Signal(WORD_BITS, name=f"struck_{number}"), Signal(BIT_BITS, name=f"struck_bit_{number}")
        with m.If(now), m.Switch(word):
            for i, stored in enumerate(self.words):
                with m.Case(i):
                    places = Array((0, stored.bits // 2, stored.bits - 2, stored.bits - 1))
                    m.d.comb += [chosen.eq(stored.number), bit.eq(places[place])]
        harness.drive(hit.word, chosen)
        harness.drive(hit.bit, bit)

    def both(self, stored: Stored) -> Value:
        """Two bits of a word are inverted in this cycle."""
        one, other = self.hits
        there = (one.word == stored.number) & (other.word == stored.number)
        return there & (one.bit != other.bit)


def beside(harness: Harness, part: Any, plain: Component) -> tuple[dict[str, tuple[Value, Value]], Inside]:
    """Puts ``plain`` beside ``part``, with the same inputs; the outputs of both by name, and what is inside of it."""
    harness.m.submodules.plain = fragment = Fragment.get(plain, None)
    outputs = {}
    for path, member, value in plain.signature.flatten(plain):
        twin: Any = part
        for step in path:
            twin = getattr(twin, step) if isinstance(step, str) else twin[step]
        if member.flow == Out:
            outputs["__".join(map(str, path))] = (Value.cast(twin), Value.cast(value))
        else:
            harness.m.d.comb += Value.cast(value).eq(Value.cast(twin))
    return outputs, Inside(fragment)
