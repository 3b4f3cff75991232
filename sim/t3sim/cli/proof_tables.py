"""What was proven: as tables for people, and as a record for machines."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text
from t3formal.prover.proof import Task, Verdict
from t3hdl.export.identity import hardware_identity

from t3sim.common.fitted_table import FittedTable

SCHEMA = 1
"""Version of the record."""
TEXTS = ("invariant", "method", "covers", "verdict", "what")
"""Columns that are no figures."""


def proof_list(todo: Iterable[Task]) -> FittedTable:
    """What would be proven, a row for each proof and size."""
    table = FittedTable("property", "size", "invariant", "method", "what", names=2, text=TEXTS)
    for task in todo:
        proof = task.proof
        method = method_text(proof.method, proof.depth)
        table.add_row(proof.name, task.size, _numbers(proof.invariants), method, proof.says)
    return table


def proof_table(verdicts: Mapping[Task, Verdict]) -> FittedTable:
    """Property, size, method, claims, covers, time and verdict, a row for each proof and size."""
    titles = ("property", "size", "invariant", "method", "latches", "claims", "covers", "seconds", "verdict")
    table = FittedTable(*titles, names=2, text=TEXTS)
    for task, verdict in verdicts.items():
        proof = task.proof
        table.add_row(
            proof.name,
            task.size,
            _numbers(proof.invariants),
            method_text(proof.method, proof.depth),
            str(verdict.latches),
            str(len(verdict.claims)),
            covers_text(verdict.covers),
            f"{verdict.seconds:.1f}",
            Text(verdict.outcome, style="" if verdict.outcome == "proven" else "bold red"),
        )
    return table


def method_text(method: str, depth: int) -> str:
    """Such as ``induction, k = 2`` or ``first 30 cycles``."""
    if method == "bounded":
        return f"first {depth} cycles"
    return f"induction, k = {depth}" if method == "induction" else method


def covers_text(covers: Mapping[str, int | None]) -> str:
    """How many covers were reached, and in how many cycles at most."""
    reached = [cycles for cycles in covers.values() if cycles is not None]
    return f"{len(reached)} of {len(covers)}" + (f", {max(reached)} cycles" if reached else "")


def record(verdicts: Mapping[Task, Verdict]) -> dict[str, Any]:
    """The hardware, and everything but times, which differ from machine to machine."""
    return {
        "schema": SCHEMA,
        "hardware": hardware_identity(),
        "proofs": [
            {
                "name": task.proof.name,
                "size": task.size,
                "invariants": list(task.proof.invariants),
                "says": task.proof.says,
                "method": task.proof.method,
                "depth": task.proof.depth,
                "outcome": verdict.outcome,
                "frames": verdict.frames,
                "latches": verdict.latches,
                "gates": verdict.gates,
                "claims": list(verdict.claims),
                "assumptions": list(verdict.assumptions),
                "covers": dict(verdict.covers),
                "counterexample": list(verdict.counterexample.events) if verdict.counterexample else None,
            }
            for task, verdict in verdicts.items()
        ],
    }


def timing(verdicts: Mapping[Task, Verdict], seconds: float) -> dict[str, Any]:
    """Seconds of the whole command and of each task."""
    tasks = {task.title: round(verdict.seconds, 2) for task, verdict in verdicts.items()}
    return {"schema": SCHEMA, "seconds": round(seconds, 1), "tasks": tasks}


def _numbers(invariants: tuple[int, ...]) -> str:
    return ", ".join(map(str, invariants))
