"""Carries out one proof at one size, from the harness to the verdict."""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from .abc import Answer, exclude, search, search_long
from .dependencies import inspect
from .harness import BAD, STEP, Harness
from .netlist import compile_harness
from .proof import Counterexample, Outcome, Task, Verdict
from .replay import claims_at_end, replay, transactions
from .structure import Structure

Patch = Callable[[str], str]
"""Changes the text of a netlist, as a seeded mistake does."""


def check(task: Task, keep: Path | None = None, patch: Patch | None = None, covers: bool = True) -> Verdict:
    """The verdict on a task.

    ``keep`` : a folder that gets the waveforms of a counterexample. ``covers`` : whether to look for them, too.
    Raises ToolError if Yosys or ABC is missing or fails, ValueError if the harness has no claim or no cover.
    """
    proof, started = task.proof, time.monotonic()
    harness = proof.harness(proof.sizes[task.size])
    with tempfile.TemporaryDirectory(prefix="t3-prove-") as name:
        folder = Path(name)
        if isinstance(harness, Structure):
            return inspect(harness, folder, patch)
        wanted = [f"cover_{number}" for number in range(len(harness.covers) if covers else 0)]
        wanted += [BAD, STEP] if proof.method == "induction" else [BAD]
        compile_harness(harness, proof.depth if proof.method == "induction" else 0, wanted, folder, patch)
        if not harness.claims or not harness.covers:
            raise ValueError(f"{task.title} must have a claim and a cover: it proves nothing, or perhaps of no run")
        outcome, answer, output = _claims(task, folder)
        reached = _covers(task, harness, folder) if covers and outcome == "proven" else {}
        found = None
        if outcome in ("violated", "not inductive"):
            found = _counterexample(task, harness, output, folder, keep)
    return Verdict(
        outcome="vacuous" if None in reached.values() else outcome,
        frames=answer.frames,
        covers=reached,
        seconds=time.monotonic() - started,
        latches=answer.latches,
        gates=answer.gates,
        claims=tuple(harness.claims),
        assumptions=tuple(harness.assumptions),
        counterexample=found,
    )


def _claims(task: Task, folder: Path) -> tuple[Outcome, Answer, str]:
    """What became of the claims, the engine's last answer, and the output that it was asked about."""
    proof = task.proof
    if proof.method == "unbounded":
        answer = exclude(BAD, folder, limit_s=proof.limit_s)
    else:
        answer = search_long(BAD, folder, depth=proof.depth, limit_s=proof.limit_s, reduce=proof.reduce)
    if answer.outcome == "reached":  # the shortest run, and on the netlist as it was
        answer = search(BAD, folder, depth=answer.frames, limit_s=proof.limit_s)
    outcomes: dict[str, Outcome] = {"reached": "violated", "never": "proven", "unknown": "undecided"}
    if proof.method != "induction" or answer.outcome != "never":
        return outcomes[answer.outcome], answer, BAD
    step = search_long(STEP, folder, depth=proof.depth + 1, limit_s=proof.limit_s)
    if step.outcome != "reached":
        return outcomes[step.outcome], step, STEP
    # A run from reset says more than one from a state that is perhaps never reached.
    longer = search(BAD, folder, depth=max(proof.cover_depth, proof.depth), limit_s=proof.limit_s)
    if longer.outcome == "reached":
        return "violated", longer, BAD
    return "not inductive", search(STEP, folder, depth=step.frames, limit_s=proof.limit_s), STEP


def _covers(task: Task, harness: Harness, folder: Path) -> dict[str, int | None]:
    """For each cover the cycles of the shortest run to it."""
    proof, reached = task.proof, {}
    for number, name in enumerate(harness.covers):
        depth = proof.cover_depth or proof.depth
        answer = search(f"cover_{number}", folder, depth=depth, limit_s=proof.limit_s)
        reached[name] = answer.frames if answer.outcome == "reached" else None
    return reached


def _counterexample(task: Task, harness: Harness, output: str, folder: Path, keep: Path | None) -> Counterexample:
    waves = replay(output, folder)
    kept = None
    if keep is not None:
        kept = keep / f"{task.proof.name}-{task.size}.vcd".replace(" ", "-")
        keep.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(waves, kept)
    broken = claims_at_end({name: signal.name for name, signal in harness.claims.items()}, waves)
    events = tuple(str(event) for event in transactions(harness.dut, waves))
    return Counterexample(claims=tuple(broken), events=events, waves=kept)
