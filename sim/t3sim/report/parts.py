"""What a report is made of, before it is HTML: cards, tables, charts, tabs, code, in blocks with a heading.

All text is plain text; the template escapes it, and turns what is in backticks into code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

Tone = Literal["", "good", "bad"]


@dataclass(frozen=True)
class Mark:
    """A cell's text with a verdict, which is never said by the colour alone."""

    text: str
    tone: Tone = ""


Cell = str | Mark


@dataclass(frozen=True, kw_only=True)
class Card:
    """A figure that a reader looks for first."""

    title: str
    value: str
    note: str = ""
    tone: Tone = ""


@dataclass(frozen=True, kw_only=True)
class Cards:
    """Cards in a row."""

    kind: ClassVar[str] = "cards"
    cards: Sequence[Card]


@dataclass(frozen=True, kw_only=True)
class Table:
    """The first column heads its row. ``prose``: indices of columns with sentences rather than numbers."""

    kind: ClassVar[str] = "table"
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    prose: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A Plotly figure. ``summary`` says in a sentence what it shows, ``table`` has its values. Charts with ``zoom``
    have buttons for their time axis, and those of one block show the same time."""

    kind: ClassVar[str] = "chart"
    title: str
    summary: str
    figure: dict[str, Any]
    table: Table
    zoom: bool = False


@dataclass(frozen=True, kw_only=True)
class Tabs:
    """One of several contents at a time: label -> content."""

    kind: ClassVar[str] = "tabs"
    label: str
    tabs: Mapping[str, Sequence["Item"]]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One of many contents at a time, chosen from a list. All choices of a section with the same ``label`` (what is
    chosen, as ``machine``) follow each other."""

    kind: ClassVar[str] = "choice"
    label: str
    contents: Mapping[str, Sequence["Item"]]


@dataclass(frozen=True, kw_only=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, kw_only=True)
class Bullets:
    """Sentences, one below the other."""

    kind: ClassVar[str] = "bullets"
    items: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Code:
    """A command or a file, to be copied; ``file``: the name under which it can be saved."""

    kind: ClassVar[str] = "code"
    title: str
    text: str
    file: str = ""


@dataclass(frozen=True, kw_only=True)
class Folded:
    """Content that a reader opens; on paper it is open."""

    kind: ClassVar[str] = "folded"
    title: str
    items: Sequence["Item"]


Item = Cards | Table | Chart | Tabs | Choice | Text | Bullets | Code | Folded


@dataclass(frozen=True, kw_only=True)
class Block:
    """A heading and what stands below it."""

    title: str
    items: Sequence[Item]


@dataclass(frozen=True, kw_only=True)
class Section:
    """The report of one folder. ``facts``: short facts below the title."""

    title: str
    name: str
    facts: Sequence[str] = field(default_factory=tuple)
    blocks: Sequence[Block]


def chosen(label: str, contents: Mapping[str, Sequence[Item]]) -> list[Item]:
    """A choice; what there is only one of is shown without."""
    return [Choice(label=label, contents=contents)] if len(contents) > 1 else _all_of(contents)


def tabbed(label: str, contents: Mapping[str, Sequence[Item]]) -> list[Item]:
    """Tabs; what there is only one of is shown without."""
    return [Tabs(label=label, tabs=contents)] if len(contents) > 1 else _all_of(contents)


def _all_of(contents: Mapping[str, Sequence[Item]]) -> list[Item]:
    return [item for items in contents.values() for item in items]


DASH = "\u2013"
"""What a cell without a value shows."""


def count(value: float) -> str:
    """A whole number with separators."""
    return f"{value:,.0f}"


def sentence(text: str) -> str:
    """A clause, which begins with a small letter and has no full stop, as a sentence."""
    return f"{text[0].upper()}{text[1:]}."


def plural(number: int, noun: str) -> str:
    """For example ``1 GPU``, ``2 GPUs``, ``3 policies``."""
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"
