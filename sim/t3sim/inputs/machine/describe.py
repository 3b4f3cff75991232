"""The keys of a machine file in words, from their declarations: ranges, values, and a file to begin one's own with."""

import inspect
import json
import textwrap
from collections.abc import Iterator
from typing import Any

from pydantic.fields import FieldInfo

from .files import load_machine, preset_names
from .machine import SECTIONS, Machine, unit_of

WIDTH = 118
"""Columns of a comment."""


def settings(machine: Machine) -> dict[str, Any]:
    """``section.key`` -> value, for all settings; of the hardware those that its preset does not say."""
    return {
        f"{section}.{key}": value
        for section, model in SECTIONS.items()
        for key in model.model_fields
        if (value := getattr(getattr(machine, section), key)) is not None
    }


def range_text(field: FieldInfo) -> str:
    """The limits of a number, of each element of a list, or the values of a choice."""
    if isinstance(field.json_schema_extra, dict) and "range" in field.json_schema_extra:
        return str(field.json_schema_extra["range"])
    limits = _limits(field.metadata)
    arguments: tuple[Any, ...] = getattr(field.annotation, "__args__", ())
    if not limits and len(arguments) == 2 and arguments[1] is Ellipsis:
        limits = _limits(getattr(arguments[0], "__metadata__", ()))
    if getattr(field.annotation, "__origin__", None) is not None and not limits:
        return ", ".join(f"`{value}`" for value in arguments if isinstance(value, str))
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


def machine_template(base: str) -> str:
    """A machine file on the preset ``base`` that changes nothing yet: every key is there as a comment, with meaning,
    unit, range, and the preset's value and its source. Raises ValueError if there is no such preset."""
    if base not in preset_names():
        raise ValueError(f"--base must be one of {', '.join(preset_names())}, not {base!r}")
    machine = load_machine(base)
    intro = (
        f"A machine of your own. Every value is that of its base, {base!r}, until you change it: remove the # before a "
        'key, write your value, and its unit and source if you like, as in cus = { value = 80, unit = "CUs", source = '
        '"data sheet" }. Ranges and units are checked when the file is read.'
    )
    lines = [*_comment(intro), "", f"base = {json.dumps(base)}"]
    for section, model in SECTIONS.items():
        lines += ["", *_comment(inspect.getdoc(model) or ""), f"[{section}]"]
        for key, field in model.model_fields.items():
            value, source = getattr(getattr(machine, section), key), machine.sources.get(f"{section}.{key}")
            if value is None:
                value, source = getattr(machine.hardware.config(), key), f"that of preset {machine.hardware.preset}"
            lines += ["", *_comment(_meaning(section, key, field)), *_comment(f"Base: {source}")]
            lines.append(f"# {key} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _meaning(section: str, key: str, field: FieldInfo) -> str:
    """Meaning, unit and range, as a sentence."""
    unit, limits = unit_of(section, key), range_text(field)
    parts = [f"{key}: {field.description}", f"unit: {unit}" if unit else "", f"range: {limits}" if limits else ""]
    return ". ".join(part for part in parts if part).replace("`", "") + "."


def _comment(text: str) -> Iterator[str]:
    for paragraph in text.splitlines():
        yield from (
            (f"# {line}" for line in textwrap.wrap(paragraph, WIDTH, break_on_hyphens=False)) if paragraph else "#"
        )
