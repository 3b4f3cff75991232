"""A template of timing constraints (SDC) for the modules of a configuration."""

import re

from amaranth.lib.wiring import Component

from .module_ports import CLOCK, RESET, Port, module_ports

_HEADER = """\
# Timing constraints of the T3 hardware: a template. The values are for the paper's 1 GHz clock; set them, and the
# module to be constrained, before this file is read:  set t3_top {top}; source {prefix}t3.sdc
if {{![info exists t3_top]}} {{ set t3_top {top} }}
if {{![info exists t3_period]}} {{ set t3_period 1.000 }}            ;# ns, the unit's clock
if {{![info exists t3_host_period]}} {{ set t3_host_period 4.000 }}  ;# ns, the host's clock at t3_crossing
if {{![info exists t3_margin]}} {{ set t3_margin 0.050 }}            ;# ns, jitter and skew
if {{![info exists t3_outside]}} {{ set t3_outside 0.50 }}           ;# share of a period that lies outside

create_clock -name t3_clk -period $t3_period [get_ports {clock}]
set_clock_uncertainty $t3_margin [get_clocks t3_clk]

# The ports of each module, all of the unit's clock, the synchronous reset included.
"""

_PORT_DELAYS = """
# Every output of the unit and its parts follows from registers alone (docs/hardware/rules.md, rule 1):
# no path leads from an input to an output within a cycle. There is no false path and no multicycle path.
set_input_delay [expr {$t3_period * $t3_outside}] -clock t3_clk [get_ports $t3_inputs]
set_output_delay [expr {$t3_period * $t3_outside}] -clock t3_clk [get_ports $t3_outputs]
"""

_CROSSING = """
# The AXI4-Lite crossing, between two clocks without a fixed relation. Its Gray-coded pointers pass two flip-flops, and
# all bits of a pointer must arrive within one cycle of the faster clock: the paths are bounded, not cut. Data are
# stable before the pointer says that they are there. Around an instance of it, bound the same paths between the clocks.
if {{$t3_top eq "{crossing}"}} {{
    create_clock -name t3_host_clk -period $t3_host_period [get_ports host_clk]
    set_clock_uncertainty $t3_margin [get_clocks t3_host_clk]
    set t3_host_inputs {{{inputs}}}
    set t3_host_outputs {{{outputs}}}
    set_input_delay [expr {{$t3_host_period * $t3_outside}}] -clock t3_host_clk [get_ports $t3_host_inputs]
    set_output_delay [expr {{$t3_host_period * $t3_outside}}] -clock t3_host_clk [get_ports $t3_host_outputs]
    set t3_faster [expr {{min($t3_period, $t3_host_period)}}]
    set_max_delay $t3_faster -from [get_clocks t3_clk] -to [get_clocks t3_host_clk]
    set_max_delay $t3_faster -from [get_clocks t3_host_clk] -to [get_clocks t3_clk]
    set_false_path -hold -from [get_clocks t3_clk] -to [get_clocks t3_host_clk]
    set_false_path -hold -from [get_clocks t3_host_clk] -to [get_clocks t3_clk]
}}
"""


def constraints(modules: dict[str, Component], prefix: str = "") -> str:
    """The SDC text for these modules, by name; the names begin with ``prefix``."""
    unit, crossing = f"{prefix}t3_unit", f"{prefix}t3_crossing"
    top = unit if unit in modules else next(reversed(modules))
    text = _HEADER.format(top=top, prefix=prefix, clock=CLOCK) + "switch $t3_top {\n"
    for name, component in modules.items():
        ports = [port for port in module_ports(component) if not port.name.startswith("host_")]
        text += f"    {name} {{\n        set t3_inputs {{{_names(ports, True)}}}\n"
        text += f"        set t3_outputs {{{_names(ports, False)}}}\n    }}\n"
    text += '    default { error "t3_top must be ' + ", ".join(modules) + ', not $t3_top" }\n}\n' + _PORT_DELAYS
    if crossing in modules:
        ports = [port for port in module_ports(modules[crossing]) if port.name.startswith("host_")]
        bus = [port for port in ports if port.name != "host_clk"]
        names = {"inputs": _names(bus, True, reset=False), "outputs": _names(bus, False)}
        text += _CROSSING.format(crossing=crossing, **names)
    return text


def _names(ports: list[Port], is_input: bool, reset: bool = True) -> str:
    """The ports' names, with a star for the number of each in an array."""
    names = [RESET] if is_input and reset else []
    names += [re.sub(r"__\d+(?=__|$)", "__*", port.name) for port in ports if port.is_input == is_input]
    return " ".join(dict.fromkeys(names))
