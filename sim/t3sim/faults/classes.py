"""The classes of faults, and how many of each a campaign has; light enough for the command line to import."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CLASSES: Mapping[str, Mapping[str, int]] = {
    "bits": {"bits": 750},
    "link": {"lost": 50, "repeated": 50, "reordered": 50},
    "dma": {"dma": 20},
    "straggler": {"straggler": 20},
    "program": {"program": 30},
    "foreign": {"foreign": 30},
    "around": {"slice": 20, "network": 20, "registers": 20, "nmc": 20},
}
"""The kinds of faults in each class, and how many there are of a kind in 1080 faults of all classes."""
KINDS = tuple(kind for kinds in CLASSES.values() for kind in kinds)
"""All kinds of faults."""
PROTECTED_AGAINST = tuple(kind for name in ("bits", "link", "around") for kind in CLASSES[name])
"""Kinds of which the hardware with its protection, and the link with its retries, must let none do silent harm."""
VARIANTS = {True: "protected", False: "plain"}
"""The systems that faults come to: with protection and link retries, and without either."""
PLAIN_PART = 10
"""The system without protection gets one fault for so many of the other: its harm is only counted."""


@dataclass(frozen=True, order=True)
class FaultCase:
    """One fault, in the system with protection or without."""

    protected: bool
    kind: str
    number: int


def jobs(faults: int, classes: Sequence[str], variants: Sequence[bool]) -> list[FaultCase]:
    """About ``faults`` faults of the classes for the system with protection, a tenth for the one without; at least
    one of each kind. ``variants``: which of both, True is with."""
    shares = {kind: share for name in classes for kind, share in CLASSES[name].items()}
    total = sum(shares.values())
    return [
        FaultCase(protected, kind, number)
        for protected in variants
        for kind, share in shares.items()
        for number in range(max(1, round(faults * share / total / (1 if protected else PLAIN_PART))))
    ]
