"""Parts around tracker and trigger whose stored bits a fault can invert."""

from collections.abc import Mapping

AROUND: Mapping[str, tuple[str, ...]] = {
    "slice": ("slice",), "network": ("leaf", "root"), "registers": ("registers",), "nmc": ("nmc",),
}  # fmt: skip
"""Kinds of faults, and the parts whose bits they invert."""
NAMES = {"slice": "slices", "network": "token network", "registers": "registers", "nmc": "NMC units"}
STRUCK = tuple(part for parts in AROUND.values() for part in parts)
"""All of these parts."""
