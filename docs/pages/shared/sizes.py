"""Sizes of parts, kept by what was measured: after a change of the hardware, only parts that changed are measured."""

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Literal

import click
from opent3.options import usable_cores
from pydantic import Field
from t3hdl.export.synthesis import Area, area, yosys_version
from t3sim.common.json_text import json_text
from t3sim.common.output import write_atomically
from t3sim.common.strict_record import StrictRecord
from t3sim.run.records import read_record
from t3sim.study.sources import source_digest

Design = tuple[str, str]
"""Verilog, and the name of its top module."""


class Sizes(StrictRecord):
    """Sizes that one way of measuring gave: a version of Yosys, and the sources of :mod:`t3hdl.export.synthesis`.

    ``sizes``: by :func:`digest_of` the Verilog.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    yosys: str = Field(default_factory=yosys_version)
    measure: str = Field(default_factory=lambda: source_digest("t3hdl.export.synthesis", parts=False))
    sizes: dict[str, Area]


def digest_of(design: Design) -> str:
    """16 hexadecimal digits of the SHA-256 of a design."""
    return hashlib.sha256("\n".join(design).encode()).hexdigest()[:16]


def kept_sizes(path: Path) -> dict[str, Area]:
    """The sizes in ``path`` that today's way of measuring gave; none if it is not there. Raises ValueError if it cannot
    be read."""
    if not path.exists():
        return {}
    kept = read_record(path, Sizes)
    today = Sizes(sizes={})
    return dict(kept.sizes) if (kept.yosys, kept.measure) == (today.yosys, today.measure) else {}


def measure(designs: Iterable[Design], path: Path) -> None:
    """Let ``path`` have the sizes of these designs and of no others. What is not there is measured, a design on each
    core, and kept at once: a run that was interrupted goes on. Raises SynthesisError as :func:`area` does."""
    wanted = {digest_of(design): design for design in designs}
    kept = {digest: size for digest, size in kept_sizes(path).items() if digest in wanted}
    missing = {digest: design for digest, design in wanted.items() if digest not in kept}
    with ThreadPoolExecutor(usable_cores()) as pool:  # Yosys is a process of its own
        runs = {pool.submit(area, *design): digest for digest, design in missing.items()}
        for number, run in enumerate(as_completed(runs), 1):
            kept[runs[run]] = run.result()
            click.echo(f"measured {missing[runs[run]][1]}: {number} of {len(runs)}", err=True)
            _write(kept, path)
    if kept != kept_sizes(path):
        _write(kept, path)


def _write(sizes: dict[str, Area], path: Path) -> None:
    record = Sizes(sizes=dict(sorted(sizes.items())))
    write_atomically(path, json_text(record.model_dump(mode="json", by_alias=True)))
