"""How deep the logic between registers is: gates in a row, before a technology is chosen."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

BUDGET = 40
"""Two-input gates in a row, of every part unless :data:`BUDGETS` says otherwise: at 1 GHz 25 ps for each, with its
share of a register, wires and the clock's uncertainty. An assumption, not a property of any one process."""
BUDGETS: Mapping[str, int] = MappingProxyType({})
"""Parts with a budget of their own."""


def budget(part: str) -> int:
    """Gates that may be in a row in a part."""
    return BUDGETS.get(part, BUDGET)


def longest_path(module: dict[str, Any]) -> int:
    """Most gates in a row from a register, memory or input to a register, memory or output.

    ``module`` : a flat module of Yosys' JSON after mapping: gates ``$_NAME_``, flip-flops, and ``$mem_v2`` cells. A
    read without a clock counts as the multiplexers of its rows, one gate per bit of the address. Raises ValueError if
    gates form a loop.
    """
    drivers: dict[Any, tuple[list[Any], int]] = {}
    for cell in module["cells"].values():
        for outputs, inputs, gates in _combinational(cell):
            for bit in outputs:
                drivers[bit] = (inputs, gates)
    depth: dict[Any, int] = {}
    pending = list(drivers)
    entered: set[Any] = set()
    while pending:
        bit = pending[-1]
        if bit in depth:
            pending.pop()
            continue
        inputs, gates = drivers[bit]
        unknown = [i for i in inputs if i in drivers and i not in depth]
        if not unknown:
            depth[bit] = gates + max((depth.get(i, 0) for i in inputs), default=0)
        elif bit in entered:
            raise ValueError(f"gates form a loop at net {bit}")
        else:
            entered.add(bit)
            pending += unknown
    return max(depth.values(), default=0)


def _combinational(cell: dict[str, Any]) -> list[tuple[list[Any], list[Any], int]]:
    """(outputs, inputs, gates in a row) of what a cell does without a clock."""
    kind, nets = cell["type"], cell["connections"]
    if kind == "$mem_v2":
        address_bits = int(cell["parameters"]["ABITS"], 2)
        width = int(cell["parameters"]["WIDTH"], 2)
        clocked = cell["parameters"]["RD_CLK_ENABLE"][::-1]
        return [
            (
                nets["RD_DATA"][port * width : (port + 1) * width],
                nets["RD_ADDR"][port * address_bits : (port + 1) * address_bits],
                address_bits,
            )
            for port, clock in enumerate(clocked)
            if clock == "0"
        ]
    if not kind.startswith("$_") or "DFF" in kind or "DLATCH" in kind:
        return []
    inputs = [bit for name, bits in nets.items() if name != "Y" for bit in bits]
    return [(nets["Y"], inputs, 1)]
