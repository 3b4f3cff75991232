"""``t3 explain`` on the command line."""

import json
from pathlib import Path

from click.testing import CliRunner
from t3sim.cli import main as cli
from t3sim.run.result import write_result

from tests.support.crafted_records import crafted


def t3(*arguments: object):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def test_sentences_stand_under_their_policy(tmp_path: Path):
    write_result(crafted(), tmp_path / "result.json")
    lines = t3("explain", tmp_path).stdout.splitlines()
    assert lines[0] == "t3-mca:"
    assert len(lines) > 3 and all(line.startswith("- ") and line.endswith(".") for line in lines[1:])


def test_json_has_the_same_sentences_with_their_figures(tmp_path: Path):
    write_result(crafted(), tmp_path / "result.json")
    found = json.loads(t3("explain", tmp_path, "--json").stdout)
    said = t3("explain", tmp_path).stdout
    for item in found["runs"]["t3-mca"]:
        assert f"- {item['text']}" in said and item["figures"]


def test_a_folder_without_a_run_is_one_message(tmp_path: Path):
    for folder in (tmp_path, tmp_path / "missing"):
        result = t3("explain", folder)
        assert result.exit_code == 2 and result.stdout == ""
        assert "t3 compare" in result.stderr and result.stderr.count("Error:") == 1
