"""The manual's page of parts, made from signatures, docstrings and latencies of the code.

``python -m docs.pages parts`` writes it again, after a change of a port, a docstring or a latency.
"""

import gc
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache
from inspect import getdoc
from math import prod
from typing import Any

from amaranth.hdl import Fragment, Shape, UnusedElaboratable
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Member
from t3hdl.config import PARAMETERS, PRESET_USES, PRESETS, T3Config
from t3hdl.core import T3Core
from t3hdl.egress.matcher import RangeMatcher
from t3hdl.export.verilog import PARTS
from t3hdl.interface import layouts
from t3hdl.interface.parts import TABLE
from t3hdl.slice.monitor import OccupancyMonitor
from t3hdl.slice.slice import MemorySlice
from t3hdl.tracker.tracker import Tracker
from t3hdl.trigger.trigger import Trigger

from docs.pages import REFERENCE
from docs.pages.shared.markdown import paragraph, table

PAGE = REFERENCE / "parts.md"
SHOWN = ("paper", "small")
"""Presets whose numbers the page gives."""

_ORDER = sorted(TABLE, key=lambda name: (TABLE[name].within != "", not TABLE[name].wires))
"""From the outside in: what stands by itself, the core, the pieces of these."""
_SHARED = (T3Core, MemorySlice, RangeMatcher, Trigger, Tracker, OccupancyMonitor)
"""Where the meaning of a port is looked for that a part hands on from another one."""
_SECTION = re.compile(r"^(Parameters|Members|Raises)\n-+\n((?:.+\n?)+)", re.MULTILINE)
_FACTS = re.compile(r"(?<![\w`])(Latency|Throughput|Reset): ")
"""How a docstring begins to say them."""
_HEAD = """\
# Parts

Made from `hdl/t3hdl` by `python -m docs.pages parts`: signatures, docstrings, and the latencies of instances. What
each part does in which cycle is in [the contract](../hardware/rules.md); where each port goes, in
[integration.md](../guides/integration.md).

Every part also has `clk` and `rst` (synchronous, active high). Kinds of ports:

| kind | ports in Verilog | meaning |
|---|---|---|
| stream | `x__valid`, `x__ready`, `x__payload` | moves when both are 1; valid and payload stay until then |
| pulse | `x_valid`, `x` | taken in the cycle in which valid is 1, always |
| level | `x` | a value in every cycle |

Of an array, item 3 is `x__3__valid` (stream), `x_valid__3` and `x__3` (pulse), `x__3` (level). Directions are those of
the part; `ready` goes the other way. Latencies are in cycles.
"""


class ManualError(ValueError):
    """A port without a meaning, or a part without latency, throughput or reset; the message says where to write it."""


def page() -> str:
    """``docs/reference/parts.md``. Raises ManualError if the code does not say enough."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)  # instances are made for their ports and latencies
        text = _page()
        gc.collect()
    return text


def _page() -> str:
    instances = {name: [PARTS[name](PRESETS[preset]) for preset in SHOWN] for name in _ORDER}
    heads = ("part", "module", "in the unit", *(f"latency, {preset}" for preset in SHOWN), "what it is")
    rows = [_overview(name, components) for name, components in instances.items()]
    parts = [_part(name, components) for name, components in instances.items()]
    return "\n".join([_HEAD, table(heads, rows), *parts, _parameters(), _words()])


def _overview(name: str, components: list[Component]) -> tuple[str, ...]:
    """A part's row in the first table."""
    kind = type(components[0]).__name__
    link = f"[{kind}](#{_anchor(name, kind)})"
    return link, f"`t3_{name}`", _number(name), *map(_latencies, components), _summary(components[0])


@cache
def parameters_of(name: str) -> tuple[str, ...]:
    """The fields of the configuration on which part ``name`` depends: those that are read while it is made."""
    return _read_by(lambda config: Fragment.get(PARTS[name](config), None))


def _read_by(action: Callable[[T3Config], object]) -> tuple[str, ...]:
    """The fields of the configuration that ``action`` reads."""
    read: set[str] = set()

    class Recorded(T3Config):
        """A configuration that notes what is read of it."""

        def __getattribute__(self, attribute: str) -> Any:
            read.add(attribute)
            return super().__getattribute__(attribute)

    config = Recorded(**asdict(PRESETS["small"]))
    read.clear()
    action(config)
    return tuple(name for name in PARAMETERS if name in read)


