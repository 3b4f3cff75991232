"""What the map says, in the tutorial for readers: ``python -m docs.pages played.reader`` writes it there."""

import textwrap

from docs.pages import DOCS
from docs.pages.map import take_home
from docs.pages.shared.blocks import with_blocks

PAGE = DOCS / "tutorials" / "reader.md"
_WIDTH = 120


def page() -> str:
    """The tutorial with today's sentences. Raises ValueError if a mark is missing, or a record cannot be read."""
    made, said = take_home()
    lines = [textwrap.fill(f"- {text}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False) for text in said]
    notes = [textwrap.fill(text, _WIDTH, break_on_hyphens=False) for text in made]
    block = "\n".join([*lines, "", *(f"{text}\n" for text in notes)])
    return with_blocks(PAGE, "played.reader", {"what to take home from the map": f"\n{block}\n"})
