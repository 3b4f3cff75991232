"""The page on proofs: ``python -m docs.pages proofs`` writes ``docs/results/proofs.md`` from what is kept beside it.

The results are those of ``t3 prove -o docs/results/proofs``, which writes that folder anew.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from t3formal.models.assumptions import ASSUMPTIONS, Obligation
from t3formal.models.invariants import GAPS, INVARIANTS
from t3formal.prover.catalogue import all_proofs
from t3formal.prover.reach import Reach, reaches
from t3hdl.export.identity import hardware_identity
from t3sim.cli.proof_tables import covers_text, method_text

from docs.pages import RESULTS
from docs.pages.shared.hardware import measured_on
from docs.pages.shared.markdown import paragraph, table
from docs.pages.texts.proofs import CHAINS, HEAD, LEVELS, READING, UNBOUNDED

PAGE = RESULTS / "proofs.md"
KEPT = PAGE.parent / "proofs"
"""The folder of ``t3 prove -o`` that is kept beside the page."""


def levels_section() -> str:
    """What each level of checking shows, and what it cannot."""
    return table(("level", "where", "shows", "does not show"), LEVELS)


def invariants_section() -> str:
    """Each invariant with its proofs, and how far those reach."""
    rows, known = [], reach_of_proofs()
    for number, says in INVARIANTS.items():
        whole = f"{says} *{GAPS[number]}*" if number in GAPS else says
        for place, proof in enumerate(proof for proof in all_proofs() if number in proof.invariants):
            first = (number, whole) if place == 0 else ("", "")
            reach = known[proof.name]
            rows.append((*first, f"`{proof.name}`", proof.says, _reach(proof.name, reach), _trusted(reach)))
    return paragraph(CHAINS) + table(("", "invariant", "proof", "says", "reach", "given by the integrator"), rows)


def reach_of_proofs() -> dict[str, Reach]:
    """How far each proof holds with all that it rests on, by what the kept results say that it assumes."""
    rows = kept("proofs.json")["proofs"]
    assumed: dict[str, set[str]] = {}
    for row in rows:
        assumed.setdefault(row["name"], set()).update(row["assumptions"])
    bounds = {row["name"]: row["depth"] if row["method"] == "bounded" else None for row in rows}
    return reaches(bounds, assumed, ASSUMPTIONS)


def _reach(name: str, reach: Reach) -> str:
    if reach.cycles is None:
        return "every cycle"
    why = "" if reach.by == name else f", as it rests on `{reach.by}`"
    return f"first {reach.cycles} cycles{why}"


def _trusted(reach: Reach) -> str:
    return "; ".join(sorted(reach.trusted))


def results_section() -> str:
    """The table of ``t3 prove``."""
    results, times = kept("proofs.json")["proofs"], kept("timing.json")
    rows = [
        (
            f"`{row['name']}`", row["size"], method_text(row["method"], row["depth"]), f"{row['latches']:,}",
            len(row["claims"]), covers_text(row["covers"]), f"{times['tasks'][_title(row)]:.1f}", row["outcome"],
        )
        for row in results
    ]  # fmt: skip
    text = paragraph(
        f"{len(results)} tasks{_of_every_cycle(results)}, in {times['seconds'] / 60:.1f} minutes on two cores. "
        "*Latches* is the size of the netlist, *covers* those reached and in how many cycles."
    )
    heads = ("property", "size", "method", "latches:", "claims:", "covers", "seconds:", "verdict")
    return text + table(heads, rows)


def _of_every_cycle(results: Sequence[Mapping[str, Any]]) -> str:
    """How many tasks hold in every cycle with all that they rest on; nothing if that is not known of older results."""
    try:
        known = reach_of_proofs()
    except KeyError:  # today's list of who owes what names assumptions or proofs that those results do not have
        return ""
    return UNBOUNDED.format(tasks=sum(known[row["name"]].cycles is None for row in results))


def assumptions_section() -> str:
    """Who owes what."""
    known = reach_of_proofs()
    rows = [(name, owed.says, _obligations(owed), _shown(owed, known)) for name, owed in sorted(ASSUMPTIONS.items())]
    text = (
        "What proofs assume of a part's surroundings, and how far that is shown. A test finds an assumption that "
        "nobody owes, and one that nobody makes."
    )
    return paragraph(text) + table(("assumption", "in full", "owed by", "shown for"), rows)


def _shown(owed: Obligation, known: Mapping[str, Reach]) -> str:
    """How far the weakest of the proofs that owe it goes."""
    bounds = [known[proof].cycles for proof, _ in owed.claims]
    if not bounds:
        return "not shown"
    cycles = min((bound for bound in bounds if bound is not None), default=None)
    return "every cycle" if cycles is None else f"first {cycles} cycles"


SECTIONS: Mapping[str, Callable[[], str]] = {
    "Levels of checking": levels_section,
    "The invariants": invariants_section,
    "Reading a counterexample": lambda: READING,
    "Results": results_section,
    "Assumptions": assumptions_section,
}
"""Sections by title."""


OF_TODAY = ("The invariants", "Assumptions")
"""Sections that connect today's proofs with their results, so that these must be of today's hardware."""


def are_of_this_hardware() -> bool:
    """Whether the kept results are of the hardware of this tree, as a record says since it names its hardware."""
    return kept("proofs.json").get("hardware") == hardware_identity()


def page() -> str:
    """The whole page."""
    sections = dict(SECTIONS)
    if not are_of_this_hardware():
        later = "How far the invariants are proven is written here with results of this tree's hardware."
        sections |= dict.fromkeys(OF_TODAY, lambda: later)
    note = measured_on(kept("proofs.json").get("hardware"))
    return f"{HEAD}\n{note}" + "".join(f"\n## {title}\n\n{make().rstrip()}\n" for title, make in sections.items())


def _obligations(owed: Obligation) -> str:
    claims = [f"`{proof}`: {claim}" for proof, claim in owed.claims]
    return "; ".join([*claims, f"integrator: {owed.integrator}"] if owed.integrator else claims)


def _title(row: Mapping[str, Any]) -> str:
    return f"{row['name']} ({row['size']})"


def kept(name: str) -> dict[str, Any]:
    """A file of the results that are kept beside the page."""
    return json.loads((KEPT / name).read_text(encoding="utf-8"))
