"""The netlist that Yosys makes of a design for an FPGA, with the vendor's cell models that Yosys ships, as Verilog."""

import re

from amaranth.back import rtlil
from t3hdl.formal.named_netlist import through
from t3hdl.formal.netlist import package_folder

# Yosys ships no model of the ECP5's block RAM, so memories become distributed RAM and LUTs there.
_SYNTHESIS = {
    "ice40": ("synth_ice40 -top {top}", "-D ICE40_HX", "ice40/cells_sim.v"),
    "ecp5": ("setattr -unset ram_style */m:*\nsynth_ecp5 -nobram -top {top}", "", "ecp5/cells_sim.v"),
}


def netlist(component, name: str, family: str) -> str:
    """Synthesised, and each cell then what its model says: no process is left of the design itself."""
    synthesis, defines, models = _SYNTHESIS[family]
    share = package_folder() / "share"
    script = f"""
{synthesis.format(top=name)}
tee -q -o cells stat
delete =A:blackbox =A:whitebox
read_verilog {defines} -I{share / models.split("/")[0]} {share / models}
hierarchy -check -top {name}
proc
flatten
memory_collect
opt_clean -purge
write_verilog -noattr out
"""
    text = through(script, rtlil.convert(component, name=name, emit_src=False))
    assert re.search(r"SB_LUT4|LUT4", text)
    return text
