"""Verilog for integrators: plain Verilog-2005 without ``always @*``, which some simulators leave at X at time zero."""

from collections.abc import Callable
from dataclasses import fields

from amaranth._toolchain.yosys import find_yosys  # Amaranth's own way to Yosys; its public one cannot add passes
from amaranth.back import rtlil
from amaranth.lib.wiring import Component

from .config import T3Config
from .nmc import NmcUnit
from .unit import T3Unit

TOPS: dict[str, Callable[[T3Config], Component]] = {
    "t3_unit": lambda config: T3Unit(config=config),
    "nmc_unit": lambda config: NmcUnit(config=config),
}
"""What a GPU gets: one T3 unit, and one NMC unit at each bank group."""


def emit_verilog(config: T3Config, top: str) -> str:
    """The Verilog of ``top`` (a key of :data:`TOPS`) as one file: clock ``clk``, synchronous reset ``rst``.

    The same configuration gives the same text. Raises ValueError for an unknown top.
    """
    if top not in TOPS:
        raise ValueError(f"top must be one of {', '.join(TOPS)}, not {top!r}")
    text = rtlil.convert(TOPS[top](config), name=top, emit_src=False)
    script = (
        f"read_rtlil <<rtlil\n{text}\nrtlil\n"
        "proc\nopt_clean\nmemory_collect\nattrmap -remove generator\nwrite_verilog -norename -noattr\n"
    )
    verilog = find_yosys(lambda version: version >= (0, 40)).run(["-q", "-"], script, ignore_warnings=True)
    values = ", ".join(f"{field.name}={getattr(config, field.name)}" for field in fields(config))
    return f"// OpenT3, {top}: {values}\n{verilog}"
