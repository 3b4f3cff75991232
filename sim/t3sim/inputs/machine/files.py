"""Machine files: TOML in, a checked :class:`Machine` out (and back with ``Machine.to_toml``).

A value is plain (``cus = 80``) or says its unit and source (``cus = { value = 80, unit = "CUs", source = "..." }``).
A file with ``base = "paper"`` (a preset, or a path relative to the file) replaces only what it names.
"""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from t3hdl.config import T3Config

from t3sim.common.user_input import read_file, readable, shortened

from .hardware import hardware_config
from .machine import SECTIONS, Machine, unit_of
from .settings import MAX_DIGITS, parse_settings

__all__ = ["CONFIG", "Machine", "hardware_with", "load_machine", "preset_names"]

CONFIG = "config.toml"
"""The resolved machine in an output folder."""
MAX_BASES = 32
"""Files that a machine may be put together from."""
MAX_BYTES = 1 << 20
"""Size of a machine file."""
Values = dict[str, dict[str, Any]]
"""section -> key -> plain value."""


def preset_names() -> list[str]:
    """Names of the machines that come with the package."""
    folder = resources.files(__package__) / "presets"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_machine(name_or_path: str | Path = "paper", overrides: Mapping[str, Any] | None = None) -> Machine:
    """The machine called ``name_or_path`` (preset or TOML file) with ``overrides`` ("section.key" -> value) applied.

    Raises ValueError for an unknown name, an unreadable file, an unknown key, a wrong unit or an illegal value; the
    message names the key, the rule and the value.
    """
    values, sources = _read(str(name_or_path))
    for dotted, value in (overrides or {}).items():
        section, _, key = dotted.partition(".")
        _put(values, sources, section, key, value, "set for this run", "setting")
    named = {
        "name": readable(Path(name_or_path).stem),
        "sources": dict(sorted(sources.items())),
        "settings": dict(overrides or {}),
    }
    try:
        return Machine.model_validate(named | values)
    except ValidationError as error:
        raise ValueError(one_line(f"machine {str(name_or_path)!r}", error)) from error


def hardware_with(preset: str, settings: Iterable[str]) -> T3Config:
    """The hardware preset with parameters changed, each ``key=value`` as typed on a command line.

    Raises ValueError as :func:`parse_settings` and :func:`~.hardware.hardware_config` do.
    """
    settings = list(settings)
    if wrong := [text for text in settings if "=" not in text]:
        raise ValueError(f"--set must have the form key=value, as tracker_sets=512, not {shortened(wrong[0])}")
    parameters = parse_settings(f"hardware.{text}" for text in settings)
    return hardware_config(preset, {name.split(".", 1)[1]: value for name, value in parameters.items()})


def _read(name: str) -> tuple[Values, dict[str, str]]:
    """Values and sources of one file on top of its bases."""
    values: Values = {}
    sources: dict[str, str] = {}
    for label, content in reversed(_chain(name)):
        where = f"machine file {label}"
        for section, table in content.items():
            if not isinstance(table, dict):
                raise ValueError(f"{where}: {section!r} must be a section like [gpu], not {shortened(table)}")
            for key, item in table.items():
                _put(values, sources, section, key, item, f"machine file {readable(Path(label).name)}", where)
    return values, sources


def _chain(name: str) -> list[tuple[str, dict[str, Any]]]:
    """A machine file and its bases: label and content without ``base``, the file first."""
    chain: list[tuple[str, dict[str, Any]]] = []
    folder, what = Path(), "machine"
    while True:
        label, text = _text(name, folder, what)
        content = _toml(text, f"machine file {label}")
        labels = [seen for seen, _ in chain]
        if label in labels:
            raise ValueError(f"machine file {label} is its own base: {' -> '.join((*labels, label))}")
        base = content.pop("base", None)
        chain.append((label, content))
        if base is None:
            return chain
        if not isinstance(base, str):
            raise ValueError(f"machine file {label}: base must be the name of a preset or file, not {shortened(base)}")
        if len(chain) == MAX_BASES:
            raise ValueError(
                f"machine file {chain[0][0]} has a chain of more than {MAX_BASES - 1} base files: put some into one"
            )
        name, folder, what = base, Path(label).parent, f"machine file {label}: base"


