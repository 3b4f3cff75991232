"""Which parts of the unit a waveform shows: ``tracker,trigger,slice.3``."""

from dataclasses import dataclass

from t3hdl.config import T3Config

from t3sim.engine.t3unit.words import instance_counts

WITHOUT_CLOCKS = ("registers", "nmc")
"""Parts that a run does not step clock by clock: the bus is used before and after it, and one NMC unit does the work
of all."""


@dataclass(frozen=True)
class PartInstance:
    """One instance of a part in a unit; ``alone``: it has no others of its kind."""

    part: str
    index: int
    alone: bool

    @property
    def name(self) -> str:
        """``tracker``, ``slice_3``."""
        return self.part if self.alone else f"{self.part}_{self.index}"


def part_instances(text: str, config: T3Config) -> tuple[PartInstance, ...]:
    """The instances that ``text`` names, by commas: a part for all of its kind, ``part.number`` for one.

    Raises ValueError for what this configuration's unit does not have, and for one that is named twice.
    """
    counts = {name: count for name, count in instance_counts(config).items() if name not in WITHOUT_CLOCKS}
    found: list[PartInstance] = []
    for word in text.split(","):
        part, dot, number = word.strip().partition(".")
        count = counts.get(part, 0)
        if not count or (dot and not (number.isdecimal() and number.isascii() and int(number) < count)):
            known = ", ".join(name if n == 1 else f"{name}.0 to {name}.{n - 1}" for name, n in counts.items())
            raise ValueError(
                f"--parts must name parts of the unit ({known}) by commas, without a number for all of a kind, "
                f"not {word.strip()!r}"
            )
        for index in [int(number)] if dot else range(count):
            found.append(PartInstance(part, index, count == 1))
    if len(set(found)) != len(found):
        raise ValueError(f"--parts must name each part once, not {text!r}")
    return tuple(found)
