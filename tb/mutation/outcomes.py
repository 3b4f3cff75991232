"""What became of each mutant, and what that comes to for each part."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

EXPLANATIONS = Path(__file__).with_name("explanations.json")
"""Of mutants that nothing notices, and that were not proven equivalent, by part and command: why.

``equivalent`` : why it is no mistake. ``survives`` : it is one; why no check sees it.
"""


@dataclass(kw_only=True)
class MutantOutcome:
    """What became of a mutant, ``command`` of Yosys; ``wire`` is what the bit is called, if it has a name.

    ``bench`` : what the unit bench says, empty if it notices nothing. ``proofs`` : those that are violated.
    ``unproven`` : those that are no longer inductive. ``equivalence`` : the answer of
    :mod:`t3formal.prover.equivalence`, asked only if no bench notices it. ``explanation`` : why nothing notices it,
    ``harmless`` : because it is no mistake.
    """

    component: str
    number: int
    command: str
    wire: str
    bench: str = ""
    proofs: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    equivalence: str = ""
    explanation: str = ""
    harmless: bool = False

    @property
    def killed(self) -> bool:
        """Whether a check that passes without the mistake fails with it."""
        return bool(self.bench or self.proofs or self.unproven)

    @property
    def equivalent(self) -> bool:
        """Whether it is proven, or explained, to be no mistake."""
        return not self.killed and (self.equivalence.startswith("equivalent") or self.harmless)


def summary(outcomes: Iterable[MutantOutcome]) -> dict[str, float]:
    """Counts of these mutants; ``rate`` is that of those killed among those that are not equivalent."""
    outcomes = list(outcomes)
    equivalent, killed = (sum(getattr(outcome, what) for outcome in outcomes) for what in ("equivalent", "killed"))
    return {
        "mutants": len(outcomes),
        "bench": sum(bool(outcome.bench) for outcome in outcomes),
        "proofs": sum(bool(outcome.proofs) for outcome in outcomes),
        "unproven": sum(bool(outcome.unproven) and not outcome.bench and not outcome.proofs for outcome in outcomes),
        "killed": killed,
        "equivalent": equivalent,
        "survivors": len(outcomes) - killed - equivalent,
        "rate": round(killed / max(1, len(outcomes) - equivalent), 4),
    }


def table(components: dict[str, dict[str, float]]) -> Table:
    """The summaries for people."""
    shown = Table(title="Mutants of the netlists")
    heads = ("part", "mutants", "bench", "proofs", "not inductive", "killed", "equivalent", "survive", "rate")
    for head in heads:
        shown.add_column(head, justify="left" if head == "part" else "right")
    for component, row in components.items():
        *counts, rate = row.values()
        shown.add_row(component, *map(str, counts), f"{100 * rate:.1f} %")
    return shown


def record(outcomes: Iterable[MutantOutcome], **parameters: Any) -> dict[str, Any]:
    """Everything, for programs and for the manual; ``parameters`` say how it was found."""
    parts: dict[str, list[MutantOutcome]] = {}
    for outcome in sorted(outcomes, key=lambda outcome: (outcome.component, outcome.number)):
        parts.setdefault(outcome.component, []).append(outcome)
    everything = [outcome for part in parts.values() for outcome in part]
    components = {name: summary(part) for name, part in parts.items()} | {"all": summary(everything)}
    return {
        "schema": 1,
        **parameters,
        "components": components,
        "mutants": [asdict(outcome) for outcome in everything],
    }


OPTIONS = {"seed": "--seed", "limit_s": "--limit", "proofs": "--proofs"}
"""Parameters of the record -> the options that choose them; all outcomes of a file are of one choice."""


def known(
    path: Path | None, netlists: Mapping[str, Any] | None = None, options: Mapping[str, Any] | None = None
) -> dict[str, list[MutantOutcome]]:
    """What a file of an earlier campaign already has, by part; nothing if it is of other ``netlists`` than those that
    are given. Raises ValueError if it is no such file, or was made with other ``options``: the new file would say of
    these outcomes that they were found with the options of this run."""
    if path is None or not path.exists():
        return {}
    parts: dict[str, list[MutantOutcome]] = {}
    try:
        kept = json.loads(path.read_text())
        for row in kept["mutants"]:
            parts.setdefault(row["component"], []).append(MutantOutcome(**row))
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is no record of a campaign, and stays as it is: choose another --out") from error
    if any(kept.get(name) != value for name, value in (netlists or {}).items()):
        return {}
    for name, value in (options or {}).items():
        if kept.get(name) != value:
            made = f"{OPTIONS[name]} {kept.get(name)}"
            raise ValueError(
                f"{path} was made with {made}, and a run that adds to it must have the same, not {value}: "
                f"give {made}, or another --out"
            )
    return parts


def explain(outcomes: Iterable[MutantOutcome]) -> None:
    """Gives each mutant its explanation, if there is one."""
    texts = json.loads(EXPLANATIONS.read_text())
    for outcome in outcomes:
        key = f"{outcome.component}: {outcome.command}"
        outcome.harmless = key in texts["equivalent"]
        outcome.explanation = texts["equivalent" if outcome.harmless else "survives"].get(key, "")
