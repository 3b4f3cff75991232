"""Which proofs notice a mutant."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from t3hdl.config import T3Config

from .abc import search
from .aiger import Graph, input_bits
from .check import Patch
from .dependencies import inspect
from .harness import BAD, STEP, SizeError
from .mutation import SELECT, Mutant, Netlist, NoPlaceError
from .netlist import compile_harness
from .proof import Outcome, Proof
from .structure import Structure

Noticed = Literal["violated", "not inductive"]
"""As the outcomes of a proof: *violated* has a run from reset; *not inductive* is no proof any more."""


def noticed(
    proof: Proof, config: T3Config, netlist: Netlist, mutants: tuple[Mutant, ...], *, limit_s: int
) -> Iterator[tuple[int, Noticed | None]]:
    """For each mutant that the part under ``proof`` contains, by its number, what becomes of the proof.

    Runs from reset are as long as those that the proof's covers need, and each question may take ``limit_s`` seconds;
    a proof that is still undecided then has noticed nothing. The part has the size ``config``; nothing comes if it
    contains none of the mutants, or if there is no such proof for that size, as that of a protected part. Of a
    structure, only what a reset sets is asked.

    Raises AssertionError if the proof does not hold without a mutant; ToolError if Yosys or ABC is missing or fails.
    """
    if not config.protect and all(size.protect for size in proof.sizes.values()):
        return  # it speaks of wrong bits, which this part does not find
    try:
        harness = proof.harness(config)
    except SizeError:
        return
    if isinstance(harness, Structure):
        if harness.resets:
            yield from _unset(proof, config, netlist, mutants)
        return  # in no other way do wires tell a mutant: everything depends on the input that chooses it
    applied: set[int] = set()
    outputs = (BAD, STEP) if proof.method == "induction" else (BAD,)
    depth = {BAD: max(proof.depth, proof.cover_depth), STEP: proof.depth + 1}
    with tempfile.TemporaryDirectory(prefix="t3-mutants-") as name:
        folder = Path(name)
        try:
            compile_harness(harness, proof.depth, outputs, folder, netlist.patch(mutants, applied))
        except NoPlaceError:
            return
        graphs = {output: (Graph(folder / f"{output}.aig"), _select(folder, output)) for output in outputs}

        def reached(output: str, number: int) -> bool:
            graph, bits = graphs[output]
            graph.write(folder / "one.aig", {bit: bool(number >> place & 1) for place, bit in enumerate(bits)})
            return search("one", folder, depth=depth[output], limit_s=limit_s).outcome == "reached"

        if reached(BAD, 0):
            raise AssertionError(f"{proof.name} does not hold for the part without mistakes")
        inductive = STEP in graphs and not reached(STEP, 0)
        for number in sorted(applied):
            if reached(BAD, number):
                yield number, "violated"
            else:
                yield number, "not inductive" if inductive and reached(STEP, number) else None


def _unset(
    proof: Proof, config: T3Config, netlist: Netlist, mutants: tuple[Mutant, ...]
) -> Iterator[tuple[int, Noticed | None]]:
    """Which mutants let a reset leave something as it was; one at a time, because no value of the input that chooses
    is known there."""
    if _outcome(proof, config, None) != "proven":
        raise AssertionError(f"{proof.name} does not hold for the part without mistakes")
    for mutant in mutants:
        try:
            outcome = _outcome(proof, config, netlist.patch((mutant,), set(), choose=False))
        except NoPlaceError:
            continue
        yield mutant.number, "violated" if outcome == "violated" else None


def _outcome(proof: Proof, config: T3Config, patch: Patch | None) -> Outcome:
    structure = proof.harness(config)
    assert isinstance(structure, Structure)
    with tempfile.TemporaryDirectory(prefix="t3-mutants-") as folder:
        return inspect(structure, Path(folder), patch).outcome


def _select(folder: Path, output: str) -> list[int]:
    return input_bits(folder / f"{output}.map", SELECT)
