"""The emitted Verilog: complete, deterministic, free of ``always @*``, and accepted by Verilator's linter."""

import re
from pathlib import Path

import pytest
from t3hdl.config import preset
from t3hdl.emit import TOPS, emit_verilog
from t3sim.toolchain import BuildError, find_toolchain

SMALL = preset("small")


@pytest.fixture(scope="module")
def emitted():
    return {top: emit_verilog(SMALL, top) for top in TOPS}


@pytest.mark.parametrize("top", TOPS)
def test_emitted_verilog_is_whole_and_plain(emitted, top):
    text = emitted[top]
    modules = re.findall(r"^module (\S+?)\s*\(", text, re.MULTILINE)
    assert top in modules
    assert len(modules) == len(set(modules)) == text.count("endmodule")
    assert "always @*" not in text
    assert "always_" not in text
    assert text.startswith(f"// OpenT3, {top}: slices=4,")
    assert "/hdl/" not in text, "no paths of the computer that emitted it"


@pytest.mark.parametrize("top", TOPS)
def test_emitted_verilog_passes_verilators_lint(emitted, top, tmp_path: Path):
    source = tmp_path / f"{top}.v"
    source.write_text(emitted[top])
    find_toolchain().verilate(["--lint-only", "-Wno-fatal", "--top-module", top, source.name], tmp_path)
    source.write_text(emitted[top].replace("endmodule", "", 1))
    with pytest.raises(BuildError, match="failed with status"):
        find_toolchain().verilate(["--lint-only", "-Wno-fatal", "--top-module", top, source.name], tmp_path)


def test_emitted_verilog_is_deterministic(emitted):
    assert emit_verilog(SMALL, "nmc_unit") == emitted["nmc_unit"]


def test_unknown_tops_are_refused():
    with pytest.raises(ValueError, match="top must be one of t3_unit, nmc_unit, not 'tracker'"):
        emit_verilog(SMALL, "tracker")
