"""The register description ``t3.rdl``, and what is made from it: Python constants, C header, tables of the manual.

``python -m t3hdl.interface.rdl`` writes ``register_map.py`` and the driver's header again, after a
change of ``t3.rdl``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from systemrdl import RDLCompiler
from systemrdl.node import AddressableNode, FieldNode, RegNode
from systemrdl.rdltypes import AccessType, OnWriteType

SOURCE = Path(__file__).with_name("t3.rdl")
HEADER = Path(__file__).parents[2] / "driver" / "t3_registers.h"

_ELSEWHERE = {"Stuck": "layouts", "Flags": "float"}
"""Words that other modules define, because they also travel between parts."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of a register: bits [low, low + width)."""

    name: str
    low: int
    width: int
    reset: int | None
    text: str
    values: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Register:
    """One register, or an array of them: ``count`` at ``address`` and every ``stride`` bytes after it.

    ``block`` is the name of the array of blocks that it belongs to, or empty; ``access`` one of r, w, rw, and of w1c
    and w1s, which are readable and whose bits a written one clears or sets.
    """

    name: str
    block: str
    layout: str
    address: int
    count: int
    stride: int
    access: str
    text: str
    fields: tuple[Field, ...]


@cache
def registers() -> tuple[Register, ...]:
    """All registers of ``t3.rdl`` in the order of their addresses.

    Raises systemrdl.RDLCompileError, which names file, line and rule, if the description is wrong.
    """
    compiler = RDLCompiler()
    compiler.compile_file(str(SOURCE))
    return tuple(_walk(compiler.elaborate().top.children(), ""))


def _walk(nodes: Iterator[AddressableNode], block: str) -> Iterator[Register]:
    for node in nodes:
        if isinstance(node, RegNode):
            yield _register(node, block)
        else:
            yield from _walk(node.children(), node.inst_name)


def _register(node: RegNode, block: str) -> Register:
    """An array of blocks gives its count and stride to the registers in it."""
    array = node.parent if block else node
    base = array.raw_address_offset + (node.address_offset if block else 0)
    fields = tuple(_field(field) for field in node.fields())
    return Register(
        name=node.inst_name, block=block, layout=node.orig_type_name, address=base,
        count=array.array_dimensions[0] if array.is_array else 1, stride=array.array_stride if array.is_array else 0,
        access=_access(node), text=node.get_property("desc"), fields=fields,
    )  # fmt: skip


def _field(node: FieldNode) -> Field:
    values = node.get_property("encode")
    return Field(
        name=node.inst_name,
        low=node.low,
        width=node.width,
        reset=node.get_property("reset"),
        text=node.get_property("desc"),
        values={value.name: value.value for value in values or ()},
    )


def _access(node: RegNode) -> str:
    field = next(iter(node.fields()))
    special = {OnWriteType.woclr: "w1c", OnWriteType.woset: "w1s"}
    plain = {AccessType.r: "r", AccessType.w: "w", AccessType.rw: "rw"}
    return special.get(field.get_property("onwrite"), plain[field.get_property("sw")])


def python_module() -> str:
    """The text of ``register_map.py``."""
    lines = [
        '"""The register map: byte addresses of 64-bit registers, and the fields in them.',
        "",
        "Everything that writes or decodes a register (RTL, golden model, driver, tests) takes it from here. Made from",
        "``t3.rdl`` by ``python -m t3hdl.interface.rdl``; change that file, not this one.",
        '"""',
        "",
        "from amaranth.lib import data",
        "",
    ]
    lines += [line for register in registers() for line in _constants(register)]
    lines += _access_table() + _layouts() + _resets()
    return "\n".join(lines) + "\n"


def _constants(register: Register) -> Iterator[str]:
    """NAME = address, and for arrays NAME_STRIDE and NAME_COUNT; of a block the address of each register in its first
    entry."""
    name = register.block or register.name
    if not register.block or register.address == _first_of(register.block).address:
        yield f"{name} = 0x{register.address:04X}"
        if register.block:
            words = [each for each in registers() if each.block == name]
            places = ", ".join(f"{each.name} +{each.address - register.address:#x}" for each in words)
            yield _doc(f"{register.count} of them, each with {places}.")
            yield f"{name}_WORDS = {len(words)}"
        else:
            many = f" ({register.count} of them, {register.stride} bytes apart)" if register.count > 1 else ""
            yield _doc(f"{_VERBS[register.access]}: {register.text}{many}")
        if register.count > 1:
            yield f"{name}_STRIDE = {register.stride:#x}"
            yield f"{name}_COUNT = {register.count}"
    if register.block:
        yield f"{name}_{register.name.upper()} = 0x{register.address:04X}"


_VERBS = {
    "r": "Read",
    "w": "Write",
    "rw": "Read, write",
    "w1c": "Read; ones clear",
    "w1s": "Read; ones set",
}


def _first_of(block: str) -> Register:
    return next(register for register in registers() if register.block == block)


def _doc(text: str) -> str:
    return f'"""{text}"""'


def _access_table() -> list[str]:
    single = [register for register in registers() if register.count == 1]
    entries = [f'    {register.name}: "{register.access}",' for register in single]
    doc = _doc("How software uses each register that is not in an array: r, w, rw; w1c, w1s are rw with ones.")
    return ["", "ACCESS = {", *entries, "}", doc, ""]


