"""What users type and name, as messages repeat it."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from t3sim.cli import main as cli
from t3sim.common.user_input import LONGEST, one_line


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("file m.toml is not TOML", "file m.toml is not TOML"),
        ("file 🦀é.toml", "file 🦀é.toml"),
        ("file a\nb.toml", r"file a\nb.toml"),
        ("\x1b[31mred\x07\x00", r"\x1b[31mred\x07\x00"),
        ("right\u202eleft \udcff", r"right\u202eleft \udcff"),
    ],
)
def test_a_message_has_no_control_characters(message, shown):
    assert one_line(message) == shown


def test_a_message_is_not_as_long_as_what_a_user_types():
    assert len(one_line(f"not {'x' * 5000} but {'y' * 5000}")) < 3 * LONGEST
    assert one_line("x" * 300) == "x" * 300, "a path may be long"


@pytest.mark.parametrize("name", ["a\nb.toml", "\x1b[31m.toml", "x" * 5000])
def test_names_of_files_stay_in_their_line(tmp_path: Path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    if len(name) < 255:
        (tmp_path / name).write_text("nonsense")
    result = CliRunner().invoke(cli.main, ["run", "--machine", name])
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: machine ")
    assert result.stderr.removesuffix("\n").isprintable()
    assert len(result.stderr) < 500
