"""Queues, memories, code words, protected registers, turns: the blocks of every part do what the parts rely on."""

from functools import partial
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from t3hdl.common.choose import RoundRobin
from t3hdl.common.parity import write_with_parity
from t3hdl.common.protected_register import protected_register
from t3hdl.common.queues import InputQueue, PingPongQueue
from t3hdl.common.ram import Ram
from t3hdl.common.secded import check_bits, decode, encode
from t3hdl.config import T3Config, preset

from ..prover.harness import Harness
from ..prover.proof import Proof

_DEPTH = 2
"""Of an input queue: rule 2 of docs/hardware/rules.md."""
_WIDTHS = (11, 26, 57, 120, 264)
"""The widest words of five to eight check bits, and the widest word in use. A narrower word with as many check bits is
one of these whose upper bits are 0: its columns are the first ones of theirs."""


def _queue(_: T3Config, *, kind: type) -> Harness:
    """One item is chosen while it enters; how many are before it, and what it carries, is followed."""
    queue = kind(8)
    harness = Harness(queue)
    m, source, sink = harness.m, queue.i, queue.o
    level = Signal(range(_DEPTH + 1))
    watching, before, payload = Signal(), Signal(range(_DEPTH + 1)), Signal(8)
    push, pop = source.valid & source.ready, sink.valid & sink.ready
    m.d.sync += level.eq(level + push - pop)
    with m.If(watching & pop):
        m.d.sync += [before.eq(before - 1), watching.eq(before != 0)]
    with m.Elif(~watching & push & harness.free("look_at_this_item")):
        m.d.sync += [watching.eq(1), before.eq(level - pop), payload.eq(source.payload)]
    stays = sink.valid & ~sink.ready
    harness.claim("ready means fewer than two entries", source.ready == (level < _DEPTH))
    harness.claim("valid means an entry", sink.valid == (level != 0))
    harness.claim("an item leaves in its turn, unchanged", ~watching | before.any() | (sink.payload == payload))
    harness.claim(
        "an item that is not taken stays",
        ~harness.past(stays) | (sink.valid & (sink.payload == harness.past(sink.payload))),
    )
    harness.cover("an item behind another one leaves", watching & pop & (before == 0) & harness.past(before == 1))
    harness.cover("one in and one out in the same cycle", push & pop)
    return harness


def _ram(config: T3Config, *, latency: int, through: bool) -> Harness:
    """One row is chosen; the model is that row, once it was written."""
    ram = Ram(4, depth=4, latency=latency, write_through=through, protect=config.protect)
    harness = Harness(ram)
    m, row = harness.m, harness.chosen("row_of_interest", 2)
    written, word = Signal(), Signal(4)
    known, expected = Signal(), Signal(4)
    writes, reads = ram.write & (ram.write_row == row), ram.read & (ram.read_row == row)
    with m.If(writes):
        m.d.sync += [written.eq(1), word.eq(ram.write_data)]
    if latency:
        with m.If(reads):
            m.d.sync += [
                known.eq(Mux(writes, int(through), written)),
                expected.eq(Mux(writes, ram.write_data, word)),
            ]
        with m.Elif(ram.read):
            m.d.sync += known.eq(0)
    else:
        m.d.comb += [known.eq(written & reads), expected.eq(word)]
    harness.claim("a read gives what was written last", ~known | (ram.data == expected))
    harness.claim("nothing is called wrong", ~known | ~(ram.corrected | ram.uncorrectable))
    harness.cover("a row is read twice with a write between", known & (expected == 5) & harness.past(known))
    if through:
        harness.cover("a read of the cycle of its write", known & harness.past(writes & reads & written))
    return harness


