"""The netlist that Yosys makes of a design for an FPGA, with the vendor's cell models that Yosys ships, as Verilog."""

from amaranth.back import rtlil
from t3formal.prover.named_netlist import through
from t3formal.prover.netlist import package_folder

_SYNTHESIS = {
    "iCE40HX": ("synth_ice40 -top {top}", "-D ICE40_HX", "ice40/cells_sim.v"),
    "iCE40UP": ("synth_ice40 -top {top}", "-D ICE40_U", "ice40/cells_sim.v"),
    # Yosys ships no models of the ECP5's block RAM and multipliers: LUTs and distributed RAM do their work there. Its
    # models would include those of flip-flops and pins a second time without this name.
    "ECP5": (
        "setattr -unset ram_style */m:*\nsynth_ecp5 -nobram -nodsp -top {top}",
        "-D NO_INCLUDES",
        "ecp5/cells_sim.v",
    ),
}


def netlist(component, name: str, device: str) -> str:
    """Synthesised, and each cell then what its model says: no process is left of the design itself.

    The component alone: without pins, and with a reset that is a port.
    """
    synthesis, defines, models = _SYNTHESIS[device]
    share = package_folder() / "share"
    script = f"""
{synthesis.format(top=name)}
select -assert-none t:$* t:$scopeinfo %d
delete =A:blackbox =A:whitebox
read_verilog {defines} -I{share / models.split("/")[0]} {share / models}
hierarchy -check -top {name}
proc
flatten
memory_collect
opt_clean -purge
write_verilog -noattr out
"""
    return through(script, rtlil.convert(component, name=name, emit_src=False))
