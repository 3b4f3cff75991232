"""The generated pages are what the sources and the kept results make of them, and every link of the manual leads
somewhere."""

import re
from importlib import import_module

import pytest

from docs.pages import DOCS
from docs.pages.__main__ import PAGES

LIST = re.compile(r"([-*]|\d+\.) ")
MEASURED = ("area", "validation")
"""Pages that take minutes: tests/hdl/export/test_products.py and tests/docs/test_validation.py hold them."""


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")  # parts are made for their ports
@pytest.mark.parametrize("name", [name for name in PAGES if name not in MEASURED])
def test_a_generated_page_is_current(name):
    page = import_module(f"docs.pages.{name}")
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), f"after a change: python -m docs.pages {name}"


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(
    "page",
    [*sorted(DOCS.rglob("*.md")), *(DOCS.parent / name for name in ("README.md", "CHANGELOG.md"))],
    ids=lambda page: page.relative_to(DOCS.parent).as_posix(),
)
def test_every_link_leads_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page}: {target}"
        if anchor and linked.suffix == ".md":
            assert anchor in anchors(linked.read_text(encoding="utf-8")), f"{page}: {target}"


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.relative_to(DOCS).as_posix())
def test_every_markdown_reads_lists_and_tables_alike(page):
    """Some need a blank line before a list or a table, and take two powers of two in a paragraph for bold text."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for paragraph in re.split(r"\n\s*\n", text):
        first, *rest = paragraph.strip("\n").splitlines() or [""]
        if not LIST.match(first) and not first.startswith((" ", "#")):
            assert not [line for line in rest if LIST.match(line)], f"a blank line before a list: {paragraph}"
        if not first.startswith("|"):
            assert not [line for line in rest if line.startswith("|")], f"a blank line before a table: {paragraph}"
            plain = re.sub(r"`[^`]*`", "", paragraph)
            assert not re.search(r"\w\*\*\w", plain), f"write 2^n: {paragraph}"
