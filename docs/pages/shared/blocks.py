"""Generated blocks in pages that are written by hand: each stands between two comments."""

from collections.abc import Mapping
from pathlib import Path

_BEGIN, _END = "<!-- {block}: written by python -m docs.pages {page} -->\n", "<!-- end of {block} -->\n"


def with_blocks(path: Path, page: str, blocks: Mapping[str, str]) -> str:
    """The text of a page with these blocks between their marks. Raises ValueError if a mark is not there once."""
    text = path.read_text(encoding="utf-8")
    for name, block in blocks.items():
        begin, end = _BEGIN.format(block=name, page=page), _END.format(block=name)
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"{path.name} must have {begin.strip()} and {end.strip()} once")
        head, rest = text.split(begin)
        text = f"{head}{begin}{block}{end}{rest.split(end)[1]}"
    return text
