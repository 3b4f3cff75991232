"""Machine files unlike the presets: long chains, deep nesting, odd bytes, devices; every text survives a round trip."""

import os
from pathlib import Path

import pytest
from t3sim.inputs.machine.files import MAX_BASES, MAX_BYTES, load_machine
from t3sim.inputs.machine.settings import parse_setting

TEXTS = [
    "plain", 'quotes " and \\ backslash', "\N{PILE OF POO} \N{ZERO WIDTH JOINER}", "tab\tline\nfeed\rreturn",
    "\x00\x01\x1f\x7f\x80\x9f", "\N{LINE SEPARATOR}\N{NEXT LINE}", "[red]bold[/red] :warning:", "'''\"\"\"", "",
]  # fmt: skip


def chain(folder: Path, length: int) -> Path:
    """A file on ``length`` bases, the last of which is a preset."""
    for index in range(length):
        base = "toy" if index == 0 else f"m{index - 1}.toml"
        (folder / f"m{index}.toml").write_text(f"base = '{base}'\n[link]\nlatency_ns = {100 + index}\n")
    return folder / f"m{length - 1}.toml"


def test_a_chain_of_bases_has_an_end(tmp_path: Path):
    longest = MAX_BASES - 2  # toy has a base, too
    assert load_machine(chain(tmp_path, longest)).link.latency_ns == 100 + longest - 1
    for length in (longest + 1, 1500):
        with pytest.raises(
            ValueError, match=rf"m{length - 1}\.toml has a chain of more than {MAX_BASES - 1} base files"
        ):
            load_machine(chain(tmp_path, length))


def test_a_circle_of_bases_is_shown(tmp_path: Path):
    for name, base in (("a", "b"), ("b", "c"), ("c", "a")):
        (tmp_path / f"{name}.toml").write_text(f"base = '{base}.toml'\n")
    with pytest.raises(ValueError, match=r"is its own base: .*a\.toml -> .*b\.toml -> .*c\.toml -> .*a\.toml$"):
        load_machine(tmp_path / "a.toml")


def test_a_base_that_is_missing_is_named_with_its_file(tmp_path: Path):
    (tmp_path / "mine.toml").write_text("base = 'none.toml'\n")
    with pytest.raises(
        ValueError, match=r"^machine file .*/mine\.toml: base must be one of .*, not 'none\.toml' \(No such"
    ):
        load_machine(tmp_path / "mine.toml")


@pytest.mark.parametrize("opened", ["[", "{a = "])
def test_deep_nesting_is_refused(tmp_path: Path, opened: str):
    (tmp_path / "deep.toml").write_text(f"base = 'toy'\n[gpu]\ntiles = {opened * 2000}")
    with pytest.raises(ValueError, match=r"deep\.toml (nests lists or tables too deeply|is not TOML)"):
        load_machine(tmp_path / "deep.toml")


def test_a_deep_setting_is_refused():
    with pytest.raises(ValueError, match="must not nest lists so deeply"):
        parse_setting(f"gpu.tiles={'[' * 2000}{']' * 2000}")


def test_a_number_of_thousands_of_digits_is_refused_where_it_stands(tmp_path: Path):
    number = "9" * 5000
    with pytest.raises(ValueError, match=r"^a setting must have numbers of at most 4300 digits: 'gpu\.cus=999"):
        parse_setting(f"gpu.cus={number}")
    (tmp_path / "huge.toml").write_text(f"base = 'toy'\n[gpu]\ncus = {number}")
    with pytest.raises(ValueError, match=r"machine file .*huge\.toml has a number of more than 4300 digits"):
        load_machine(tmp_path / "huge.toml")


def test_a_byte_order_mark_is_no_statement(tmp_path: Path):
    (tmp_path / "bom.toml").write_bytes(b"\xef\xbb\xbfbase = 'toy'\n[link]\nlatency_ns = 77\n")
    assert load_machine(tmp_path / "bom.toml").link.latency_ns == 77


@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "huge"])
def test_only_regular_files_of_some_size_are_read(tmp_path: Path, kind: str):
    path = tmp_path / "machine.toml"
    if kind == "device":
        path = Path("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_text("#" * (MAX_BYTES + 1))
    reason = {"folder": "Is a directory", "huge": f"larger than {MAX_BYTES} bytes"}.get(kind, "not a regular file")
    with pytest.raises(ValueError, match=rf"or a readable TOML file, not '{path}' \({reason}\)$"):
        load_machine(path)


@pytest.mark.parametrize("text", TEXTS)
def test_a_source_of_any_text_comes_back(tmp_path: Path, text: str):
    """config.toml repeats a run whatever characters a source has."""
    escaped = "".join(f"\\U{ord(letter):08X}" for letter in text)
    (tmp_path / "mine.toml").write_text(f'base = "toy"\n[link]\ngb_s = {{ value = 5, source = "{escaped}" }}\n')
    machine = load_machine(tmp_path / "mine.toml")
    assert machine.sources["link.gb_s"] == text
    (tmp_path / "config.toml").write_text(machine.to_toml(), encoding="utf-8", newline="")
    again = load_machine(tmp_path / "config.toml")
    assert again.sources == machine.sources
    assert again.model_copy(update={"name": machine.name}) == machine
