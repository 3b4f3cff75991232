"""``t3 machine``: the list, a machine's values, and a new file that loads as it is."""

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from opent3 import machines
from t3sim.cli import main as cli
from t3sim.inputs.machine.describe import machine_template, settings
from t3sim.inputs.machine.files import load_machine, preset_names
from t3sim.inputs.machine.machine import SECTIONS, unit_of


def t3(*arguments: str):
    return CliRunner().invoke(cli.main, ["machine", *arguments])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_has_every_preset():
    result = t3("list")
    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: line.split() for line in result.stdout.splitlines() if line.strip()}
    assert set(preset_names()) <= rows.keys()
    assert rows["h100-like"][1:] == ["132", "1830", "989.4", "50", "3350", "450", "unvalidated"]
    assert rows["paper"][1:] == ["80", "1400", "114.7", "16", "1024", "150", "T3", "paper"]


@pytest.mark.parametrize("name", preset_names())
def test_a_machine_is_shown_as_a_file_that_reads_back(folder: Path, name: str):
    result = t3("show", name)
    assert result.exit_code == 0, result.output
    (folder / f"{name}.toml").write_text(result.stdout, encoding="utf-8")
    assert load_machine(folder / f"{name}.toml") == load_machine(name)
    assert ("unvalidated machine" in result.stdout) == name.endswith("-like")


def test_a_machine_is_shown_with_its_settings(folder: Path):
    (folder / "mine.toml").write_text('base = "toy"\n[link]\ngb_s = 7\n')
    result = t3("show", "mine.toml", "--set", "link.latency_ns=77")
    assert 'gb_s = { value = 7.0, unit = "GB/s", source = "machine file mine.toml" }' in result.stdout
    assert 'latency_ns = { value = 77, unit = "ns", source = "set for this run" }' in result.stdout


@pytest.mark.parametrize("base", preset_names())
def test_a_new_file_is_its_base_until_it_is_changed(folder: Path, base: str):
    result = t3("new", "mine", "--base", base)
    assert result.exit_code == 0, result.output
    assert "written to mine.toml" in result.stdout
    assert load_machine("mine.toml") == load_machine(base).model_copy(update={"name": "mine"})
    assert [path.name for path in folder.iterdir()] == ["mine.toml"]


def test_every_line_of_a_new_file_can_be_uncommented(folder: Path):
    """The keys that are comments are those of the base, with its values."""
    text = machine_template("h100-like")
    assert max(map(len, text.splitlines())) <= 120
    values = settings(load_machine("h100-like"))
    for name, value in values.items():
        line = f"# {name.partition('.')[2]} = {json.dumps(value)}"
        assert text.count(f"{line}\n") >= 1, line
        text = text.replace(f"{line}\n", f"{line.removeprefix('# ')}\n", 1)
    (folder / "all.toml").write_text(text, encoding="utf-8")
    found = load_machine("all.toml")
    assert settings(found) == values
    assert {source for source in found.sources.values()} == {"machine file all.toml"}


def test_a_new_file_has_unit_range_meaning_and_source_of_every_key():
    text = " ".join(line.removeprefix("#").strip() for line in machine_template("paper").splitlines())
    for section, model in SECTIONS.items():
        assert section in tomllib.loads(machine_template("paper"))
        for key, field in model.model_fields.items():
            assert f"{key}: {field.description}".replace("`", "") in text
            if unit := unit_of(section, key):
                assert f"unit: {unit}" in text
    assert "unit: CUs. range: 1 to 1,024. Base: [P] simulated GPU cus = 80" in text
    assert "range: free, stage. Base: [A] a GPU dispatches" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("new", "mine", "--base", "papre"), "--base must be one of a100-like, "),
        (("new", ""), "NAME must be the name of a new file"),
        (("new", "sub/.toml"), "NAME must be the name of a new file"),
        (("new", "a\nb"), "NAME must be the name of a new file"),
        (("new", "paper"), "NAME must not be that of a preset, 'paper'"),
        (("new", "sub/toy.toml"), "NAME must not be that of a preset, 'toy'"),
        (("new", "none/mine"), "that can be written, not none/mine.toml: No such file or directory"),
        (("new", "x" * 300), "File name too long"),
        (("show", "papr"), "machine must be one of a100-like"),
        (("show", "toy", "--set", "gpu.cu=3"), "unknown key gpu.cu; did you mean 'cus'?"),
    ],
)
def test_errors_are_one_message_and_nothing_is_written(folder: Path, arguments, message):
    result = t3(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "folder", "link to nothing"])
def test_what_exists_is_left_as_it_is(folder: Path, kind: str):
    path = folder / "mine.toml"
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(folder / "nothing")
    for name in ("mine", "mine.toml"):
        result = t3("new", name)
        assert result.exit_code == 2
        assert "mine.toml exists, and is left as it is: choose another name" in result.stderr
    assert not (folder / "nothing").exists()
    assert kind != "file" or path.read_text() == "mine"


def test_a_file_that_cannot_be_written_whole_is_not_left(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machines, "machine_template", lambda base: "base = 1\n" * 10_000 + "\udcff")
    assert t3("new", "mine").exit_code == 2
    assert list(folder.iterdir()) == []


def test_a_preset_that_is_misspelt_is_guessed():
    result = t3("show", "h100-lik")
    assert result.exit_code == 2 and "did you mean 'h100-like'?" in result.stderr
