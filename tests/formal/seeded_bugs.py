"""Mistakes put into the netlist of a proof: what a proof must find."""

import re

from t3formal.prover.catalogue import chosen_proofs
from t3formal.prover.check import check
from t3formal.prover.proof import Task


def in_cell(text, *, module, having, old, new):
    """Replaces ``old`` by ``new`` in each cell of a module that has both it and the line ``having``, at least one."""
    head = re.search(rf"^module \\{re.escape(module)}$", text, re.MULTILINE)
    assert head, f"no module {module}"
    end = text.index("\nend\n", head.end())
    body, number = text[head.end() : end], 0
    for cell in re.findall(r"\n  cell [^\n]*(?:\n    [^\n]*)*\n  end", body):
        if f"\n    {having}" in cell and old in cell:
            body = body.replace(cell, cell.replace(old, new))
            number += 1
    assert number, f"no cell of {module} has {having} and {old}"
    return text[: head.end()] + body + text[end:]


def expect_failure(name, patch, claim):
    """The first size of the proof breaks this claim, because of the patch."""

    def changed(text):
        after = patch(text)
        assert after != text
        return after

    (proof,) = chosen_proofs((name,))
    verdict = check(Task(proof=proof, size=next(iter(proof.sizes))), patch=changed, covers=False)
    assert verdict.outcome == "violated"
    assert claim in verdict.counterexample.claims, verdict.counterexample.claims
