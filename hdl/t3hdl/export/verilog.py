"""The hardware as Verilog: one file per part and for the whole unit, a file list, and a description for programs."""

import gc
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from amaranth._toolchain.yosys import YosysError, find_yosys  # the public front end lacks proc's multiplexer pass
from amaranth.back import rtlil
from amaranth.lib.wiring import Component

from ..common.synthesis_attributes import SYNCHRONISER
from ..config import T3Config
from ..interface.parts import TABLE
from .module_sharing import share_modules
from .products import products
from .register_attributes import put_back, taken_out

PARTS: dict[str, Callable[[T3Config], Component]] = {name: part.make for name, part in TABLE.items()}
"""How to make each part of the :data:`~t3hdl.interface.parts.TABLE`; the module of part ``x`` is called ``t3_x``."""

MAX_PREFIX = 64
"""Characters before the name of a module: with it, names stay short enough for files and tools."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# Multiplexers instead of processes: Icarus 11 leaves some `always @*` blocks unevaluated at time zero. No initial
# values: reset and the walkers write everything that is read. Nothing is optimised, so names survive.
_WITHOUT_CONTENT = "delete */t:$meminit_v2"
_OUTPUT_REGISTER = re.compile(
    r"(?<=parameter .INIT_VALUE )(\d+)'x+(?=\n(?: +parameter .*\n)*? +parameter .CLK_ENABLE 1)"
)
"""The initial value of a memory's output register."""
_SCRIPT = r"""
proc -noopt
memory_collect
opt_clean -purge
write_verilog -noattr
"""

_WAIVERS = {
    "CASEOVERLAP": "the conditions of a case are the bits of a one-hot selector",
    "CMPCONST": "a bound may be the largest number of its width",
    "DECLFILENAME": "a file holds a part and the modules that the part is made of",
    "SYMRSVDWORD": "a port is called interrupt",
    "UNUSEDSIGNAL": "words have one width in every configuration, of which a part may need some fields only",
    "WIDTHEXPAND": "operands are unsigned, constants are written without leading zeros",
    "WIDTHTRUNC": "the low bits of a shifted word are the ones that are selected",
}
"""Lint warnings that the way in which Yosys writes Verilog brings about, and why each is harmless."""


STEPS = (
    "Amaranth elaborates it (most of the time; a minute or more with 64 slices)",
    "identical modules are shared",
    "Yosys writes the Verilog",
)
"""What is done for each module, in order."""


class VerilogError(Exception):
    """Yosys, which writes the Verilog, is missing or fails; the message says what to do."""


def write_verilog(
    component: Component, name: str, *, init_memories: bool = False, show: Callable[[str], None] = lambda step: None
) -> str:
    """The Verilog of ``component`` as module ``name``, with the modules that it is made of.

    With ``init_memories`` memories begin with what they hold, zeros where nothing is said, and their output registers
    with zeros; else all of them with nothing, as the hardware writes them before it uses what it reads.

    The same component gives the same bytes everywhere, for one version of Amaranth and its Yosys. Identical parts
    share one module. Ports are called by their path, joined by two underscores, beside ``clk`` and ``rst``. ``show`` is
    called with each of the :data:`STEPS` when it begins.

    Raises ValueError if ``name`` is not a Verilog identifier; VerilogError if Yosys is missing or fails.
    """
    if not _IDENTIFIER.fullmatch(name):
        raise ValueError(f"a module name must be letters, digits and underscores, not {name!r}: choose another name")
    elaborate, share, write = STEPS
    show(f"{name}: {elaborate}")
    with _uncollected():
        netlist = rtlil.convert(component, name=name, emit_src=False)
    show(f"{name}: {share}")
    netlist, attributes = taken_out(share_modules(netlist, SYNCHRONISER))
    show(f"{name}: {write}")
    if init_memories:
        netlist = _OUTPUT_REGISTER.sub(lambda value: f"{value[1]}'{'0' * int(value[1])}", netlist)
    script = f"read_rtlil <<rtlil\n{netlist}\nrtlil\n{'' if init_memories else _WITHOUT_CONTENT}{_SCRIPT}"
    waivers = "".join(f"/* verilator lint_off {rule} */  // {reason}\n" for rule, reason in _WAIVERS.items())
    try:
        yosys = find_yosys(lambda found: found >= (0, 40))
        return waivers + put_back(yosys.run(["-q", "-"], script, ignore_warnings=True), attributes)
    except YosysError as error:
        raise VerilogError(
            f"Yosys cannot write the Verilog ({error}): pip install 'amaranth[builtin-yosys]'"
        ) from error


def check_prefix(prefix: str) -> None:
    """Raises ValueError if ``prefix`` before the names of modules would not make plain Verilog names."""
    if prefix and (len(prefix) > MAX_PREFIX or not _IDENTIFIER.fullmatch(prefix)):
        raise ValueError(
            f"a prefix of module names must be at most {MAX_PREFIX} letters, digits and underscores, with no digit "
            f"first, not {prefix!r}: choose another one, such as 'left_'"
        )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector, which looks through the millions of objects of a netlist again and again: a third
    of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def generate(
    config: T3Config,
    out_dir: Path,
    components: Iterable[str] | None = None,
    show: Callable[[str], None] = lambda step: None,
    *,
    prefix: str = "",
    init_memories: bool = False,
) -> list[Path]:
    """Writes the parts named in ``components`` (default: all of :data:`PARTS`) into the folder ``out_dir``.

    Per part ``t3_<part>.v``, then what :mod:`~t3hdl.export.products` adds, the description ``t3.json`` last. Files
    are made elsewhere and moved when all are complete; files of the same name are replaced. Returns the paths in that
    order. ``show`` is called with each step of each part when it begins.

    Every module and package, and every file that depends on the configuration, has ``prefix`` before its name, so that
    several configurations can be in one design. ``init_memories`` is that of :func:`write_verilog`.

    Raises ValueError for an unknown part, or a prefix that makes no Verilog names; NotADirectoryError if ``out_dir`` is
    a file; VerilogError as :func:`write_verilog` does.
    """
    names = list(dict.fromkeys(PARTS if components is None else components))
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise ValueError(f"components must be among {', '.join(PARTS)}, not {', '.join(unknown)}")
    check_prefix(prefix)
    if out_dir.exists() and not out_dir.is_dir():
        raise NotADirectoryError(f"the output folder {out_dir} is a file: choose another one")

    modules, texts = {}, {}
    for name in names:
        module = f"{prefix}t3_{name}"
        modules[module] = PARTS[name](config)
        texts[module] = write_verilog(modules[module], module, init_memories=init_memories, show=show)
    files = {f"{module}.v": text for module, text in texts.items()}
    return _move_into(out_dir, {**files, **products(config, modules, texts, prefix)})


def _move_into(folder: Path, texts: dict[str, str]) -> list[Path]:
    """Writes all files into a new folder beside their place, then moves them one by one."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".incomplete-") as temporary:
        for name, text in texts.items():
            (Path(temporary) / name).write_text(text)
        for name in texts:
            os.replace(Path(temporary) / name, folder / name)
    return [folder / name for name in texts]
