"""What a proof is: a harness, the sizes of the hardware it is made for, and the method."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from t3hdl.config import T3Config

from .harness import Harness
from .structure import Structure

Method = Literal["unbounded", "induction", "bounded", "structure"]
"""``unbounded``: property-directed reachability, every cycle of every run. ``induction``: likewise, by k-induction with
k = ``depth``. ``bounded``: the first ``depth`` cycles of every run. ``structure``: by the wires
alone, whatever they carry."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Proof:
    """One named property of one component, proven for several sizes.

    Parameters
    ----------
    name : ``component.property``, as in ``token-queue.conserves``.
    invariants : those of the ten invariants that it is a part of; may be empty for a lemma.
    says : what is proven, as a sentence for the manual.
    harness : makes the harness for one size, or the rules of a structure; raises
        :class:`~t3formal.prover.harness.SizeError` for a size of which the proof does not speak.
    sizes : the sizes by name, the first one that of ``t3 prove --quick``.
    method, depth : see :data:`Method`; with ``unbounded``, ``depth`` is that within which covers must be reached.
    cover_depth : the same for the other methods; 0 stands for ``depth``.
    reduce : whether a bounded search first merges what is the same in every run: slow for most, but where two designs
        are compared it brings depth.
    quick : whether the first size takes seconds and belongs to ``t3 prove --quick``.
    limit_s : seconds after which an engine gives up, and the verdict is *undecided*.
    """

    name: str
    invariants: tuple[int, ...]
    says: str
    harness: Callable[[T3Config], Harness | Structure]
    sizes: Mapping[str, T3Config]
    method: Method = "unbounded"
    depth: int = 20
    cover_depth: int = 0
    reduce: bool = False
    quick: bool = True
    limit_s: int = 600

    @property
    def component(self) -> str:
        """The part of the hardware that it speaks of."""
        return self.name.split(".")[0]


@dataclass(frozen=True, kw_only=True)
class Task:
    """One proof at one size: what a worker does, and a row of the table."""

    proof: Proof
    size: str

    @property
    def title(self) -> str:
        """Such as ``token-queue.conserves (small)``."""
        return f"{self.proof.name} ({self.size})"


Outcome = Literal["proven", "violated", "not inductive", "undecided", "vacuous"]
"""*violated*: a run from reset breaks a claim. *not inductive*: a run from some state does, perhaps from one that is
never reached. *undecided*: time is up. *vacuous*: the claims hold, but a cover was not reached within its depth."""


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """A run that breaks claims in its last cycle.

    ``claims`` : their names. ``events`` : what went through the part's ports, a line each. ``waves`` : the waveforms,
    if they were kept.
    """

    claims: tuple[str, ...]
    events: tuple[str, ...]
    waves: Path | None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How a task ended.

    ``frames`` : cycles of the counterexample, or frames that the engine looked at. ``covers`` : for each cover the
    cycles of the shortest run that reaches it, None if there is none within the depth. ``seconds`` : for the whole
    task. ``latches``, ``gates`` : size of the netlist. ``claims``, ``assumptions`` : names.
    """

    outcome: Outcome
    frames: int
    covers: dict[str, int | None]
    seconds: float
    latches: int
    gates: int
    claims: tuple[str, ...]
    assumptions: tuple[str, ...]
    counterexample: Counterexample | None
