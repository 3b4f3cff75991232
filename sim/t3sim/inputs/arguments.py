"""Arguments of the Python API: what is of another type than it should be is a ValueError, as any wrong value is."""

import os
from collections.abc import Iterable, Mapping
from operator import index
from pathlib import Path
from typing import Any


def integer(name: str, value: object) -> int:
    """``value`` as an int; NumPy's integers are some, too, and truth values are none. Raises ValueError."""
    if not isinstance(value, bool):
        try:
            return index(value)  # type: ignore[arg-type]  # what has no index raises
        except TypeError:
            pass
    raise ValueError(f"{name} must be a whole number, not {value!r}")


def instance(name: str, value: object, kind: type | tuple[type, ...], rule: str) -> None:
    """Raises ValueError if ``value`` is of no type in ``kind``; ``rule`` says what it must be."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be {rule}, not {value!r}")


def items(name: str, values: object, kind: type | tuple[type, ...], rule: str) -> tuple[Any, ...]:
    """``values``, which must be a list (or another collection but a text) of ``kind``. Raises ValueError."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a list of {rule}, not {values!r}")
    found = tuple(values)
    for value in found:
        if not isinstance(value, kind):
            raise ValueError(f"{name} must be a list of {rule}, not of {value!r}")
    return found


def settings(name: str, values: object) -> dict[str, Any]:
    """``values`` by names, which must be texts; None is none. Raises ValueError."""
    if values is None:
        return {}
    instance(name, values, Mapping, "a dictionary of values by names")
    found = dict(values)  # type: ignore[call-overload]  # just checked
    for key in found:
        instance(f"a name in {name}", key, str, "a text")
    return found


def path(name: str, value: object) -> Path:
    """``value`` as a path. Raises ValueError."""
    instance(name, value, (str, os.PathLike), "a path")
    return Path(value)  # type: ignore[arg-type]  # just checked


def path_of(name: str, value: object) -> Path | None:
    """``value`` as a path; None if there is none. Raises ValueError."""
    return None if value is None else path(name, value)
