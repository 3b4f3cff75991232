"""The HTML file: sections through templates that escape everything, with style, script and Plotly inside it."""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import resources
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

from t3sim import __version__

from .folders import Folder, Mapped, Modelled, Reproduced, Runs
from .maps import map_section
from .models import model_section
from .parts import Bullets, Cards, Chart, Choice, Code, Folded, Mark, Section, Table, Tabs, Text
from .reproductions import reproduce_section
from .runs import runs_section
from .sweeps import sweep_section

PREAMBLE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="OpenT3 report">
"""
"""How every report begins; with the digest at its end, by which a report is known as one."""


def section_of(folder: Folder) -> Section:
    """The section of a folder of any kind."""
    if isinstance(folder, Runs):
        return runs_section(folder)
    if isinstance(folder, Modelled):
        return model_section(folder)
    if isinstance(folder, Mapped):
        return map_section(folder)
    return reproduce_section(folder) if isinstance(folder, Reproduced) else sweep_section(folder)


def report_html(folders: Sequence[Folder], on_section: Callable[[str], None] | None = None) -> str:
    """The report of ``folders``: the same bytes for the same folders. ``on_section``: called with the name of each when
    its section begins, which may take seconds."""
    environment = Environment(
        loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.globals |= {"new_id": _numbered(), "data_link": _data_link}
    environment.filters |= {"prose": _prose, "slug": _slug}
    environment.tests |= {"mark": lambda cell: isinstance(cell, Mark)} | {
        kind.kind: lambda item, kind=kind: isinstance(item, kind)
        for kind in (Cards, Table, Chart, Tabs, Choice, Text, Bullets, Code, Folded)
    }
    scripts = {"plotly": get_plotlyjs(), "script": _asset("report.js")}
    text = environment.get_template("report.html").render(
        preamble=Markup(PREAMBLE),
        sections=_sections(folders, on_section),
        version=__version__,
        style=Markup(_asset("report.css")),
        policy=f"default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; script-src {_hashes(scripts)}",
        **{name: Markup(script) for name, script in scripts.items()},
    )
    return f"{text}<!-- SHA-256 of all above: {digest_of(text)} -->\n"


def _sections(folders: Sequence[Folder], on_section: Callable[[str], None] | None) -> list[Section]:
    found = []
    for folder in folders:
        if on_section is not None:
            on_section(folder.name)
        found.append(section_of(folder))
    return found


def digest_of(text: str) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def _hashes(scripts: dict[str, str]) -> str:
    """What a browser may run: these scripts, and none that somebody has put into a name or a source."""
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts.values())
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def _asset(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _numbered() -> Callable[[str], str]:
    """Ids that are the same in every report of the same folders."""
    seen: Counter[str] = Counter()

    def new_id(kind: str) -> str:
        seen[kind] += 1
        return f"{kind}-{seen[kind]}"

    return new_id


def _prose(text: str) -> Markup:
    """Escaped text in which what stands in backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _data_link(text: str) -> str:
    """An address that holds ``text`` itself, to save it from the page."""
    return f"data:text/plain;charset=utf-8,{quote(text)}"
