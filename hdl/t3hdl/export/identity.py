"""Which hardware a record is of: its version, and a digest of its netlist."""

import hashlib
from functools import cache

from amaranth.back import rtlil

from ..config import preset
from ..interface.parts import TABLE
from ..interface.register_map import HARDWARE_VERSION

TOPS = ("unit", "nmc", "crossing")
"""The parts that contain all others."""
_FEW = {"slices": 2, "node_inputs": 1, "nmc_lanes": 2}
"""More of them have the same netlist."""


def hardware_version() -> str:
    """The version of the hardware, as VERSION has it."""
    return ".".join(str(HARDWARE_VERSION[part]) for part in ("major", "minor", "patch"))


@cache
def netlist_digest() -> str:
    """16 hexadecimal digits that change with any gate or register of the preset ``small`` of two slices and lanes,
    plain or protected.

    It does not change with comments, names of files, and what is written beside the netlist. Takes seconds.
    """
    state = hashlib.sha256()
    for protect in (False, True):
        config = preset("small", **_FEW, protect=protect)
        for name in TOPS:
            state.update(rtlil.convert(TABLE[name].make(config), name=name, emit_src=False).encode())
    return state.hexdigest()[:16]


def hardware_identity() -> dict[str, str]:
    """What a record holds of the hardware that it was measured on."""
    return {"version": hardware_version(), "netlist": netlist_digest()}
