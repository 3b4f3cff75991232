"""Machine values as they are changed for a run: ``section.key=value``, read and written."""

import json
import sys
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from t3sim.common.user_input import shortened

MAX_DIGITS = sys.get_int_max_str_digits()
"""Digits of an integer that Python reads."""


def parse_setting(text: str) -> tuple[str, Any]:
    """``section.key=value`` as typed on a command line -> ("section.key", value).

    The value is read as TOML; a bare word is a string. Raises ValueError if the text has no such form.
    """
    name, equals, value = text.partition("=")
    if not equals or "." not in name:
        raise ValueError(f"a setting must have the form section.key=value, not {shortened(text)}")
    if not text.isprintable():  # also bytes that are no UTF-8
        raise ValueError(f"a setting must be one line of printable text, not {shortened(text)}")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), value.strip()
    except RecursionError as error:
        raise ValueError(f"a setting must not nest lists so deeply: {shortened(text)}") from error
    except ValueError as error:  # an integer of thousands of digits
        raise ValueError(f"a setting must have numbers of at most {MAX_DIGITS} digits: {shortened(text)}") from error


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Settings as :func:`parse_setting` reads each. Raises ValueError if a key comes twice."""
    settings: dict[str, Any] = {}
    for text in texts:
        name, value = parse_setting(text)
        if name in settings:
            raise ValueError(f"--set must give each key once, and {name} comes twice: leave one out")
        settings[name] = value
    return settings


def literal(value: Any) -> str:
    """A machine's value as ``--set`` and ``--vary`` read it, which is TOML: as JSON, but for words that need no
    quotes."""
    bare = isinstance(value, str) and value.replace("-", "").replace("_", "").isalnum() and value[0].isalpha()
    return value if bare and value not in ("true", "false", "inf", "nan") else json.dumps(value)


def settings_text(settings: Mapping[str, Any]) -> str:
    """Changed values in one line, as ``link.gb_s=75, dma.block=tile``, or "none"."""
    return ", ".join(f"{key}={literal(value)}" for key, value in settings.items()) or "none"


def machine_title(name: str, settings: Mapping[str, Any]) -> str:
    """A machine as results name it, with the values that were changed."""
    return f"{name} with {settings_text(settings)}" if settings else name
