"""All proofs."""

import importlib
import pkgutil

from .. import properties
from .proof import Proof


def all_proofs() -> tuple[Proof, ...]:
    """The proofs of every module below ``properties``, by name. Raises ValueError if two have one name."""
    found: dict[str, Proof] = {}
    modules = pkgutil.walk_packages(properties.__path__, f"{properties.__name__}.")
    for module in (module for module in modules if not module.ispkg):
        for proof in importlib.import_module(module.name).PROOFS:
            if proof.name in found:
                raise ValueError(f"there are two proofs called {proof.name}: rename one")
            found[proof.name] = proof
    return tuple(found[name] for name in sorted(found))


def chosen_proofs(names: tuple[str, ...]) -> tuple[Proof, ...]:
    """Those whose name or component is in ``names``; all if it is empty. Raises ValueError for an unknown name."""
    proofs = all_proofs()
    known = {name for proof in proofs for name in (proof.name, proof.component)}
    for name in names:
        if name not in known:
            components = sorted({proof.component for proof in proofs})
            raise ValueError(
                f"there is no proof or component called {name!r}: choose among {', '.join(components)}, "
                "or a name that `t3 prove --list` shows"
            )
    return tuple(proof for proof in proofs if not names or proof.name in names or proof.component in names)
