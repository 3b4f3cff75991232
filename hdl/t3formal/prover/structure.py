"""Structural checks of a netlist, independent of values: combinational dependences, and registers that a reset sets."""

from dataclasses import dataclass

from amaranth.hdl import Fragment
from amaranth.lib.wiring import Component


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The ports whose names match ``of`` depend, of all ports, on those only that match ``on``.

    ``across`` : whether over any number of cycles, or within one. Registers whose paths match ``ends`` are taken as
    ports then, and not followed.
    """

    of: str
    on: str
    across: bool
    ends: str


class Structure:
    """Rules of one part's structure: what a proof of method *structure* has instead of a harness.

    Parameters
    ----------
    dut : the part; its netlist is searched, after constants have been propagated.

    Attributes
    ----------
    fragment : what the part is made of.
    claims : rules by name.
    resets : by name, of which registers it is not claimed that a reset gives them their initial values.
    covers : (of, on) by name: of the first ports, one must depend on one of the others, over any number of cycles.
    assumptions : none.
    """

    def __init__(self, dut: Component) -> None:
        self.dut, self.fragment = dut, Fragment.get(dut, None)
        self.claims: dict[str, Rule] = {}
        self.resets: dict[str, str] = {}
        self.covers: dict[str, tuple[str, str]] = {}
        self.assumptions: dict[str, str] = {}

    def claim(self, name: str, *, of: str, on: str = "$^", across: bool = False, ends: str = "$^") -> None:
        """Claims a :class:`Rule`; without ``on``, they depend on no port."""
        self.claims[name] = Rule(of=of, on=on, across=across, ends=ends)

    def claim_reset(self, name: str, *, but: str = "$^") -> None:
        """Claims that every register has its initial value after a cycle with reset, whatever it was before and
        whatever the inputs are; not of those whose paths match ``but``, nor of what has no initial value: memories, the
        words that they read.
        """
        self.resets[name] = but

    def cover(self, name: str, *, of: str, on: str) -> None:
        """What must depend on what: without it, rules may hold because nothing is connected."""
        self.covers[name] = (of, on)
