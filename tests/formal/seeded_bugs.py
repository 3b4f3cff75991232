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


def substituted(pattern, replacement, text, *, number):
    """The text with every match of the pattern replaced, of which there must be so many."""
    changed, found = re.subn(pattern, replacement, text)
    assert found == number, f"{pattern} is there {found} times"
    return changed


def in_module(text, module, change):
    """The text with ``change`` made in the body of the one module with this name, or this name and a number."""
    ((start, end),) = [
        (head.end(), text.index("\nend\n", head.end()))
        for head in re.finditer(rf"^module \\{re.escape(module)}(?:\$\d+)?$", text, re.MULTILINE)
    ]
    return text[:start] + change(text[start:end]) + text[end:]


def expect_failure(name, patch, *claims, size=None):
    """A size of the proof, the first one unless it is named, breaks one of the claims, because of the patch, or without
    one of what the test changed. Several claims are alternatives: which one a search breaks first may be chance."""

    def changed(text):
        after = patch(text)
        assert after != text
        return after

    (proof,) = chosen_proofs((name,))
    task = Task(proof=proof, size=size or next(iter(proof.sizes)))
    verdict = check(task, patch=changed if patch else None, covers=False)
    assert verdict.outcome == "violated"
    assert set(claims) & set(verdict.counterexample.claims), verdict.counterexample.claims
