"""The page on mutation: ``python -m docs.pages mutation`` writes ``docs/results/mutation.md``.

The results are those that ``make mutants`` keeps in ``docs/results/mutation/mutation.json``.
"""

import json
from collections.abc import Mapping
from typing import Any

from docs.pages import RESULTS
from docs.pages.shared.hardware import measured_on
from docs.pages.shared.markdown import paragraph, table
from docs.pages.shared.seeded import mistakes, named_mistakes

PAGE = RESULTS / "mutation.md"
KEPT = RESULTS / "mutation" / "mutation.json"
"""The file of ``make mutants`` that is kept beside the page."""

_HEAD = """\
# Mutation

A check that never fails may be blind. So the generated netlists get small mistakes, and the checks must notice them:
`make mutants` does it again (`python -m tb.mutation.campaign --help`: one part, another seed, more mutants). This page
is made from its results, [mutation.json](mutation/mutation.json), by `python -m docs.pages mutation`.

## How

1. **Mutants.** Yosys' `mutate` chooses bits of the ports of cells of a part's word-level netlist, the one that its
   Verilog is written from, evenly over modules, cells and bits. A bit becomes inverted, 0, 1, or inverted depending on
   another bit of the same port. Mistakes in the clock are left out: it has no logic. All mutants of a part are in one
   netlist, with one more input that chooses: one build serves them all. A module that a part has several times has the
   mistake every time.
2. **Benches.** The mutant runs in the place of the part in its unit bench: random traffic side by side with the golden
   model and with a copy that skips idle cycles, from a reset in the middle of a run (tracker and trigger: then chunks
   that overflow, thousands of tiles in large chunks, and every tile of a chunk that comes twice; the ALU: special and
   random pairs against exact arithmetic; the AXI4-Lite port: random accesses against what a register file saw).
3. **Equivalence.** What the bench does not notice may be no mistake, such as a bit that nothing reads. The part and the
   mutant get the same inputs, any, with resets at any time; ABC looks for a run in which their outputs differ, then
   for a proof that there is none, first for the module that has the mistake, then for the part. A payload counts while
   it is valid. `idle` and `wake_at` of the part do not count: they only say how long a simulator may sleep, and that a
   mutant never sleeps too long is what the bench checks.
4. **Proofs.** The same mistake is made in the same cell of the netlists of the [proofs](proofs.md): those of the part,
   of its blocks and of linked parts that contain it, at the size of the mutants. They look at what benches leave, so
   their column says what they add (`--proofs`: which proofs, or all mutants for them). A claim is *violated* if
   a run from reset breaks it, as long as the proof's covers need; each search gets a few seconds. A proof is *not
   inductive* any more if its induction step has a counterexample, which may begin in a state that no run reaches, such
   as a counter near its end; `t3 prove` fails there too. Of the proofs about wires alone, `reset` is asked.

A mutant is *killed* if a check that passes without the mistake fails with it. The rate is that of killed mutants among
all but the equivalent ones. It says how dense the net of checks is for mistakes of this kind: a wrong wire, constant or
condition. It does not say that there is no mistake, nor that the contract itself is what a system needs; mistakes that
take several changes at once, and missing functions, are not among these mutants.
"""

_ASKED = {
    "none": "none",
    "blocks": "those of blocks, about what benches leave",
    "rest": "all, about what benches leave",
    "all": "all, about every mutant",
}


def results_section(results: Mapping[str, Any]) -> str:
    """The table by part."""
    rows = [
        (
            name, row["mutants"], row["bench"], row["proofs"], row["unproven"], row["killed"], row["equivalent"],
            row["survivors"], f"{100 * row['rate']:.1f} %",
        )
        for name, row in results["components"].items()
    ]  # fmt: skip
    changed = ", ".join(f"`{key}` {value}" for key, value in results["changes"].items())
    text = (
        f"Seed {results['seed']}, preset `small` with {changed}; at most {results['limit_s']} s for each question to "
        f"ABC. Proofs that were asked: {_ASKED[results['proofs']]}."
    )
    heads = (
        "part",
        "mutants:",
        "by bench:",
        "by proofs:",
        "not inductive:",
        "killed:",
        "equivalent:",
        "survive:",
        "rate:",
    )
    return paragraph(text) + table(heads, rows)


def unnoticed(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The mutants that no check notices and no proof shows to be equivalent."""
    checks = ("bench", "proofs", "unproven")
    found = [row for row in results["mutants"] if not any(row[check] for check in checks)]
    return [row for row in found if not row["equivalence"].startswith("equivalent")]


def explained_section(results: Mapping[str, Any]) -> str:
    """What nothing notices and no proof excludes."""
    rows = [
        (
            row["component"],
            f"`{row['command'].removeprefix('mutate -mode ')}`",
            "yes" if row["harmless"] else "no",
            row["explanation"] or "**open**",
        )
        for row in unnoticed(results)
    ]
    text = (
        "Mutants that nothing notices, and that are not proven equivalent within the time. Those that are no mistake "
        "by the reason given count as equivalent above, the others survive."
    )
    heads = ("part", "mutant", "equivalent", "why")
    return paragraph(text) + (table(heads, rows) if rows else "There is none.\n")


def seeded_section() -> str:
    """The mistakes that tests seed by hand."""
    found, named = list(mistakes()), list(named_mistakes())
    text = (
        f"{len(found) + len(named)} mistakes that somebody could make. For each a test changes the hardware as the row "
        "says, and passes only if a proof, or a scenario of the contract, fails. A test with several variants of a "
        "mistake is one row. The rows are the tests' own descriptions."
    )
    others = (
        f"{len(named)} more have names. `tests/hdl/test_seeded_mistakes.py` makes each of them: the test in its row "
        "must fail, and so must the proof, if one is named."
    )
    return (
        paragraph(text)
        + table(("mistake", "test"), [(mistake, f"`{file}`") for file, mistake in found])
        + "\n"
        + paragraph(others)
        + table(
            ("mistake", "found by", "and by the proof"),
            [(row.name, f"`{row.file}`: `{row.test}`", f"`{row.proof}`" if row.proof else "") for row in named],
        )
    )


def page() -> str:
    """The whole page."""
    results = json.loads(KEPT.read_text(encoding="utf-8"))
    hardware = measured_on(results.get("hardware"))
    sections = {
        "Results": hardware + results_section(results),
        "What is left": explained_section(results),
        "Mistakes made by hand": seeded_section(),
    }
    return _HEAD + "".join(f"\n## {title}\n\n{text}" for title, text in sections.items())
