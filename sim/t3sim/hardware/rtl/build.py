"""From a part's Verilog to a shared library: Verilator, then one C++ file, kept in the cache folder."""

import logging
from pathlib import Path

from t3hdl.interface.words import WordMap

from t3sim.common.cache import cached, digest

from .gated_clocks import Gating
from .toolchain import Toolchain, find_toolchain
from .wrapper import simulated_copy, wrapper

_log = logging.getLogger(__name__)

_VERILATOR_FLAGS = (
    "--cc", "-O3", "--x-assign", "fast", "--x-initial", "0", "--noassert", "--no-timing", "--threads", "1",
    "-Wno-fatal", "-Wno-lint", "--quiet", "--prefix", "V", "--Mdir", ".",
)  # fmt: skip
# No -march: one machine code for all machines of an architecture.
_COMPILER_FLAGS = (
    "-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections", "-faligned-new",
    "-DVERILATOR=1", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVL_TIME_CONTEXT",
)  # fmt: skip
# Whole memories, and signals of any width that a part has; Verilator leaves out what has no name in the source.
_TRACE_FLAGS = ("--trace-vcd", "--trace-max-array", "65536", "--trace-max-width", "4096")
_LINKER_FLAGS = ("-shared", "-Wl,--gc-sections", "-pthread")
# Verilator's runtime: what a design without threads and files needs of it.
_RUNTIME = '#include "verilated.cpp"\n#include "verilated_threads.cpp"\n'
_TRACED_RUNTIME = f'{_RUNTIME}#include "verilated_vcd_c.cpp"\n'

_RUNTIME_LEVEL = "-O1"
"""A step calls nothing of the runtime: it serves what makes and frees instances, and what writes traces."""


NOT_GATED = Gating()


def library(
    name: str,
    verilog: str,
    words: WordMap,
    select: str = "",
    optimise: int = 3,
    traced: bool = False,
    gating: Gating = NOT_GATED,
) -> Path:
    """The shared library of the part ``name`` (also its top module), compiled now or before.

    ``select``, ``traced`` and ``gating`` as in :func:`~.wrapper.wrapper`. ``optimise``: the compiler's -O; a design
    that is run for seconds alone, or whose code is large, takes less time in all with 1.
    Raises BuildError if a tool is missing or fails, if the disk is full, or if the cache folder cannot be used.
    """
    tools = find_toolchain()

    def build(folder: Path) -> Path:
        _log.info("compiling %s", name)
        runtime = _runtime(tools, traced)
        (folder / f"{name}.v").write_text(simulated_copy(verilog, name, gating))
        tools.verilate([*_verilator_flags(traced), "--top-module", name, f"{name}.v"], folder)
        sources = sorted(path.name for path in folder.glob("*.cpp"))
        (folder / "part.cpp").write_text(wrapper(words, sources, gating, select, traced))
        flags = [*_flags(tools, traced), *_LINKER_FLAGS, f"-O{optimise}"]
        tools.compile([*flags, "part.cpp", str(runtime), "-o", "part.so"], folder)
        return folder / "part.so"

    return cached(library_file(name, verilog, words, select, optimise, traced, gating), build)


def library_file(
    name: str, verilog: str, words: WordMap, select: str, optimise: int, traced: bool, gating: Gating
) -> str:
    """What :func:`library` is called in the cache folder. Raises BuildError if a tool is missing."""
    # The word map stands for the wrapper's text, which also holds names that only Verilator's run reveals.
    flags = (*_verilator_flags(traced), *_build_texts(find_toolchain()), *_LINKER_FLAGS, f"-O{optimise}")
    return (
        f"{name}-{digest(simulated_copy(verilog, name, gating), wrapper(words, (), gating, select, traced), *flags)}.so"
    )


def _runtime(tools: Toolchain, traced: bool) -> Path:
    """Verilator's runtime as an object file."""
    text = _TRACED_RUNTIME if traced else _RUNTIME

    def build(folder: Path) -> Path:
        _log.info("compiling Verilator's runtime")
        (folder / "runtime.cpp").write_text(text)
        tools.compile([*_flags(tools, traced), _RUNTIME_LEVEL, "-c", "runtime.cpp", "-o", "runtime.o"], folder)
        return folder / "runtime.o"

    return cached(f"runtime-{digest(text, *_build_texts(tools), _RUNTIME_LEVEL)}.o", build)


def _verilator_flags(traced: bool) -> tuple[str, ...]:
    return (*_VERILATOR_FLAGS, *(_TRACE_FLAGS if traced else ()))


def _flags(tools: Toolchain, traced: bool) -> list[str]:
    trace = int(traced)
    defined = (f"-DVM_TRACE={trace}", f"-DVM_TRACE_VCD={trace}")
    return [*_COMPILER_FLAGS, *defined, f"-I{tools.include}", f"-I{tools.include}/vltstd"]


def _build_texts(tools: Toolchain) -> tuple[str, ...]:
    """What compiled code depends on besides its source, and whether it is traced."""
    return (tools.verilator_version, tools.compiler_version, *_COMPILER_FLAGS)
