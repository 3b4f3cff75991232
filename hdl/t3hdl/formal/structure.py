"""What may depend on what in a part, by the wires alone: claims about the structure, whatever values there are."""

from dataclasses import dataclass

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
    claims : rules by name.
    covers : (of, on) by name: of the first ports, one must depend on one of the others, over any number of cycles.
    assumptions : none.
    """

    def __init__(self, dut: Component) -> None:
        self.dut = dut
        self.claims: dict[str, Rule] = {}
        self.covers: dict[str, tuple[str, str]] = {}
        self.assumptions: dict[str, str] = {}

    def claim(self, name: str, *, of: str, on: str = "$^", across: bool = False, ends: str = "$^") -> None:
        """Claims a :class:`Rule`; without ``on``, they depend on no port."""
        self.claims[name] = Rule(of=of, on=on, across=across, ends=ends)

    def cover(self, name: str, *, of: str, on: str) -> None:
        """What must depend on what: without it, rules may hold because nothing is connected."""
        self.covers[name] = (of, on)
