"""What was proven: as tables for people, and as a record for machines."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table
from t3hdl.formal.proof import Task, Verdict

SCHEMA = 1
"""Version of the record."""


def proof_list(todo: Iterable[Task]) -> Table:
    """What would be proven, a row for each proof and size."""
    table = _table("property", "size", "invariant", "method", "what")
    for task in todo:
        proof = task.proof
        table.add_row(proof.name, escape(task.size), _numbers(proof.invariants), method(task), escape(proof.says))
    return table


def proof_table(verdicts: Mapping[Task, Verdict]) -> Table:
    """Property, size, method, claims, covers, time and verdict, a row for each proof and size."""
    table = _table("property", "size", "invariant", "method", "latches", "claims", "covers", "seconds", "verdict")
    for name in ("latches", "claims", "seconds"):
        next(column for column in table.columns if column.header == name).justify = "right"
    for task, verdict in verdicts.items():
        table.add_row(
            task.proof.name,
            escape(task.size),
            _numbers(task.proof.invariants),
            method(task),
            str(verdict.latches),
            str(len(verdict.claims)),
            covers_text(verdict.covers),
            f"{verdict.seconds:.1f}",
            verdict.outcome if verdict.outcome == "proven" else f"[bold red]{verdict.outcome}[/]",
        )
    return table


def method(task: Task) -> str:
    """Such as ``induction, k = 2`` or ``first 30 cycles``."""
    proof = task.proof
    if proof.method == "bounded":
        return f"first {proof.depth} cycles"
    return f"induction, k = {proof.depth}" if proof.method == "induction" else proof.method


def covers_text(covers: Mapping[str, int | None]) -> str:
    """How many covers were reached, and in how many cycles at most."""
    reached = [cycles for cycles in covers.values() if cycles is not None]
    return f"{len(reached)} of {len(covers)}" + (f", {max(reached)} cycles" if reached else "")


def record(verdicts: Mapping[Task, Verdict]) -> dict[str, Any]:
    """Everything but times, which differ from machine to machine."""
    return {
        "schema": SCHEMA,
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


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold")
    return table
