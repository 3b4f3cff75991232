"""Every key of a machine file with its unit, its range and its meaning, from the models of the sections."""

import inspect

from t3sim.inputs.machine.describe import range_text
from t3sim.inputs.machine.machine import SECTIONS, unit_of

from docs.pages import REFERENCE
from docs.pages.shared.markdown import table

PAGE = REFERENCE / "machine.md"
_HEAD = """\
# Keys of a machine file

Every section and key, as `python -m docs.pages machine` writes them from `sim/t3sim/inputs/machine`. The
[guide](../guides/machine.md) says how to write one; [constants](constants.md) has values and sources of the presets.
"""


def page() -> str:
    """The text of :data:`PAGE`."""
    sections = (f"\n## [{name}]\n\n{inspect.getdoc(model)}\n\n{_table(name)}" for name, model in SECTIONS.items())
    return _HEAD + "".join(sections)


def _table(section: str) -> str:
    return table(
        ("key", "unit", "range", "meaning"),
        (
            (f"`{key}`", unit_of(section, key) or "", range_text(field), field.description)
            for key, field in SECTIONS[section].model_fields.items()
        ),
    )
