"""What writes the pages: tables that Markdown reads as they are meant, and one line for what is wrong."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from t3hdl.export.synthesis import SynthesisError

from docs.pages import area, boards, faults, parts
from docs.pages.__main__ import main
from docs.pages.shared.markdown import table


def raises(error: Exception):
    """A function that takes nothing and raises ``error``."""

    def page() -> str:
        raise error

    return page


@pytest.mark.parametrize(
    ("page", "error"),
    [
        (parts, parts.ManualError("port x of Tracker has no meaning")),
        (area, SynthesisError("Yosys is missing")),
        (faults, OSError("the file system is read-only")),
    ],
)
def test_what_keeps_a_page_from_being_written_is_said_in_a_line(monkeypatch, page, error):
    monkeypatch.setattr(page, "page", raises(error))
    name = page.__name__.rpartition(".")[2]
    done = CliRunner().invoke(main, [name])
    assert (done.exit_code, done.stderr) == (1, f"Error: {name}: {error}\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), ("{", "is not JSON"), ("[]", "is not a record"), ('{"schema": 9}', "has format 9")],
)
def test_a_file_that_is_no_campaign_of_faults_is_refused_in_a_line(monkeypatch, tmp_path, content, message):
    path = tmp_path / "faults.json"
    if content is not None:
        path.write_text(content)
    monkeypatch.setattr(faults, "KEPT", path)
    done = CliRunner().invoke(main, ["faults"])
    assert done.exit_code == 1 and message in done.stderr and done.stderr.count("\n") == 1


def test_a_board_without_a_record_is_named_on_the_page(monkeypatch, tmp_path: Path):
    (board, preset), *others = boards.names()
    record = f"{board}-{preset}.json"
    (tmp_path / record).write_bytes((boards.KEPT / record).read_bytes())
    monkeypatch.setattr(boards, "KEPT", tmp_path)
    (sentence,) = (
        text for text in boards.page().split("\n\n") if text.startswith("**Not built for this hardware yet**")
    )
    assert sentence.count("`") == 2 * len(others) and f"`{others[0][1]}`" in sentence


def test_a_bar_in_a_cell_does_not_end_it():
    text = table(("code", "number:"), [("`a | b`", 1), ("a|b", "2")])
    assert text == "| code | number |\n|---|---:|\n| `a \\| b` | 1 |\n| a\\|b | 2 |\n"
