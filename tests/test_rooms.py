"""The packages of the simulator depend on each other in one direction, and none has more files than a head holds."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import t3sim

ROOT = Path(t3sim.__file__).parent
ORDER = (
    "common", "dram", "hardware", "inputs", "collective", "engine", "run", "validation", "study", "faults", "cli",
    "pages",
)  # fmt: skip
"""Each may import those before it."""
MOST_FILES = 20
"""More than that is a hallway, and needs rooms."""


def imported(path: Path) -> Iterator[str]:
    """Modules that a file imports, absolute, as deep as they are named."""
    package = path.relative_to(ROOT.parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_every_package_has_its_place():
    assert sorted(path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()) == sorted(ORDER)
    assert sorted(path.name for path in ROOT.glob("*.py")) == ["__init__.py", "__main__.py"]


@pytest.mark.parametrize("room", ORDER)
def test_a_package_imports_only_those_before_it(room):
    later = ORDER[ORDER.index(room) + 1 :]
    found = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (ROOT / room).rglob("*.py")
        for name in imported(path)
        if name.split(".")[0] == "t3sim" and name.split(".")[1] in later
    ]
    assert found == []


def test_the_hardware_knows_nothing_of_the_simulator():
    hdl = ROOT.parents[1] / "hdl"
    assert [path for path in hdl.rglob("*.py") if "t3sim" in path.read_text("utf-8")] == []
    tools = [path for path in (hdl / "t3hdl").rglob("*.py") if re.search("t3formal|t3fpga", path.read_text("utf-8"))]
    assert tools == []


def test_no_folder_is_a_hallway():
    counts = {path: len(list(path.glob("*.py"))) for path in ROOT.rglob("*") if (path / "__init__.py").exists()}
    assert max(counts.values()) <= MOST_FILES, max(counts, key=counts.__getitem__)


def test_every_package_is_one():
    """A folder without ``__init__.py`` works until somebody looks for its modules, or builds a wheel."""
    hdl = ROOT.parents[1] / "hdl"
    folders = {path.parent for package in (ROOT, *hdl.glob("t3*")) for path in package.rglob("*.py")}
    assert len(folders) > 25
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []
