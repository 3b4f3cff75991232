"""Every constant of every machine preset with its source: ``python -m docs.pages constants`` writes the page."""

from typing import Any

from t3sim.inputs.machine.describe import settings
from t3sim.inputs.machine.files import load_machine, preset_names
from t3sim.inputs.machine.machine import Machine, unit_of

from docs.pages import REFERENCE
from docs.pages.shared.markdown import table

PAGE = REFERENCE / "constants.md"
BASE = "paper"
"""The preset that is listed whole; of the others the page has what differs from it."""

_HEAD = """\
# Constants

Every number of every machine preset, with its source, as `python -m docs.pages constants` writes it from
`sim/t3sim/inputs/machine/presets`. [P]: the T3 paper says so. [D]: derived from a published figure, or from another
value of the machine. [A]: this project's assumption, with its reason. [S]: a public specification of a product; a
machine with such values is unvalidated. "GPGPU-Sim" and "Accel-Sim" stand before an option of the public V100
configuration, whose files and commits are in the head of `paper-accelsim.toml`. What a key means is on [its
page](machine.md). None depends on a model, a sublayer or a degree of tensor parallelism: a machine is loaded before,
and without, a workload, and `tests/docs/test_constants.py` shows that nothing that simulates reads the names of model
and sublayer. "PIMSimulator" is Samsung's simulator of HBM2 with processing in memory.
"""


def page() -> str:
    """The text of :data:`PAGE`."""
    base = load_machine(BASE)
    parts = [_HEAD, f"## {BASE}\n", _table(base, {})]
    for name in preset_names():
        if name != BASE:
            parts += [f"## {name}\n\nAs `{BASE}` but for:\n", _table(load_machine(name), settings(base))]
    return "\n".join(parts)


def _table(machine: Machine, known: dict[str, Any]) -> str:
    """The settings that ``known`` does not have with the same value."""
    return table(
        ("constant", "value:", "unit", "source"),
        (
            (f"`{name}`", _text(value), unit_of(*name.split(".")[:2]) or "", machine.sources[name])
            for name, value in settings(machine).items()
            if name not in known or known[name] != value
        ),
    )


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(" x ".join(map(str, item)) if isinstance(item, tuple) else str(item) for item in value) or "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