def _parameters() -> str:
    """Every parameter with its meaning, unit and legal values, what depends on it, and its value in each preset."""
    intro = (
        "What `--set` of `t3 verilog` changes, and `--set hardware.NAME=VALUE` of the simulations. *Number* of a part: "
        "so many there are. `registers` shows most parameters to software; core and unit are made of the other parts."
    )
    meanings = [
        (f"`{name}`", parameter.unit, parameter.legal, parameter.meaning, ", ".join(_dependents(name)))
        for name, parameter in PARAMETERS.items()
    ]
    uses = [(f"`{name}`", use) for name, use in PRESET_USES.items()]
    values = [(f"`{name}`", *(_value(getattr(config, name)) for config in PRESETS.values())) for name in PARAMETERS]
    tables = (
        table(("parameter", "unit", "legal values", "meaning", "parts that depend on it"), meanings),
        table(("preset", "for"), uses),
        table(("value in the preset", *(f"`{preset}`" for preset in PRESETS)), values),
    )
    return f"## Parameters\n\n{paragraph(intro)}" + "\n".join(tables)


def _dependents(parameter: str) -> Iterator[str]:
    for name, part in TABLE.items():
        if not part.wires and parameter in parameters_of(name):
            yield f"`{name}`"
        if not part.beside and parameter in _read_by(part.instances):
            yield f"number of `{name}`"


def _value(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value).lower()


def _part(name: str, components: list[Component]) -> str:
    """A part's section: what it is, its facts, its ports."""
    kind = type(components[0])
    cycles = [f"{preset}: {text}" for preset, text in zip(SHOWN, map(_latencies, components), strict=True) if text]
    facts = [
        (fact.lower(), f"{text} ({'; '.join(cycles)})" if fact == "Latency" and cycles else text)
        for fact, text in _facts(kind).items()
    ]
    facts.append(("parameters", ", ".join(f"`{each}`" for each in parameters_of(name)) or "none"))
    heads = ("port", "direction", "kind", "bits", f"number, {' / '.join(SHOWN)}", "meaning")
    return (
        f"## {_title(name, kind.__name__)}\n\n{_description(kind)}{table(('', ''), facts)}\n"
        f"{table(heads, _port_rows(components))}"
    )


def _port_rows(components: list[Component]) -> Iterator[tuple[str, ...]]:
    """One row per port; ports that are described together, and are alike, share one."""
    kind = type(components[0])
    members = [component.signature.members for component in components]
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for name in members[0]:
        if name.endswith("_valid") and name.removesuffix("_valid") in members[0]:
            continue  # the pulse stands for both
        pattern, meaning = _meaning(kind, name)
        if pattern.endswith("*"):
            rows.setdefault(("both", "bus", "", meaning), {})[pattern] = ""
            continue
        counts = [prod(each[name].dimensions) if each[name].dimensions else 1 for each in members]
        number = "" if counts == [1] * len(counts) else " / ".join(map(str, counts))
        is_pulse = f"{name}_valid" in members[0] or meaning.startswith("pulse")
        what, bits = _kind_and_bits(members[0][name], is_pulse)
        direction = "in" if members[0][name].flow == In else "out"
        rows.setdefault((direction, what, number, meaning), {})[name] = bits
    for (direction, what, number, meaning), bits_of in rows.items():
        names = ", ".join(f"`{name}`" for name in bits_of)
        bits = ", ".join(bits_of.values() if len(set(bits_of.values())) > 1 else [next(iter(bits_of.values()))])
        yield names, direction, what, bits, number, re.sub("^pulses?[^;]*; ", "", meaning)


def _kind_and_bits(member: Member, is_pulse: bool) -> tuple[str, str]:
    shape = member.signature.members["payload"].shape if member.is_signature else member.shape
    words = {id(word): name for name, word in vars(layouts).items() if isinstance(word, data.Layout)}
    kind = "stream" if member.is_signature else "pulse" if is_pulse else "level"
    word = words.get(id(shape))
    return f"{kind} of [{word}](#words)" if word else kind, str(Shape.cast(shape).width)


