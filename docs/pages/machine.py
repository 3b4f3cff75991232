"""Every key of a machine file with its unit, its range and its meaning, from the models of the sections."""

import inspect
from typing import Any

from pydantic.fields import FieldInfo
from t3sim.inputs.machine.sections import SECTIONS, unit_of

from docs.pages import REFERENCE
from docs.pages.markdown import table

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
            (f"`{key}`", unit_of(section, key) or "", _range(field), field.description)
            for key, field in SECTIONS[section].model_fields.items()
        ),
    )


def _range(field: FieldInfo) -> str:
    """The limits of a number, of each element of a list, or the values of a choice."""
    limits = _limits(field.metadata)
    if not limits and len(arguments := getattr(field.annotation, "__args__", ())) == 2 and arguments[1] is Ellipsis:
        limits = _limits(getattr(arguments[0], "__metadata__", ()))
    if getattr(field.annotation, "__origin__", None) is not None and not limits:
        values = getattr(field.annotation, "__args__", ())
        return ", ".join(f"`{value}`" for value in values if isinstance(value, str))
    return "`true`, `false`" if field.annotation is bool else limits


def _limits(metadata: Any) -> str:
    """As text: "1 to 64", "above 0 to 1", with the step if there is one."""
    found: dict[str, Any] = {}
    for item in metadata:
        for part in getattr(item, "metadata", [item]):  # a Field among annotations has them inside
            for name in ("ge", "gt", "le", "lt", "multiple_of"):
                if hasattr(part, name):
                    found[name] = getattr(part, name)
    if not found:
        return ""
    low = f"{found['ge']:,}" if "ge" in found else f"above {found['gt']:,}"
    high = f"{found['le']:,}" if "le" in found else f"below {found['lt']:,}"
    return f"{low} to {high}" + (f", multiples of {found['multiple_of']:,}" if "multiple_of" in found else "")
