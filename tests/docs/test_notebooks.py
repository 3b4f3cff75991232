"""The notebooks run, and show today what is printed in them."""

import ast
import re

import pytest

from docs.pages.played.notebooks import NOTEBOOKS, executed, stored, texts


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_computes(path):
    assert texts(executed(path)) == texts(stored(path)), "after a change: python -m docs.pages.played.notebooks"


def is_code(text: str) -> bool:
    """Whether a text, without what stands in fences, is a program."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL).strip()
    try:
        return bool(prose) and bool(ast.parse(prose).body)
    except SyntaxError:
        return False


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_text_is_code_that_lost_its_cell(path):
    assert is_code('table = comparison.frame()\ntable[["speedup"]].round(2)')
    texts_of = [cell.source for cell in stored(path).cells if cell.cell_type == "markdown"]
    assert texts_of and [text for text in texts_of if is_code(text)] == []


def test_there_are_notebooks_and_each_shows_a_table_and_a_picture():
    assert len(NOTEBOOKS) >= 2
    for path in NOTEBOOKS:
        outputs = [output for cell in stored(path).cells for output in cell.get("outputs", [])]
        kinds = {kind for output in outputs for kind in output.get("data", {})}
        assert {"text/html", "image/png"} <= kinds, path
