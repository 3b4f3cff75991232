"""The project's surface: what the README promises exists, and the hardware stands alone."""

import ast
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from click.testing import CliRunner
from t3sim import __version__
from t3sim.cli import main as cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_says_near_its_top_what_make_does():
    head = "\n".join(README.splitlines()[:15])
    assert "make demo " in head
    assert "make run " in head
    assert "make test " in head


def test_paths_in_the_readme_exist():
    linked = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    named = [path for path in re.findall(r"`((?:hdl|sim|docs)/[^`]+)`", README)]
    for path in linked + named:
        assert (ROOT / path).exists(), path


def test_commands_in_the_readme_have_their_options():
    commands = re.findall(r"^t3 (\w+)(.*)$", README, re.MULTILINE)
    assert len(commands) >= 5
    for command, rest in commands:
        usage = CliRunner().invoke(cli.main, [command, "--help"]).stdout
        for option in re.findall(r"--[a-z-]+", rest):
            assert option in usage, f"t3 {command} {option}"


def test_the_page_of_commands_has_every_command():
    page = (ROOT / "docs/guides/commands.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `t3 ([a-z]+)", page, re.MULTILINE))
    assert named == set(cli.main.commands)


def test_the_citation_and_the_changelog_have_this_version():
    released = re.search(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert released is not None and released[1] == __version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation and f'date-released: "{released[2]}"' in citation


def test_the_changelog_has_its_form():
    """That of Keep a Changelog 1.1: the newest first, each with its kinds of change, and every heading's own."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\w*\] - \d{4}-\d\d-\d\d", version) for version in versions[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for section in text.split("\n## ")[1:]:
        found = re.findall(r"^### (.+)$", section, re.MULTILINE)
        assert found and set(found) <= kinds and len(set(found)) == len(found), section.splitlines()[0]


def test_the_address_of_the_repository_is_everywhere_or_nowhere():
    citation = re.search(r'^repository-code: "(.+)"$', (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    linked = dict(re.findall(r"^\[(.+?)\]: (https?:\S+?)/(?:compare|releases)/\S+$", changelog, re.MULTILINE))
    headings = re.findall(r"^## \[(.+?)\]", changelog, re.MULTILINE)
    address = citation[1] if citation else None
    assert urls.get("Repository") == address
    assert linked == (dict.fromkeys(headings, address) if address else {})


def test_readme_says_how_to_get_t3_before_it_uses_it():
    first = re.search(r"^t3 ", README, re.MULTILINE)
    assert first is not None
    for step in ("python3 -m venv ", "pip install .", "/bin/activate"):
        assert README.index(step) < first.start(), step


def test_what_the_commands_of_the_readme_write_is_not_for_git():
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    folders = set(re.findall(r"--out ([a-z]+)", README))
    assert folders == {"rtl", "out"}
    assert {f"/{folder}/" for folder in folders} <= set(ignored)
    machines = set(re.findall(r"^t3 machine new (\w+)", README, re.MULTILINE))
    assert machines and {f"/{name}.toml" for name in machines} <= set(ignored)


def test_the_hardware_does_not_know_the_simulator():
    for path in sorted((ROOT / "hdl").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "t3sim" for name in names), path


def test_every_dependency_has_its_reason():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    wanted = project["dependencies"] + [*chain(*project["optional-dependencies"].values())]
    for requirement in wanted:
        line = next(line for line in text.splitlines() if f'"{requirement}"' in line)
        assert re.search(r"# .{5,}", line), f"{requirement} has no reason beside it"


def test_every_import_is_a_declared_dependency():
    text = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[\[<>=~]", item)[0] for item in text["dependencies"]}
    # Numba's own back end; what systemrdl-compiler and pyvcd are imported as; what distributed is part of
    others = {"dask", "llvmlite", "systemrdl", "vcd"}
    allowed = set(sys.stdlib_module_names) | declared | {"t3hdl", "t3formal", "t3fpga", "t3sim", "opent3"} | others
    for path in sorted([*(ROOT / "hdl").rglob("*.py"), *(ROOT / "sim").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            for name in names:
                assert name.split(".")[0] in allowed, f"{path} imports {name}"


@pytest.mark.parametrize(
    ("python", "message"),
    [("", "needs Python 3.11 or newer"), ("false", "needs Python 3.11 or newer")],
)
def test_make_names_a_missing_prerequisite(python, message):
    done = subprocess.run(
        ["make", "prerequisites", f"PYTHON={python}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert message in done.stderr


def test_make_names_a_missing_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    done = subprocess.run(["make", "prerequisites"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "needs a C++ compiler" in done.stderr
