"""What a campaign found: the record, its table, and a picture."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure
from pydantic import BaseModel, ConfigDict, Field
from t3hdl.export.identity import hardware_identity

from t3sim import __version__
from t3sim.common.fitted_table import FittedTable
from t3sim.run.provenance import Provenance
from t3sim.study.drawing import legend_above, save

from .bench import Verdict
from .classes import PROTECTED_AGAINST, VARIANTS, FaultCase
from .outcome import SILENT, Outcome
from .setup import GPUS, request

COLOURS = {
    Outcome.MASKED: "#BBBBBB",
    Outcome.CORRECTED: "#009E73",
    Outcome.DETECTED: "#0072B2",
    Outcome.HANG: "#E69F00",
    Outcome.SILENT: "#D55E00",
}
LABELS = (
    "bit of the tracker", "bit of the trigger", "bit of the slices", "bit of the token network", "bit of the registers",
    "bit of the NMC units", "lost packet", "repeated packet", "reordered packet",
    "stalled DMA engine", "straggling GPU", "wrong program", "foreign store",
)  # fmt: skip
"""What faults are called, in the order of the table."""


class Row(BaseModel):
    """Faults of one kind, in one variant of the system: how they ended, and what named those that were detected."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fault: str
    protected: bool
    faults: int
    outcomes: dict[str, int]
    named: dict[str, int]


class Silent(BaseModel):
    """A fault that nothing named: as a command repeats it, and in words."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    number: int
    protected: bool
    outcome: str
    text: str


class Record(BaseModel):
    """The JSON file of a campaign. ``silent``: with protection every one, without it those of the first faults.

    ``provenance``: of the machine with protection. ``hardware``: version and netlist; None: an older one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = Field(default=1, alias="schema")
    opent3: str = __version__
    seed: int
    workload: str
    gpus: int
    provenance: Provenance | None = None
    hardware: dict[str, str] | None = None
    rows: tuple[Row, ...]
    silent: tuple[Silent, ...]

    def rows_of(self, protected: bool) -> list[Row]:
        """The rows of one variant."""
        return [row for row in self.rows if row.protected is protected]

    @property
    def broken(self) -> list[Silent]:
        """What the protection should have caught."""
        return [item for item in self.silent if item.protected and item.kind in PROTECTED_AGAINST]

    @property
    def model_faults(self) -> int:
        """Faults, with protection, that the protection is for."""
        return sum(row.faults for row in self.rows_of(True) if _is_in_model(row.fault))


_LISTED = 50
"""Silent faults of the system without protection that the record names."""


def _is_in_model(fault: str) -> bool:
    return fault.startswith(("bit of", *PROTECTED_AGAINST))


def record_of(seed: int, verdicts: Mapping[FaultCase, Verdict]) -> Record:
    """The record of a campaign; the same for the same verdicts."""
    groups: dict[tuple[str, bool], list[Verdict]] = {}
    for job, verdict in verdicts.items():
        groups.setdefault((verdict.label, job.protected), []).append(verdict)
    rows = [_row(*group, groups[group]) for group in sorted(groups, key=lambda group: LABELS.index(group[0]))]
    silent = [
        Silent(kind=job.kind, number=job.number, protected=job.protected, outcome=verdict.outcome, text=verdict.text)
        for job, verdict in verdicts.items()
        if verdict.outcome in SILENT
    ]
    plain = [item for item in silent if not item.protected]
    return Record(
        seed=seed,
        workload=request(True).workload.title,
        gpus=GPUS,
        provenance=Provenance.of(request(True).machine),
        hardware=hardware_identity(),
        rows=tuple(rows),
        silent=(*(item for item in silent if item.protected), *plain[:_LISTED]),
    )


def _row(fault: str, protected: bool, found: list[Verdict]) -> Row:
    ended = Counter(verdict.outcome for verdict in found)
    named = Counter(name for verdict in found for name in verdict.named)
    return Row(
        fault=fault,
        protected=protected,
        faults=len(found),
        outcomes={outcome: ended[outcome] for outcome in Outcome},
        named=dict(sorted(named.items())),
    )


def fault_table(record: Record) -> FittedTable:
    """Fault class by outcome, with protection and without."""
    table = FittedTable("system", "fault", "faults", *Outcome, names=2)
    for cells in table_cells(record):
        table.add_row(*cells)
    return table


def table_cells(record: Record) -> Iterable[tuple[str, ...]]:
    """The rows of the table as text."""
    for protected, name in VARIANTS.items():
        for row in record.rows_of(protected):
            yield name, row.fault, f"{row.faults:,}", *(f"{row.outcomes[outcome]:,}" for outcome in Outcome)


def draw(record: Record, path: Path) -> None:
    """Shares of the outcomes by fault class, as ``path`` .png and .svg."""
    variants = [protected for protected in VARIANTS if record.rows_of(protected)]
    figure = Figure(figsize=(5 * len(variants) + 1.5, 4.2), layout="constrained")
    for index, protected in enumerate(variants):
        rows = record.rows_of(protected)[::-1]
        axes: Any = figure.add_subplot(1, len(variants), index + 1)
        left = [0.0] * len(rows)
        for outcome, colour in COLOURS.items():
            shares = [100 * row.outcomes[outcome] / row.faults for row in rows]
            axes.barh([row.fault for row in rows], shares, left=left, color=colour, label=outcome.value)
            left = [a + b for a, b in zip(left, shares, strict=True)]
        axes.set_xlim(0, 100)
        axes.set_xlabel(f"% of faults, {VARIANTS[protected]}")
        axes.spines[["top", "right"]].set_visible(False)
        if index == 0:
            legend_above(axes, 5)
        else:
            axes.set_yticklabels([])
    save(figure, path)
