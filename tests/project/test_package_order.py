"""Packages depend on each other in one direction, and none has more files than a head holds."""

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import opent3
import pytest
import t3sim
from t3sim.cli import main as cli

ROOT = Path(t3sim.__file__).parent
REPOSITORY = Path(__file__).parents[2]
ORDER = (
    "common", "hardware", "inputs", "dram", "collective", "engine", "run", "trace", "waves", "explain", "validation",
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


EXCEPTIONS = {
    "t3sim.hardware.rtl.toolchain.find_toolchain": "doctor.py",  # looks for tools as the backend does, and runs none
}
"""What the command line imports of the simulator itself -> the one file that may."""
HARDWARE_COMMANDS = {"verilog.py", "prove.py", "proof_tables.py", "fpga.py", "validate.py"}
"""What may import the hardware, its proofs and boards: commands on files of the hardware, which simulate nothing."""


def test_the_command_line_uses_only_the_python_api():
    imports = [(path.name, name) for path in (ROOT / "cli").rglob("*.py") for name in imported(path)]
    inside = {(name, file) for file, name in imports if name.startswith("t3sim.")}
    assert len(inside) > 50
    assert {both for both in inside if both[0].split(".")[1] not in ("common", "cli")} == set(EXCEPTIONS.items())
    hardware = {file for file, name in imports if re.match(r"t3(hdl|formal|fpga)\b", name)}
    assert hardware == HARDWARE_COMMANDS


FUNCTIONS = {
    "run": "run", "compare": "compare", "model": "model", "sweep": "sweep", "map": "arbitration_map",
    "reproduce": "reproduce", "report": "report", "explain": "explain", "waves": "waves", "faults": "faults",
    "bench": "bench", "machine list": "machine_frame", "machine show": "load_machine", "machine new": "new_machine",
    "validate hbm": "validate_hbm", "validate alu": "validate_alu", "validate gpu": "validate_gpu",
    "validate tracker": "validate_tracker",
}  # fmt: skip
"""Command -> what does the same in the Python API."""
OF_THE_PROGRAM = {"demo", "doctor", "completion", "verilog", "prove", "fpga"}
"""Commands about the program itself, or on files of the hardware."""


def test_every_command_that_simulates_is_a_function_with_types_and_words():
    commands = {
        f"{name} {inner}".strip()
        for name, command in cli.main.commands.items()
        for inner in (command.commands if isinstance(command, click.Group) else [""])
    }
    assert commands == FUNCTIONS.keys() | OF_THE_PROGRAM
    for name in FUNCTIONS.values():
        function = getattr(opent3, name)
        signature = inspect.signature(function)
        assert name in opent3.__all__ and len(inspect.getdoc(function) or "") > 40, name
        assert signature.return_annotation is not inspect.Signature.empty, name
        assert all(item.annotation is not item.empty for item in signature.parameters.values()), name


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
