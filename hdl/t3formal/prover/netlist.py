"""From a harness to and-inverter graphs, one for each output, by Yosys."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain

from .aiger import Graph
from .harness import LASTING, STEP, Harness

_RUNS, _STEPS = "runs", "steps"
DESIGN = "design.il"
"""The flat netlist with words, from which counterexamples are shown."""

_PREPARE = """\
read_rtlil harness.il
delete */t:$meminit_v2
hierarchy -top top
proc
delete -input top/w:rst
connect -nomap -nounset -set rst 1'0 top
flatten
memory_map
async2sync
dffunmap
delete */s:0
write_rtlil {design}
design -save words
"""

_GRAPH = """\
design -load words
{forget}
formalff -ff2anyinit
opt -full -noff
techmap
setundef -zero
aigmap
opt_clean -purge
write_aiger -zinit -symbols -map {graph}.map {graph}.aig
"""
"""One graph of all outputs, for runs that begin with reset or, where initial values are forgotten, anywhere."""

_GATES = """\
read_rtlil part.il
delete */t:$meminit_v2
hierarchy -top top
proc
flatten
memory_map
async2sync
dffunmap
opt -fast -nodffe -nosdff
techmap
opt -fast -nodffe -nosdff
setundef -zero
aigmap
opt_clean -purge
write_aiger -ascii -symbols part.aag
"""


class ToolError(Exception):
    """Yosys or a solver is missing or fails; the message says what to do."""


def package_folder() -> Path:
    """Where the Python package with Yosys and ABC lies. Raises ToolError if it is missing."""
    spec = importlib.util.find_spec("pyosys")
    if spec is None or spec.origin is None:
        raise ToolError("proofs need Yosys and ABC: pip install 'opent3[prove]'")
    return Path(spec.origin).parent


def compile_harness(
    harness: Harness, depth: int, outputs: Iterable[str], folder: Path, patch: Callable[[str], str] | None = None
) -> None:
    """Leaves ``<output>.aig`` and ``<output>.map`` of each output in ``folder``, and the netlist :data:`DESIGN`.

    ``patch`` changes the netlist's text before anything else, as a seeded mistake does. In the graph of ``step`` all
    registers but those of the harness that say so begin with any value. Raises ToolError if Yosys is missing or fails.
    """
    signals = harness.finish(depth)
    harness.m.domains.sync = clock = ClockDomain()
    # The reset is an input up to here, so that the part has the same cells as in the generated Verilog.
    ports = [*harness.inputs.values(), *signals.values(), clock.clk, clock.rst]
    text = rtlil.convert(harness.m, name="top", emit_src=False, ports=ports)
    compile_graphs(patch(text) if patch else text, outputs, folder)


def compile_graphs(text: str, outputs: Iterable[str], folder: Path) -> None:
    """As :func:`compile_harness`, for RTLIL with a module ``top`` that has these outputs."""
    (folder / "harness.il").write_text(text)
    wanted = set(outputs)
    graphs = {name: some for name, some in ((_RUNS, wanted - {STEP}), (_STEPS, wanted & {STEP})) if some}
    forget = {_RUNS: "", _STEPS: f"setattr -unset init w:* w:{LASTING}* %d"}
    script = [_GRAPH.format(graph=name, forget=forget[name]) for name in graphs]
    run_yosys("\n".join([_PREPARE.format(design=DESIGN), *script]), folder)
    for name, some in graphs.items():
        graph = Graph(folder / f"{name}.aig")
        for output in some:
            graph.write_output(folder / f"{output}.aig", output)
            shutil.copyfile(folder / f"{name}.map", folder / f"{output}.map")


def write_gates(text: str, folder: Path) -> Path:
    """The and-gates, inverters and registers of module ``top`` of a netlist, with names, as AIGER's text format.

    Raises ToolError if Yosys is missing or fails.
    """
    (folder / "part.il").write_text(text)
    run_yosys(_GATES, folder)
    return folder / "part.aag"


def run_yosys(script: str, folder: Path) -> None:
    """Runs a script in ``folder``. Raises ToolError if Yosys is missing or fails."""
    package_folder()
    (folder / "script.ys").write_text(script)
    # A process of its own: an error in Yosys ends the process that it is part of.
    program = "from pyosys import libyosys; libyosys.run_pass('script script.ys', libyosys.Design())"
    run = subprocess.run([sys.executable, "-c", program], check=False, cwd=folder, capture_output=True, text=True)
    if run.returncode:
        errors = [line for line in (run.stdout + run.stderr).splitlines() if line.startswith("ERROR")]
        raise ToolError("\n".join(errors) or f"Yosys failed with status {run.returncode}: {run.stderr[-500:]}")
