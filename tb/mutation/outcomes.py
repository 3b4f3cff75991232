"""What became of each mutant, and what that comes to for each part."""

import json
from collections.abc import Iterable
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


def summary(fates: Iterable[MutantOutcome]) -> dict[str, float]:
    """Counts of these mutants; ``rate`` is that of those killed among those that are not equivalent."""
    fates = list(fates)
    equivalent, killed = (sum(getattr(fate, what) for fate in fates) for what in ("equivalent", "killed"))
    return {
        "mutants": len(fates),
        "bench": sum(bool(fate.bench) for fate in fates),
        "proofs": sum(bool(fate.proofs) for fate in fates),
        "unproven": sum(bool(fate.unproven) and not fate.bench and not fate.proofs for fate in fates),
        "killed": killed,
        "equivalent": equivalent,
        "survivors": len(fates) - killed - equivalent,
        "rate": round(killed / max(1, len(fates) - equivalent), 4),
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


def record(fates: Iterable[MutantOutcome], **parameters: Any) -> dict[str, Any]:
    """Everything, for programs and for the manual; ``parameters`` say how it was found."""
    parts: dict[str, list[MutantOutcome]] = {}
    for fate in sorted(fates, key=lambda fate: (fate.component, fate.number)):
        parts.setdefault(fate.component, []).append(fate)
    everything = [fate for part in parts.values() for fate in part]
    components = {name: summary(part) for name, part in parts.items()} | {"all": summary(everything)}
    return {
        "schema": 1,
        **parameters,
        "components": components,
        "mutants": [asdict(fate) for fate in everything],
    }


def known(path: Path | None) -> dict[str, list[MutantOutcome]]:
    """What a file of an earlier campaign already has, by part. Raises ValueError if it holds anything else."""
    parts: dict[str, list[MutantOutcome]] = {}
    if path is not None and path.exists():
        try:
            for row in json.loads(path.read_text())["mutants"]:
                parts.setdefault(row["component"], []).append(MutantOutcome(**row))
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} is no record of a campaign, and stays as it is: choose another --out") from error
    return parts


def explain(fates: Iterable[MutantOutcome]) -> None:
    """Gives each mutant its explanation, if there is one."""
    texts = json.loads(EXPLANATIONS.read_text())
    for fate in fates:
        key = f"{fate.component}: {fate.command}"
        fate.harmless = key in texts["equivalent"]
        fate.explanation = texts["equivalent" if fate.harmless else "survives"].get(key, "")
