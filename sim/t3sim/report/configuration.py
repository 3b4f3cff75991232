"""The simulated machine: every value with its unit, its meaning and where it comes from."""

from collections.abc import Iterator
from typing import Any

from t3sim.inputs.machine.files import CONFIG, load_machine, preset_names
from t3sim.inputs.machine.machine import SECTIONS, Machine, unit_of
from t3sim.inputs.machine.standing import caution
from t3sim.run.provenance import Provenance
from t3sim.run.result import Result

from .folders import Config
from .parts import DASH, Block, Folded, Item, Table, Text, plural, sentence

TITLE = "Configuration with sources"
NARROW_TIMES = "\u00a0x\u00a0"
"""Between the sides of a tile, which stay in one line."""


def configuration_block(machine: Machine, note: str = "") -> Block:
    """All sections of ``machine``."""
    items: list[Item] = [Text(text=note)] if note else []
    items += [
        Folded(title=f"{section} ({plural(len(rows), 'value')})", items=[_table(section, rows)])
        for section in SECTIONS
        if (rows := list(_rows(machine, section)))
    ]
    return Block(title=TITLE, items=items)


def record_machine_block(config: Config | None, name: str, settings: dict[str, Any], results: list[Result]) -> Block:
    """The machine of a record: that of the folder, or else, if ``name`` is a preset, that with ``settings``.

    It is shown if it has the values of ``results``, the runs on it.
    """
    if config is None and name not in preset_names():
        text = (
            f"The folder names its machine, `{name}`, a file of its own that is not kept here; `t3 machine show` says "
            "whether it is unvalidated."
        )
        return Block(title=TITLE, items=[Text(text=text)])
    machine = config.machine if config else load_machine(name, settings)
    wanted, digests = Provenance.of(machine), {(r.provenance.machine, r.provenance.hardware) for r in results
                                               if r.provenance}  # fmt: skip
    if digests != {(wanted.machine, wanted.hardware)}:
        text = (
            f"The folder's `{CONFIG}` has other values than the runs had: it was written by other runs, or changed."
            if config
            else f"The preset `{name}` of this version has other values than the runs had: use the version of the runs."
        )
        return Block(title=TITLE, items=[Text(text=text)])
    source = f"The folder's `{CONFIG}`" if config else f"The preset `{name}`{' with settings' if settings else ''}"
    note = f"{source}, whose values have the digest of the runs."
    return configuration_block(machine, " ".join([note, *cautions(machine, name)]))


def cautions(machine: Machine, name: str) -> list[str]:
    """As sentences, what a reader of the results of ``machine``, which they call ``name``, must know."""
    return [sentence(text) for text in caution(machine, name)]


def cautions_of(config: Config | None, name: str) -> list[Text]:
    """The same of the machine of a record, as far as the folder keeps it, or it is a preset."""
    if config is None and name not in preset_names():
        return []
    return [Text(text=text) for text in cautions(config.machine if config else load_machine(name), name)]


def _rows(machine: Machine, section: str) -> Iterator[tuple[str, ...]]:
    model = getattr(machine, section)
    for key, field in type(model).model_fields.items():
        value = getattr(model, key)
        if value is not None:
            source = machine.sources.get(f"{section}.{key}", DASH)
            yield key, value_text(value), unit_of(section, key) or DASH, field.description or DASH, source


def value_text(value: Any) -> str:
    """A value as a machine file's reader expects it."""
    if isinstance(value, tuple | list):
        texts = (NARROW_TIMES.join(map(str, item)) if isinstance(item, tuple | list) else str(item) for item in value)
        return ", ".join(texts) or "none"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _table(section: str, rows: list[tuple[str, ...]]) -> Table:
    doc = " ".join((SECTIONS[section].__doc__ or "").split())
    return Table(
        caption=f"[{section}] {doc}", head=("key", "value", "unit", "meaning", "source"), rows=rows, prose=(1, 2, 3, 4)
    )