def _meaning(kind: type, name: str) -> tuple[str, str]:
    """The pattern in a docstring that names the port, and what is said there."""
    for source in (kind, *_SHARED):
        for pattern, text in _members(source):
            if re.fullmatch(pattern.replace("*", r"\w+"), name):
                return pattern, text
    raise ManualError(f"port {name} of {kind.__name__} has no meaning: add it to Members in the class's docstring")


def _members(kind: type) -> Iterator[tuple[str, str]]:
    """(port, meaning) for each port that the docstring's section Members names."""
    section = dict(_SECTION.findall(f"{getdoc(kind)}\n")).get("Members", "")
    for entry in re.split(r"\n(?=\S)", section.strip()):
        for group in re.split(r"(?<=\.) (?=\w+ : )", " ".join(entry.split())):
            names, _, text = group.partition(" : ")
            direction, separator, rest = text.partition(" : ")
            if separator:
                text = rest
            elif direction.startswith(("In(", "Out(")):
                text = ""
            for name in names.split(", "):
                yield name, _plain(text).rstrip(".")


def _description(kind: type) -> str:
    """The docstring without its sections and facts, in paragraphs."""
    text = _SECTION.sub("", f"{getdoc(kind)}\n")
    kept = [part for part in text.split("\n\n") if part.strip() and not _FACTS.match(part.strip())]
    return "".join(paragraph(_plain(" ".join(part.split()))) for part in kept)


def _facts(kind: type) -> dict[str, str]:
    """What the docstring says of latency, throughput and reset."""
    paragraphs = (" ".join(part.split()) for part in f"{getdoc(kind)}\n".split("\n\n"))
    pieces = _FACTS.split(next(filter(_FACTS.match, paragraphs), ""))[1:]
    facts = {name: _plain(said).rstrip(". ") for name, said in zip(pieces[::2], pieces[1::2], strict=True)}
    missing = {"Latency", "Throughput", "Reset"} - facts.keys()
    if missing:
        names = ", ".join(sorted(missing))
        raise ManualError(f"{kind.__name__} does not say its {names}: add it to the class's docstring")
    return facts


def _latencies(component: Component) -> str:
    """``latency`` and its like, as the instance has them."""
    kind = type(component)
    found = {name: getattr(component, name) for name in dir(kind) if name.endswith("latency") and name[0] != "_"}
    return ", ".join(str(value) if name == "latency" else f"{_words_of(name)} {value}" for name, value in found.items())


def _words_of(name: str) -> str:
    return name.removesuffix("_latency").replace("_", " ")


def _number(name: str) -> str:
    part = TABLE[name]
    counts = [part.count(PRESETS[preset]) for preset in SHOWN]
    return part.beside or (" / ".join(map(str, counts)) if counts != [1] * len(counts) else "1")


def _words() -> str:
    """Every word that travels, with the place of each field."""
    codes = f"`op` {_codes(layouts.Op)}; `dtype` {_codes(layouts.Dtype)}"
    text = (
        f"The same in every configuration. Codes: {codes}. A line is a byte address / 32; rows and columns count tiles."
    )
    rows = [
        (name, Shape.cast(word).width, ", ".join(_place(part, *_bits(place)) for part, place in word))
        for name, word in vars(layouts).items()
        if isinstance(word, data.Layout)
    ]
    return f"## Words\n\n{paragraph(text)}{table(('word', 'bits', 'fields'), rows)}"


def _bits(place: data.Field) -> tuple[int, int]:
    """Lowest bit and width."""
    return place.offset, Shape.cast(place.shape).width


def _codes(codes: Any) -> str:
    return ", ".join(f"{code.value} {code.name}" for code in codes)


def _place(name: Any, low: int, width: int) -> str:
    return f"`{name}` [{low + width - 1}:{low}]" if width > 1 else f"`{name}` [{low}]"


def _summary(component: Component) -> str:
    return _plain(" ".join((getdoc(type(component)) or "").split("\n\n")[0].split()))


def _title(name: str, kind: str) -> str:
    return f"{kind}, {name}" if kind == "TokenNode" else kind


def _anchor(name: str, kind: str) -> str:
    return _title(name, kind).lower().replace(", ", "-")


def _plain(text: str) -> str:
    """Markdown from a docstring: references lose their path, code its second quotation mark, the contract is a link."""
    text = re.sub(r":\w+:`~?[^`]*?(\w+)`", r"`\1`", text)
    return text.replace("``", "`").replace("docs/hardware/rules.md", "[the contract](../hardware/rules.md)")
