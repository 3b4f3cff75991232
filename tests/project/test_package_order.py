"""Packages depend on each other in one direction, and none has more files than a head holds."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import t3sim

ROOT = Path(t3sim.__file__).parent
REPOSITORY = Path(__file__).parents[2]
ORDER = (
    "common", "dram", "hardware", "inputs", "collective", "engine", "run", "trace", "waves", "explain", "validation",
    "study", "faults", "report", "cli",
)  # fmt: skip
"""Each may import those before it."""
MAX_FILES = 20
"""More than that is a hallway, and needs rooms."""
SOURCES = ("hdl", "sim", "tb", "tests", "docs")


def imported(path: Path) -> Iterator[str]:
    """Modules that a file imports, absolute, as deep as they are named."""
    package = path.relative_to(ROOT.parent if path.is_relative_to(ROOT.parent) else REPOSITORY).parts[:-1]
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
        if name.startswith("t3sim.") and name.split(".")[1] in later
    ]
    assert found == []


def test_the_python_api_knows_nothing_of_the_command_line():
    api = REPOSITORY / "sim" / "opent3"
    files = list(api.glob("*.py"))
    found = [name for path in files for name in imported(path) if name.startswith("t3sim.cli")]
    assert files and found == []


GENERATORS = {"hardware/rtl", "validation", "faults", "cli"}
"""What generates hardware; all other packages of the simulator know of it only what the parts agree on."""


def test_models_import_configuration_and_interface_of_the_hardware_alone():
    found = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in ROOT.rglob("*.py")
        if not any(path.is_relative_to(ROOT / room) for room in GENERATORS)
        for name in imported(path)
        if name.startswith("t3hdl.") and name.split(".")[1] not in ("config", "interface", "__path__")
    ]
    assert found == []


def test_the_hardware_knows_nothing_of_the_simulator():
    hdl = ROOT.parents[1] / "hdl"
    assert [path for path in hdl.rglob("*.py") if "t3sim" in path.read_text("utf-8")] == []
    tools = [path for path in (hdl / "t3hdl").rglob("*.py") if re.search("t3formal|t3fpga", path.read_text("utf-8"))]
    assert tools == []


def test_what_installs_knows_nothing_of_the_repository_and_testbenches_nothing_of_tests():
    outside = {"hdl": {"tb", "tests", "docs"}, "sim": {"tb", "tests", "docs"}, "tb": {"tests", "docs"}}
    found = [
        f"{path.relative_to(REPOSITORY)} imports {name}"
        for root, foreign in outside.items()
        for path in (REPOSITORY / root).rglob("*.py")
        for name in imported(path)
        if name.split(".")[0] in foreign
    ]
    assert found == []


def test_no_folder_is_a_hallway():
    folders = Counter(path.parent for root in SOURCES for path in (REPOSITORY / root).rglob("*.py"))
    assert len(folders) > 70
    assert [(str(folder), count) for folder, count in folders.items() if count > MAX_FILES] == []


def test_every_package_is_one():
    """A folder without ``__init__.py`` works until somebody looks for its modules, or builds a wheel."""
    hdl = ROOT.parents[1] / "hdl"
    roots = (ROOT, *hdl.glob("t3*"), *(REPOSITORY / root for root in ("tb", "tests", "docs")))
    folders = {path.parent for root in roots for path in root.rglob("*.py")}
    assert len(folders) > 70
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []
