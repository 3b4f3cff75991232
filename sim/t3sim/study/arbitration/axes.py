"""What ``t3 map`` changes on a machine: the axes and combinations of ``axes.toml``, and the machines that they make."""

import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from t3sim.inputs.machine.files import load_machine
from t3sim.study.sweep import BASE, Variant

NONE = "none"
"""Instead of axes: the machine as it is, alone."""
PLUS = " + "
"""Between the changes in the name of a machine."""
LAUNCH = "gpu.kernel_launch_ns"
LATER_NS = (0, 7, 13, 29, 61, 101, 151, 199)
"""By how much the GEMM is launched later in repeated runs [ns]: a ten-thousandth of a run. It means nothing, and shows
how much a run changes for nothing."""


class Combination(BaseModel):
    """Changes of several axes at once, as AXIS-VALUE; and in one sentence why."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    changes: tuple[str, ...]
    why: str


class Axes(BaseModel):
    """``axes``: axis -> value -> what it changes; ``alone``: axes that are mapped if they are named only, and whose
    changes are in no pair."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    axes: dict[str, dict[str, Variant]]
    alone: tuple[str, ...] = ()
    combinations: dict[str, Combination]

    @model_validator(mode="after")
    def _combinations_name_changes(self) -> "Axes":
        for name, combination in self.combinations.items():
            if unknown := [change for change in combination.changes if change not in self.changes]:
                raise ValueError(f"combination {name} names {', '.join(unknown)}, which no axis has")
        return self

    @property
    def changes(self) -> dict[str, Variant]:
        """Every value of every axis, as AXIS-VALUE."""
        return {f"{axis}-{name}": value for axis, values in self.axes.items() for name, value in values.items()}

    @property
    def usual(self) -> list[str]:
        """The axes that are mapped unless some are named."""
        return [name for name in self.axes if name not in self.alone]

    def of(self, names: Sequence[str]) -> "Axes":
        """These axes alone, without names all that ``alone`` does not name, with the combinations that need no other;
        none for :data:`NONE`.

        Raises ValueError if one is unknown.
        """
        if tuple(names) == (NONE,):
            return Axes(axes={}, combinations={})
        if unknown := [name for name in names if name not in self.axes]:
            raise ValueError(
                f"--axes must be {NONE} alone, or name some of {', '.join(self.axes)}, not {', '.join(unknown)}"
            )
        kept = Axes(axes={name: self.axes[name] for name in names or self.usual}, alone=self.alone, combinations={})
        fit = {k: item for k, item in self.combinations.items() if set(item.changes) <= set(kept.changes)}
        return kept.model_copy(update={"combinations": fit})


@lru_cache
def known_axes() -> Axes:
    """What ``axes.toml`` says."""
    text = (resources.files(__package__) / "axes.toml").read_text(encoding="utf-8")
    return Axes.model_validate(tomllib.loads(text))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The machines of a map: ``variants`` by their names, and ``changes`` of each, none of the base and one or more of
    the others. ``singles``: the changes that this machine can take, by axis. ``launches``: when the GEMM is launched
    [ns], in as many runs of everything."""

    variants: Mapping[str, Variant]
    changes: Mapping[str, tuple[str, ...]]
    singles: Mapping[str, tuple[str, ...]]
    launches: tuple[int, ...]

    def runs(self) -> dict[str, Variant]:
        """The machines, each for every launch (:meth:`run`)."""
        return {
            self.run(name, launch): item.model_copy(update={"settings": {LAUNCH: launch, **item.settings}})
            for name, item in self.variants.items()
            for launch in self.launches
        }

    @staticmethod
    def run(name: str, launch: int) -> str:
        """The name of a machine whose GEMM is launched at ``launch`` ns."""
        return f"{name}, launch at {launch} ns"


def plan_of(axes: Axes, machine: str, settings: Mapping[str, Any], *, quick: bool, launches: int = 1) -> Plan:
    """The base, every change that is one to this machine, every pair of changes of different axes, the combinations;
    each machine once, by the name that says why.

    A ``quick`` plan has no pairs. Raises ValueError for a machine or value that is not legal, and if there are axes but
    no change is left.
    """
    base = _values(machine, settings)

    def differs(value: Variant) -> bool:
        return _values(machine, {**settings, **value.settings}) != base

    singles = {
        axis: tuple(f"{axis}-{name}" for name, value in values.items() if differs(value))
        for axis, values in axes.axes.items()
    }
    if singles and not any(singles.values()):
        raise ValueError(f"--axes must leave something to change: {machine} is as {', '.join(axes.axes)} would make it")
    found: dict[str, tuple[tuple[str, ...], str]] = {BASE: ((), "The machine as it is.")}
    found |= {name: ((name,), axes.changes[name].why) for names in singles.values() for name in names}
    if not quick:
        paired = [names for axis, names in singles.items() if axis not in axes.alone]
        found |= {PLUS.join(both): (both, "") for both in _pairs(paired)}
    found |= {name: (item.changes, item.why) for name, item in axes.combinations.items()}
    variants = {
        name: Variant(settings={k: v for item in names for k, v in axes.changes[item].settings.items()}, why=why)
        for name, (names, why) in found.items()
    }
    unlike = _unlike({name: _values(machine, {**settings, **item.settings}) for name, item in variants.items()}, found)
    return Plan(
        variants={name: variants[name] for name in unlike},
        changes={name: found[name][0] for name in unlike},
        singles=singles,
        launches=tuple(load_machine(machine, settings).gpu.kernel_launch_ns + later for later in LATER_NS[:launches]),
    )


def _pairs(paired: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    for first, second in itertools.combinations(paired, 2):
        yield from itertools.product(first, second)


def _unlike(values: Mapping[str, Any], found: Mapping[str, tuple[tuple[str, ...], str]]) -> list[str]:
    """The machines, of which none has the ``values`` of another: of those alike the first one with a reason, else the
    first. ``found``: changes and reason of each."""
    kept: list[str] = []
    for name in sorted(values, key=lambda name: not found[name][1]):
        if all(values[name] != values[other] for other in kept):
            kept.append(name)
    return [name for name in values if name in kept]


def _values(machine: str, settings: Mapping[str, Any]) -> tuple[Any, Any]:
    """All that a machine is, without its name, and without what says where a value comes from."""
    found = load_machine(machine, settings)
    return found.model_dump(exclude={"name", "sources", "settings", "hardware"}), found.hardware.config()
