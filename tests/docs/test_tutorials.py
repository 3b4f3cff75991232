"""The tutorials run as they are printed, and print today what is printed in them."""

import re
import shutil
from pathlib import Path

import pytest

from docs.pages.played.tutorials import PLAYED, TUTORIALS, CommandFailedError, commands, played

TOOLS = {"iverilog": "apt-get install iverilog"}


@pytest.mark.long
@pytest.mark.parametrize("path", PLAYED, ids=lambda path: path.stem)
def test_a_tutorial_prints_what_it_shows(path: Path, tmp_path: Path):
    text = path.read_text()
    for tool, remedy in TOOLS.items():
        if any(command.startswith(tool) for command in commands(text)) and not shutil.which(tool):
            pytest.skip(f"{tool} is missing: {remedy}")
    assert played(text, tmp_path) == text, f"after a change: python -m docs.pages.played.tutorials {path.stem}"


def test_there_is_one_for_each_reader():
    assert {path.stem for path in TUTORIALS} == {"rtl-engineer", "architect", "reader"}
    assert all(len(commands(path.read_text())) >= 4 for path in TUTORIALS)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_cycles_and_times_of_the_text_are_among_those_printed(path: Path):
    fences = r"^```.*?^```$"
    prose = re.sub(fences, "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    printed = re.findall(r"[\d.]+", " ".join(re.findall(fences, path.read_text(), re.MULTILINE | re.DOTALL)))
    said = re.findall(r"cycle\s+(\d+)", prose) + re.findall(r"([\d.]+)\s+us\b", prose)
    assert set(said) <= set(printed)


def test_files_are_saved_and_outputs_written_anew(tmp_path: Path):
    text = '```text title="a/b.txt"\nsaved\n```\n\n```console\n$ cat a/b.txt\nold\n$ echo x >&2\n```\n'
    assert played(text, tmp_path) == text.replace("old", "saved")


def test_a_command_that_fails_is_named(tmp_path: Path):
    with pytest.raises(CommandFailedError, match=r"false \| cat: exit code 1"):
        played("```console\n$ false | cat\n```\n", tmp_path)