def _layouts() -> list[str]:
    """A ``StructLayout`` per word of several fields that no other module defines."""
    lines, seen = [], set(_ELSEWHERE)
    for register in registers():
        if register.layout not in seen and (len(register.fields) > 1 or register.block):
            seen.add(register.layout)
            lines += [f"{register.layout} = data.StructLayout({{", *_members(register), "})  # fmt: skip", ""]
    descriptor = [register.layout for register in registers() if register.block == "DESCRIPTOR"]
    lines += [f"DESCRIPTOR_LAYOUTS = ({', '.join(descriptor)})", _doc("The words of a descriptor, in their order."), ""]
    return lines


def _members(register: Register) -> Iterator[str]:
    """Gaps become reserved members."""
    end, gaps = 0, 0
    for field in register.fields:
        if field.low > end:
            gaps += 1
            yield f'    "reserved{gaps if gaps > 1 else ""}": {field.low - end},'
        yield f'    "{field.name}": {field.width},  # {field.text}'
        end = field.low + field.width


def _resets() -> list[str]:
    """The registers that are not 0 after reset, and the constants among them."""
    lines = ["RESET = {"]
    for register in registers():
        values = {field.name: field.reset or 0 for field in register.fields}
        if any(values.values()) and not register.block:
            inner = ", ".join(f'"{name}": {value}' for name, value in values.items())
            lines.append(f"    {register.name}: {{{inner}}},")
    lines += ["}", _doc("What is not 0 after reset (CAPABILITY tells of the configuration)."), ""]
    lines += ['ID_VALUE = RESET[ID]["value"]', "HARDWARE_VERSION = RESET[VERSION]"]
    return [*lines, 'NO_CREDIT_LIMIT = RESET[QUOTA]["credits"]', _doc("As Quota.credits: commands are not limited.")]


def c_header() -> str:
    """``t3_registers.h``: an address, and per field a shift and a mask, for every register."""
    lines = [
        "/* The registers of the T3 unit; made from t3.rdl. Every access is 64 bits wide. */",
        "#ifndef T3_REGISTERS_H",
    ]
    lines += ["#define T3_REGISTERS_H", "", "#include <stdint.h>", ""]
    for register in registers():
        name = f"T3_{register.block}_{register.name}".upper() if register.block else f"T3_{register.name}"
        lines.append(f"/* {register.text} */")
        place = f"UINT32_C({register.address:#06x})"
        if register.count > 1:
            lines += [
                f"#define {name}(i) ({place} + UINT32_C({register.stride:#x}) * (i))",
                f"#define {name}_COUNT {register.count}",
            ]
        else:
            lines.append(f"#define {name} {place}")
        for field in register.fields:
            prefix = f"{name}_{field.name.upper()}"
            mask = (1 << field.width) - 1 << field.low
            lines += [f"#define {prefix}_SHIFT {field.low}", f"#define {prefix}_MASK UINT64_C({mask:#x})"]
            if field.reset:
                lines.append(f"#define {prefix}_RESET UINT64_C({field.reset:#x})")
        lines.append("")
    for name, value in _encodings():
        lines.append(f"#define T3_{name} {value}")
    return "\n".join([*lines, "", "#endif", ""])


def _encodings() -> Iterator[tuple[str, int]]:
    """Named values of fields, each once: ``OP_ADD`` and so on."""
    seen = set()
    for register in registers():
        for field in register.fields:
            for name, value in field.values.items():
                constant = f"{field.name}_{name}".upper()
                if constant not in seen:
                    seen.add(constant)
                    yield constant, value


def manual_page() -> str:
    """``docs/reference/registers.md``: the map, then a table of fields per register."""
    lines = [
        "# Registers",
        "",
        "Made from `hdl/t3hdl/interface/t3.rdl` by `python -m docs.pages registers`. Accesses are 64 bits wide and",
        "aligned; any other access answers SLVERR and changes nothing ([rules](../hardware/registers.md)).",
        "",
        "| address | register | access | meaning |",
        "|---|---|---|---|",
    ]
    for register in registers():
        title = _title(register)
        link = f"[{title}](#{re.sub(r'[^a-z0-9_-]', '', title.lower())})"
        lines.append(_row(f"`{_place(register)}`", link, register.access, register.text))
    lines += ["", "Access: w1c, written ones clear; w1s, written ones set until reset.", ""]
    lines += ["Reset is empty where the unit's state or its configuration decides what is read.", ""]
    for register in registers():
        lines += [
            f"## {_title(register)}",
            "",
            register.text,
            "",
            "| bits | field | reset | meaning |",
            "|---|---|---|---|",
        ]
        lines += [_field_row(field) for field in register.fields]
        lines.append("")
    return "\n".join(lines)


def _row(*cells: str) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _field_row(field: Field) -> str:
    bits = f"{field.low + field.width - 1}:{field.low}" if field.width > 1 else str(field.low)
    values = "; ".join(f"{value} {name}" for name, value in field.values.items())
    meaning = f"{field.text} ({values})" if values else field.text
    return _row(bits, field.name, "" if field.reset is None else f"{field.reset:#x}", meaning)


def _place(register: Register) -> str:
    return f"{register.address:#06x}" + (f" + {register.stride:#x} i" if register.count > 1 else "")


def _title(register: Register) -> str:
    name = f"{register.block}.{register.name}" if register.block else register.name
    return f"{name}[{register.count}]" if register.count > 1 else name


def main() -> None:
    """Writes the files that are kept in the repository."""
    Path(__file__).with_name("register_map.py").write_text(python_module())
    HEADER.write_text(c_header())


if __name__ == "__main__":
    main()
