"""One line of text per round."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .failures import FailureCode

Numbers = data.StructLayout({
    "detail": 32, "checksum": 32, "cycles": 24, "completed": 16, "tiles": 16, "updates": 16, "seed": 32, "round": 16,
})  # fmt: skip
"""What a line tells, each in hexadecimal digits; the last field is printed first. ``completed``: triggers or chunks."""

_DIGIT, _VERDICT, _END = 0x80, 0x81, 0x82
"""Codes of the text: the next digit; go on with the verdict; the line is over."""
_VERDICT_SIZE = 32
_VERDICTS = 128
"""Where the verdicts' texts begin, ``_VERDICT_SIZE`` bytes each."""
_SIZE = 512


def text(completed: str) -> list[int]:
    """The texts, as bytes and codes."""
    codes: list[int] = []
    for name in reversed([name for name in Numbers.members if name != "detail"]):
        word = completed if name == "completed" else name
        codes += [*f"{word} ".encode(), *[_DIGIT] * (Numbers[name].width // 4), ord(" ")]
    codes.append(_VERDICT)
    codes += [0] * (_VERDICTS - len(codes))
    for what in FailureCode:
        words, digits = (
            ("pass", 0) if what == FailureCode.PASS else (f"fail {what.name.lower()} ", Numbers["detail"].width // 4)
        )
        verdict = [*words.encode(), *[_DIGIT] * digits, *b"\r\n", _END]
        codes += verdict + [0] * (_VERDICT_SIZE - len(verdict))
    return codes


class Report(wiring.Component):
    """Prints ``round .. seed .. updates .. tiles .. triggers .. cycles .. checksum .. pass``, or ``fail <what> ..``.

    Parameters
    ----------
    completed : the word for that number; ``triggers`` or ``chunks``.

    Members
    -------
    valid, numbers, what : In : a line to print, while ``ready``.
    ready : Out(1) : the line before is out.
    o : Out(stream(8)) : its characters.
    """

    def __init__(self, *, completed: str) -> None:
        super().__init__({
            "valid": In(1), "numbers": In(Numbers), "what": In(4), "ready": Out(1), "o": Out(stream.Signature(8)),
        })  # fmt: skip
        self._codes = text(completed)

    def elaborate(self, platform: Any) -> Module:
        """The text's place in the ROM, and the digits that are left, the next one on top."""
        m = Module()
        m.submodules.rom = rom = Memory(shape=8, depth=_SIZE, init=self._codes, attrs={"ram_style": "block"})
        port = rom.read_port()
        place, code, digits, what = Signal(range(_SIZE)), Signal(8), Signal(Numbers), Signal(4)
        digit, used = digits.as_value()[-4:], Signal()
        m.d.comb += port.addr.eq(place)
        m.d.sync += code.eq(port.data)  # block RAM is slow
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.ready.eq(1)
                m.d.sync += place.eq(0)
                with m.If(self.valid):
                    m.d.sync += [digits.eq(self.numbers), what.eq(self.what)]
                    m.next = "FETCH"
            with m.State("FETCH"):
                m.d.sync += used.eq(0)
                with m.If(used):  # not in DECODE: the comparison of the code would be in front of all digits
                    m.d.sync += digits.eq(digits.as_value() << 4)
                m.next = "READ"
            with m.State("READ"):
                m.next = "DECODE"
            with m.State("DECODE"):
                m.d.sync += [
                    place.eq(place + 1),
                    self.o.payload.eq(Mux(code[7], digit + Mux(digit < 10, ord("0"), ord("A") - 10), code)),
                    used.eq(code == _DIGIT),
                ]
                with m.If(code == _VERDICT):
                    m.d.sync += place.eq(Cat(*[0] * 5, what, 0) + _VERDICTS)
                    m.next = "FETCH"
                with m.Elif(code == _END):
                    m.next = "IDLE"
                with m.Else():
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "FETCH"
        return m
