"""What a result is of: digests of the resolved machine, of its T3 hardware, and of the sources that simulated them."""

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Self

import t3hdl
from pydantic import BaseModel, ConfigDict, JsonValue

from t3sim.common.cache import digest
from t3sim.inputs.machine.machine import Machine

SOURCES = ("*.py", "*.rdl")
"""Files of the packages that decide a result, or may."""


class Provenance(BaseModel):
    """``settings``: what ``--set`` and the like changed, key -> value. Digests have 32 hexadecimal digits.

    ``machine``: all values of the resolved machine, without its name and sources; ``hardware``: all parameters of the
    T3 hardware; ``sources``: the files of this program. Two machine files with equal values have equal digests.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    settings: dict[str, JsonValue]
    machine: str
    hardware: str
    sources: str

    @classmethod
    def of(cls, machine: Machine) -> Self:
        """The provenance of a run on ``machine``, simulated by these sources."""
        values = machine.model_dump(mode="json", exclude={"name", "sources", "settings", "hardware"})
        config = machine.hardware.config()
        return cls(
            settings=settings_of(machine), machine=_digest(values), hardware=_digest(asdict(config)), sources=_sources()
        )


def settings_of(machine: Machine) -> dict[str, JsonValue]:
    """The settings of a machine as JSON holds them."""
    found: dict[str, JsonValue] = json.loads(json.dumps(machine.settings, default=str))
    return found


def _digest(values: object) -> str:
    return digest(json.dumps(values, sort_keys=True))


@cache
def _sources() -> str:
    packages = sorted((Path(__file__).parents[1], Path(next(iter(t3hdl.__path__)))))
    files = [
        (path.relative_to(root.parent), path) for root in packages for kind in SOURCES for path in root.rglob(kind)
    ]
    return digest(*(text for name, path in sorted(files) for text in (name.as_posix(), path.read_text("utf-8"))))
