"""A part's Verilog with its assertions, compiled by Verilator, and driven from Python; failures are counted."""

import ctypes
from pathlib import Path

from t3hdl.assertions import assertions
from t3hdl.config import T3Config
from t3hdl.signatures import word_map
from t3hdl.verilog import PARTS, write_verilog
from t3sim.rtl_wrapper import wrapper
from t3sim.toolchain import find_toolchain

_VERILATOR_FLAGS = (
    "--cc",
    "--assert",
    "--no-timing",
    "--quiet",
    "--prefix",
    "V",
    "--Mdir",
    ".",
    "-Wno-lint",
    "-Wno-SYMRSVDWORD",
)
_COMPILER_FLAGS = (
    "-std=c++17", "-O1", "-fPIC", "-shared", "-DVERILATOR=1", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0",
    "-DVL_TIME_CONTEXT", "-Wl,--gc-sections", "-pthread",
)  # fmt: skip
# A whole clock cycle: the inputs settle, then both edges.
_CLOCK = """\
inline void clock(V& model) {
    model.eval();
    model.rootp->clk = 1;
    model.eval();
    model.rootp->clk = 0;
    model.eval();
}
"""
_FAILURES = """
PART int part_failures() { return context.errorCount(); }
PART void part_go_on() { context.errorLimit(1 << 30); }
"""


def checked_library(config: T3Config, part: str, folder: Path) -> Path:
    """The shared library of a part and its assertions, made in ``folder``."""
    tools, component, name = find_toolchain(), PARTS[part](config), f"t3_{part}"
    (folder / f"{name}.v").write_text(write_verilog(component, name))
    (folder / "assertions.sv").write_text(assertions(config, {name: component}))
    tools.verilate([*_VERILATOR_FLAGS, "--top-module", name, f"{name}.v", "assertions.sv"], folder)
    sources = ["verilated.cpp", "verilated_threads.cpp", *sorted(path.name for path in folder.glob("V*.cpp"))]
    text = wrapper(word_map(component.signature), sources)
    head, _, tail = text.partition("// Without the bookkeeping")
    text = head + _CLOCK + tail.partition("}\n\n")[2] + _FAILURES
    (folder / "part.cpp").write_text(text)
    includes = [f"-I{tools.include}", f"-I{tools.include}/vltstd"]
    tools.compile([*_COMPILER_FLAGS, *includes, "part.cpp", "-o", "part.so"], folder)
    return folder / "part.so"


class CheckedPart:
    """A part with its assertions: ports by name, one clock cycle per step."""

    def __init__(self, config: T3Config, part: str, library: Path) -> None:
        self._words = word_map(PARTS[part](config).signature)
        self._library = ctypes.CDLL(str(library))
        self._library.part_new.restype = ctypes.c_ssize_t
        self._library.part_go_on()
        self._handle = ctypes.c_ssize_t(self._library.part_new())
        self._in = (ctypes.c_uint64 * max(1, self._words.input_words))()
        self._out = (ctypes.c_uint64 * self._words.output_words)()
        self._library.part_reset(self._handle, ctypes.c_ssize_t(0), self._out)

    @property
    def failures(self) -> int:
        """Assertions that have failed, of all instances of the library."""
        return self._library.part_failures()

    def __getitem__(self, name: str) -> int:
        word, bits = self._words.outputs[name]
        value = sum(self._out[word + k] << 64 * k for k in range(-(-bits // 64)))
        return value & (1 << bits) - 1

    def __setitem__(self, name: str, value: int) -> None:
        word, bits = self._words.inputs[name]
        for k in range(-(-bits // 64)):
            self._in[word + k] = value >> 64 * k & (1 << 64) - 1

    def step(self) -> None:
        """One clock cycle."""
        self._library.part_step(self._handle, self._in, self._out)

    def free(self) -> None:
        """Forget the instance."""
        self._library.part_free(self._handle)
