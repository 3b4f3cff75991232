"""A Verilog top around a part that shows its ports as two vectors of 64-bit words.

A testbench then sets and reads two signals per cycle instead of dozens; that is what a simulator's Python interface
is slow at. Ports in ``apart`` stay ports of the top, for a bus driver that wants them by name.
"""

from collections.abc import Callable
from dataclasses import dataclass

from t3hdl.interface.words import WordMap

INPUTS, OUTPUTS, SEEN = "in_words", "out_words", "seen_words"
"""The vectors of the top, in the order of the word map; SEEN shows the inputs that are apart, and 0 for others."""


@dataclass(frozen=True)
class Top:
    """Source of a top module ``name``."""

    name: str
    text: str


def wrap(part: str, words: WordMap, apart: Callable[[str], bool] = lambda port: False) -> Top:
    """The top ``tb_<part>`` around module ``t3_<part>``; clock ``clk``, synchronous reset ``rst``."""
    width = {"input": 64 * max(1, words.input_words), "output": 64 * max(1, words.output_words)}
    ports = [
        f"input [{width['input'] - 1}:0] {INPUTS}",
        f"output [{width['output'] - 1}:0] {OUTPUTS}",
        f"output [{width['input'] - 1}:0] {SEEN}",
    ]
    wires: list[str] = []
    links = [".clk(clk)", ".rst(rst)"]
    seen: list[str] = []
    outputs: list[str] = []
    for port, (first, bits) in words.inputs.items():
        name, separate = _verilog_name(port), apart(port)
        if separate:
            ports.append(f"input [{bits - 1}:0] {name}")
        source = name if separate else f"{INPUTS}[{64 * first + bits - 1}:{64 * first}]"
        links.append(f".{name}({source})")
        seen.insert(0, _padded(name if separate else f"{bits}'d0", bits))
    for port, (_, bits) in words.outputs.items():
        name = _verilog_name(port)
        links.append(f".{name}({name})")
        if apart(port):
            ports.append(f"output [{bits - 1}:0] {name}")
        else:
            wires.append(f"wire [{bits - 1}:0] {name};")
        outputs.insert(0, _padded(name, bits))
    text = _TEMPLATE.format(
        part=part,
        ports=",\n  ".join(ports),
        wires="\n  ".join(wires),
        links=",\n    ".join(links),
        assigns=f"assign {OUTPUTS} = {{{', '.join(outputs)}}};\n  assign {SEEN} = {{{', '.join(seen)}}};",
    )
    return Top(f"tb_{part}", text)


def _padded(name: str, bits: int) -> str:
    """The signal filled up to whole words."""
    return f"{-bits % 64}'d0, {name}" if bits % 64 else name


def _verilog_name(port: str) -> str:
    """The port's name in Verilog, escaped, since some (``config``) are keywords."""
    return f"\\{port.replace('.', '__')} "


_TEMPLATE = """\
module tb_{part} (
  input clk,
  input rst,
  {ports}
);
  {wires}
  {assigns}
  t3_{part} part (
    {links}
  );
endmodule
"""
