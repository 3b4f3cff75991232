"""ABC, which searches and-inverter graphs for a run that reaches an output, or shows that there is none."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .netlist import ToolError, package_folder

_REACHED = re.compile(r"was asserted in frame +(\d+)")
_DEPTH = re.compile(r"No output (?:asserted|failed) in (\d+) frames")
_REDUCE = "scleanup; &get; &scorr; &put; scorr; write_aiger {}_reduced.aig"
"""The first ``scorr`` is the faster, the second finds more."""
_MERGE = "scleanup; lcorr; write_aiger {}_reduced.aig"
_PATIENCE = 12
"""Time for merging, in multiples of a question's limit: it has no limit of its own."""
_INVARIANT = re.compile(r"Invariant F\[(\d+)\]")
_SIZE = re.compile(r"lat =\s*(\d+)\s+and =\s*(\d+)")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """``reached``: a run sets the output; ``never``: none does (in that depth, if bounded); ``unknown``: time is up."""

    outcome: Literal["reached", "never", "unknown"]
    frames: int
    latches: int
    gates: int


def search(output: str, folder: Path, *, depth: int, limit_s: int) -> Answer:
    """Whether some run of ``depth`` cycles sets ``output``; leaves the run in ``<output>.aiw``."""
    return _ask(f"bmc3 -F {depth} -T {limit_s}; write_cex -a {output}.aiw", output, folder, depth)


def search_long(output: str, folder: Path, *, depth: int, limit_s: int, reduce: bool = False) -> Answer:
    """As :func:`search`, without the run, and by another engine: slower on short questions, faster on long ones.

    ``reduce`` : merges first what is the same in every run.
    """
    first = f"{_REDUCE.format(output)}; dc2; " if reduce else ""
    return _ask(f"{first}&get; &bmcs -g -F {depth} -T {limit_s}", output, folder, depth)


def exclude(output: str, folder: Path, *, limit_s: int) -> Answer:
    """Whether no run at all sets ``output``; if one does, it is not kept: :func:`search` finds it again."""
    return _ask(f"{_REDUCE.format(output)}; pdr -T {limit_s}", output, folder, None)


def exclude_in_copies(output: str, folder: Path, *, limit_s: int, thorough: bool) -> Answer:
    """As :func:`exclude`, for two copies of nearly the same: flip-flops that are equal in every run become one.

    Often that alone leaves nothing to ask; only a ``thorough`` question goes on.
    """
    merge = _MERGE.format(output)
    command = f"lcorr; &get; &scorr; &put; {merge}; pdr -T {limit_s}" if thorough else merge
    return _ask(command, output, folder, None, timeout_s=_PATIENCE * limit_s)


def _ask(command: str, output: str, folder: Path, depth: int | None, timeout_s: int | None = None) -> Answer:
    if _is_constant_zero(folder / f"{output}.aig"):
        return Answer(outcome="never", frames=0, latches=0, gates=0)
    commands = f"read_aiger {output}.aig; print_stats; {command}"
    call = [str(package_folder() / "yosys-abc"), "-c", commands]
    try:
        run = subprocess.run(call, check=False, cwd=folder, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return Answer(outcome="unknown", frames=0, latches=0, gates=0)
    (folder / f"{output}.log").write_text(run.stdout)
    size = _SIZE.search(run.stdout)
    if run.returncode or size is None:
        raise ToolError(f"ABC failed with status {run.returncode} on {output}: {(run.stderr or run.stdout)[-500:]}")
    latches, gates = int(size[1]), int(size[2])
    reached, invariant, searched = (p.search(run.stdout) for p in (_REACHED, _INVARIANT, _DEPTH))
    if reached:
        return Answer(outcome="reached", frames=int(reached[1]) + 1, latches=latches, gates=gates)
    reduced = folder / f"{output}_reduced.aig"
    if "Property proved" in run.stdout or (reduced.exists() and _is_constant_zero(reduced)):
        return Answer(outcome="never", frames=int(invariant[1]) if invariant else 1, latches=latches, gates=gates)
    frames = int(searched[1]) if searched else 0
    outcome: Literal["never", "unknown"] = "never" if depth is not None and frames >= depth else "unknown"
    return Answer(outcome=outcome, frames=frames, latches=latches, gates=gates)


def _is_constant_zero(graph: Path) -> bool:
    """Whether the output was simplified to one that is never set; searches take no graph without registers."""
    header, *rest = graph.read_bytes().split(b"\n")
    latches = int(header.split()[3])
    return rest[latches] == b"0"