def _text(name: str, folder: Path, what: str) -> tuple[str, str]:
    """Label and content of a preset, or of a file in ``folder``; ``what``: which value names it."""
    if name in preset_names():
        return name, (resources.files(__package__) / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    path = folder / name
    rule = f"{what} must be one of {', '.join(preset_names())} or a readable TOML file, not {name!r}"
    try:
        return str(path), read_file(path, MAX_BYTES).decode("utf-8-sig")
    except OSError as error:
        near = difflib.get_close_matches(name, preset_names(), n=1)
        raise ValueError(f"{rule} ({error.strerror}){f'; did you mean {near[0]!r}?' if near else ''}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"machine file {path} is not UTF-8 text ({error.reason})") from error
    except ValueError as error:
        raise ValueError(f"{rule} ({error})") from error


def _toml(text: str, where: str) -> dict[str, Any]:
    """The content of a TOML text. Raises ValueError if it is none, or too deep for the parser."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{where} is not TOML: {error}") from error
    except RecursionError as error:
        raise ValueError(f"{where} nests lists or tables too deeply") from error
    except ValueError as error:  # an integer of thousands of digits
        raise ValueError(f"{where} has a number of more than {MAX_DIGITS} digits") from error


def _put(values: Values, sources: dict[str, str], section: str, key: str, item: Any, source: str, where: str) -> None:
    """Stores one setting after checking that it exists and that its unit is the field's."""
    if section not in SECTIONS:
        raise ValueError(f"{where}: unknown section {section!r}{_suggest(section, SECTIONS)}")
    known = SECTIONS[section].model_fields
    if key not in known:
        raise ValueError(f"{where}: unknown key {section}.{key}{_suggest(key, known)}")
    value, source = _unwrap(item, unit_of(section, key), source, f"{where}: {section}.{key}")
    if value is None:
        raise ValueError(f"{where}: {section}.{key} must have a value; leave it out for that of the base")
    values.setdefault(section, {})[key] = _frozen(value)
    sources[f"{section}.{key}"] = source


def _frozen(value: Any) -> Any:
    """``value`` with all of its lists as tuples: a machine cannot be changed."""
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _unwrap(item: Any, unit: str | None, source: str, where: str) -> tuple[Any, str]:
    """Plain value and source of ``item``, which is plain or a table with value, unit and source."""
    if not isinstance(item, dict):
        return item, source
    unknown = set(item) - {"value", "unit", "source"}
    if unknown or "value" not in item:
        raise ValueError(f"{where} must be a plain value or {{ value, unit, source }}, not {shortened(item)}")
    if "unit" in item and item["unit"] != unit:
        raise ValueError(f"{where} is in {unit or 'no unit'}, not {shortened(item['unit'])}")
    return item["value"], str(item.get("source", source))


def _suggest(word: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"


def _message(text: str) -> str:
    """A message of pydantic's, in TOML's words."""
    return f"{text[0].lower()}{text[1:]}".replace("a valid tuple", "a list")


def one_line(where: str, error: ValidationError) -> str:
    """The problems that pydantic found, as one message: key, rule, value; what is missing with its remedy."""
    problems, missing = [], []
    for problem in error.errors():
        name = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "missing":
            missing.append(name)
        elif problem["type"] == "value_error":
            problems.append(str(problem["ctx"]["error"]))
        else:
            problems.append(f"{name}: {_message(problem['msg'])} (given: {shortened(problem['input'])})")
    if missing:
        problems.append(
            f"every value must be there or in the base, and these are not: {', '.join(missing)}; a file that changes a "
            'preset begins with a line as base = "paper"'
        )
    return f"{where}: {'; '.join(problems)}"
