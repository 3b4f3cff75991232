"""A Verilog top around a part that shows its ports as two vectors of 64-bit words.

A testbench then sets and reads two signals per cycle instead of dozens; that is what a simulator's Python interface
is slow at. Ports in ``apart`` stay ports of the top, for a bus driver that wants them by name.
"""

from collections.abc import Callable
from dataclasses import dataclass

from t3hdl.signatures import WordMap

INPUTS, OUTPUTS = "in_words", "out_words"
"""The vectors of the top, in the order of the word map."""


@dataclass(frozen=True)
class Top:
    """Source of a top module ``name``."""

    name: str
    text: str


def wrap(part: str, words: WordMap, apart: Callable[[str], bool] = lambda port: False) -> Top:
    """The top ``tb_<part>`` around module ``t3_<part>``; clock ``clk``, synchronous reset ``rst``."""
    ports = [f"input [{64 * max(1, words.input_words) - 1}:0] {INPUTS}"]
    ports.append(f"output [{64 * max(1, words.output_words) - 1}:0] {OUTPUTS}")
    wires: list[str] = []
    links = [".clk(clk)", ".rst(rst)"]
    pieces: list[str] = []
    for port, (first, bits) in words.inputs.items():
        name = _verilog_name(port)
        if apart(port):
            ports.append(f"input [{bits - 1}:0] {name}")
        source = name if apart(port) else f"{INPUTS}[{64 * first + bits - 1}:{64 * first}]"
        links.append(f".{name}({source})")
    for port, (_, bits) in words.outputs.items():
        name = _verilog_name(port)
        links.append(f".{name}({name})")
        if apart(port):
            ports.append(f"output [{bits - 1}:0] {name}")
        else:
            wires.append(f"wire [{bits - 1}:0] {name};")
        padding = -bits % 64
        pieces.insert(0, f"{padding}'d0, {name}" if padding else name)
    return Top(f"tb_{part}", _TEMPLATE.format(
        part=part,
        ports=",\n  ".join(ports),
        wires="\n  ".join(wires),
        links=",\n    ".join(links),
        outputs=f"assign {OUTPUTS} = {{{', '.join(pieces)}}};",
    ))  # fmt: skip


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
  {outputs}
  t3_{part} part (
    {links}
  );
endmodule
"""
