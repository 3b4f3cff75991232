"""A report as a parser sees it: elements in order, the text in each, ids and what refers to them."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}


@dataclass
class Element:
    """An element with all text below it."""

    tag: str
    attributes: dict[str, str]
    parents: tuple["Element", ...]
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Text below the element, in one line."""
        return " ".join("".join(self.parts).split())

    def within(self, tag: str) -> "Element | None":
        """The nearest parent of that tag."""
        return next((parent for parent in reversed(self.parents) if parent.tag == tag), None)


class Page(HTMLParser):
    """All elements of a page. Raises AssertionError for one that is closed out of order, or never."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()
        assert self._open == [], [element.tag for element in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opens an element."""
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, names)
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(self._open))
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        """Closes the element that is open."""
        assert self._open and self._open[-1].tag == tag, (tag, [element.tag for element in self._open], self.getpos())
        self._open.pop()

    def handle_data(self, data: str) -> None:
        """Text, of all elements that are open."""
        for element in self._open:
            element.parts.append(data)

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Elements of a tag, with attributes of these values."""
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [
            element for element in self.elements if element.tag == tag and wanted.items() <= element.attributes.items()
        ]

    def by_id(self, name: str) -> Element:
        """The element of that id."""
        return next(element for element in self.elements if element.attributes.get("id") == name)


def block_of(page: Page, title: str) -> Element:
    """The block of a report under that title."""
    found = next(heading for heading in page.all("h3") if heading.text == title).within("section")
    assert found is not None
    return found