class _DamagedWord(wiring.Component):
    """A word is encoded, the bits in ``flips`` are inverted, and the rest is decoded."""

    def __init__(self, width: int) -> None:
        super().__init__({
            "word": In(width), "flips": In(width + check_bits(width)),
            "decoded": Out(width), "corrected": Out(1), "uncorrectable": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """Straight through."""
        m = Module()
        decoded = decode(m, encode(self.word) ^ self.flips, len(self.word))
        m.d.comb += [
            self.decoded.eq(decoded.word),
            self.corrected.eq(decoded.corrected),
            self.uncorrectable.eq(decoded.uncorrectable),
        ]
        return m


def _damaged(_: T3Config, *, width: int, every_word: bool) -> Harness:
    """Up to two places of a code word are chosen; without ``every_word`` the word is 0."""
    word = _DamagedWord(width)
    harness = Harness(word)
    size = len(word.flips)
    flips = []
    for i in range(2):
        place = harness.chosen(f"place_{i}", size.bit_length())  # beyond the last one: no damage
        flips.append((1 << place)[:size])
    harness.drive(word.flips, flips[0] ^ flips[1])
    if not every_word:
        harness.drive(word.word, 0)
    two = flips[0].any() & flips[1].any() & (flips[0] != flips[1])
    one = flips[0].any() ^ flips[1].any()
    harness.claim("up to one wrong bit is corrected", two | (word.decoded == word.word))
    harness.claim("one wrong bit is reported", word.corrected == one)
    harness.claim("two wrong bits are found", word.uncorrectable == two)
    harness.cover("the last check bit is wrong", word.corrected & flips[0][-1] & one)
    return harness


def _undamaged(_: T3Config, *, width: int) -> Harness:
    """Nothing is flipped."""
    word = _DamagedWord(width)
    harness = Harness(word)
    harness.drive(word.flips, 0)
    harness.claim("the word comes back", word.decoded == word.word)
    harness.claim("nothing is called wrong", ~(word.corrected | word.uncorrectable))
    harness.cover("a word with its upper half", word.decoded[width // 2 :].all())
    return harness


class _Register(wiring.Component):
    """A protected register that is written now and then."""

    def __init__(self, *, protect: bool) -> None:
        super().__init__({"write": In(1), "data": In(4), "value": Out(4), "corrected": Out(1), "uncorrectable": Out(1)})
        self._protect = protect

    def elaborate(self, platform: Any) -> Module:
        """The register; beside it nothing."""
        m = Module()
        register = protected_register(m, 4, name="register", protect=self._protect, init=_REGISTER_INIT)
        with m.If(self.write):
            m.d.comb += register.following.eq(self.data)
        m.d.comb += [
            self.value.eq(register.value),
            self.corrected.eq(register.corrected),
            self.uncorrectable.eq(register.uncorrectable),
        ]
        return m


_REGISTER_INIT = 9


def _register(config: T3Config) -> Harness:
    """The model is the number that was written last."""
    register = _Register(protect=config.protect)
    harness = Harness(register)
    model = Signal(4, init=_REGISTER_INIT)
    with harness.m.If(register.write):
        harness.m.d.sync += model.eq(register.data)
    harness.claim("it holds what was written last", register.value == model)
    harness.claim("nothing is called wrong", ~(register.corrected | register.uncorrectable))
    harness.cover("it is written, and keeps it", (model == 5) & ~register.write & harness.past(~register.write))
    return harness


class _Upset(wiring.Component):
    """A register with parity, of which ``upset`` inverts bit ``place`` in a cycle without a write."""

    def __init__(self) -> None:
        super().__init__({
            "write": In(1), "data": In(4), "upset": In(1), "place": In(2),
            "value": Out(4, init=_REGISTER_INIT), "sound": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """The upset is a write that parity does not hear of."""
        m = Module()
        m.d.comb += self.sound.eq(write_with_parity(m, self.value, write=self.write, value=self.data, protect=True))
        with m.If(self.upset & ~self.write):
            m.d.sync += self.value.eq(self.value ^ (1 << self.place))
        return m


def _parity(_: T3Config) -> Harness:
    """The model counts the upsets since the last write, modulo 2."""
    register = _Upset()
    harness = Harness(register)
    odd = Signal()
    harness.m.d.sync += odd.eq(~register.write & (odd ^ register.upset))
    harness.claim("the parity check passes but after an odd number of upsets", register.sound == ~odd)
    harness.cover("two upsets", register.sound & harness.past(odd) & harness.past(register.upset))
    return harness


def _turns(_: T3Config) -> Harness:
    """One requester is chosen; the model counts the grants of others that it has waited for."""
    requesters = 5
    turns = RoundRobin(requesters=requesters)
    harness = Harness(turns)
    who = harness.chosen("requester_of_interest", range(requesters))
    harness.drive(turns.requests, requests := harness.free("requesting", requesters))
    wants, gets = Signal(), Signal()
    waited = Signal(4)
    harness.m.d.comb += [wants.eq(requests.bit_select(who, 1)), gets.eq(turns.grant.bit_select(who, 1))]
    with harness.m.If(~wants | (gets & turns.take)):
        harness.m.d.sync += waited.eq(0)
    with harness.m.Elif(turns.take):
        harness.m.d.sync += waited.eq(waited + 1)
    harness.claim(
        "one of the requests is granted, if there is one",
        (
            ((turns.grant & (turns.grant - 1))[:requesters] == 0)
            & ((turns.grant & ~requests) == 0)
            & (turns.grant.any() == requests.any())
        ),
    )
    harness.claim("no request waits for more grants than there are other requesters", waited < requesters)
    harness.cover("one has waited for all others", waited == requesters - 1)
    return harness


_PLAIN, _PROTECTED = preset("small"), preset("small", protect=True)
_BOTH = {"plain": _PLAIN, "protected": _PROTECTED}

PROOFS = (
    *(
        Proof(
            name=f"blocks.{name}",
            invariants=(3, 8),
            says=f"{what} gives every item once, in order and unchanged, and is ready exactly with room for one.",
            harness=partial(_queue, kind=kind),
            sizes={"8 bits": _PLAIN},
            depth=8,
        )
        for name, kind, what in (
            ("queue", InputQueue, "An input queue"),
            ("alternating-queue", PingPongQueue, "An input queue of two registers in turn"),
        )
    ),
    *(
        Proof(
            name=f"blocks.memory-{name}",
            invariants=(3,),
            says=f"{says}; without damage, protection is not seen.",
            harness=partial(_ram, latency=latency, through=through),
            sizes=_BOTH,
            depth=8,
            quick=through,
        )
        for name, latency, through, says in (
            ("comb", 0, False, "A read gives the word of its row in the same cycle"),
            ("sync", 1, False, "A read gives the word of its row in the next cycle, and keeps it"),
            ("through", 1, True, "A read gives the word of its row in the next cycle, also if it is written meanwhile"),
        )
    ),
    *(
        Proof(
            name=f"blocks.secded-{width}",
            invariants=(3,),
            says="Of every code word one wrong bit is corrected and reported, and two are detected, at every place.",
            harness=partial(_damaged, width=width, every_word=width == min(_WIDTHS)),
            sizes={f"{width} bits": _PROTECTED},
            method="bounded",
            depth=2,
            quick=width == min(_WIDTHS),
        )
        for width in _WIDTHS
    ),
    Proof(
        name="blocks.secded-undamaged",
        invariants=(3,),
        says="Every word comes back from its code word. Check bits are sums modulo 2 of the word's bits: what damage "
        "does to one word (blocks.secded-26 and up) it does to every one.",
        harness=partial(_undamaged, width=max(_WIDTHS)),
        sizes={f"{max(_WIDTHS)} bits": _PROTECTED},
        method="bounded",
        depth=2,
    ),
    Proof(
        name="blocks.protected-register",
        invariants=(3,),
        says="A long-lived register holds what was written last, and after reset its initial value.",
        harness=_register,
        sizes=_BOTH,
        depth=6,
    ),
    Proof(
        name="blocks.parity",
        invariants=(3,),
        says="A register with parity is called damaged from the first wrong bit on, until a second one or a write.",
        harness=_parity,
        sizes={"4 bits": _PROTECTED},
        depth=6,
    ),
    Proof(
        name="blocks.turns",
        invariants=(2,),
        says="Round-robin grants one of the requests, and no request waits for more grants than there are other "
        "requesters.",
        harness=_turns,
        sizes={"5 requesters": _PLAIN},
        depth=8,
    ),
)
