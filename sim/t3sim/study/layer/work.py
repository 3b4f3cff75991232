"""The work of a kernel, FLOP of the matrix units and bytes, and the share of a model that is one GPU's.

Bytes are those that a kernel must move if nothing of another kernel stays in the cache: every input read once, every
output written once; all FP16 (2 bytes), a mask of dropout is 1 byte an element.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from t3sim.inputs.geometry import ELEMENT_BYTES, ceil_div
from t3sim.inputs.transformer.transformer import SizedModel, Transformer

AttentionKernels = Literal["unfused", "fused"]
ATTENTIONS: tuple[AttentionKernels, ...] = get_args(AttentionKernels)
"""Scores go through memory between five kernels, as in the paper's baseline; one kernel keeps them on chip."""

MASK_BYTES = 1
"""Bytes that dropout keeps of each element for its backward pass."""


@dataclass(frozen=True, kw_only=True)
class Gemm:
    """``count`` independent products of m x k and k x n matrices in one kernel."""

    m: int
    n: int
    k: int
    count: int = 1

    @property
    def flop(self) -> int:
        """2 m n k for each product: a multiplication and an addition."""
        return 2 * self.m * self.n * self.k * self.count

    @property
    def bytes(self) -> int:
        """Both inputs and the output of each product, once."""
        return ELEMENT_BYTES * self.count * (self.m * self.k + self.k * self.n + self.m * self.n)


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One kernel of one GPU.

    ``gemms``: its matrix products, empty if it only streams; ``bytes``: what it must move to and from memory;
    ``sublayer``: the all-reduced sublayer that it is, or None; ``beside``: the simulated GEMM whose further bytes these
    are: of their time only what that GEMM does not hide counts.
    """

    name: str
    bytes: int
    gemms: tuple[Gemm, ...] = ()
    sublayer: str | None = None
    beside: Gemm | None = None

    @property
    def kind(self) -> Literal["gemm", "bandwidth"]:
        """Whether it uses the matrix units."""
        return "gemm" if self.gemms else "bandwidth"

    @property
    def flop(self) -> int:
        """FLOP of the matrix units."""
        return sum(gemm.flop for gemm in self.gemms)


def gemm_operator(name: str, m: int, n: int, k: int, count: int = 1, sublayer: str | None = None) -> Operator:
    """A kernel of one shape of matrix products."""
    return products(name, Gemm(m=m, n=n, k=k, count=count), sublayer)


def products(name: str, gemm: Gemm, sublayer: str | None = None) -> Operator:
    """The kernel of ``gemm``."""
    return Operator(name=name, bytes=gemm.bytes, gemms=(gemm,), sublayer=sublayer)


def stream_operator(name: str, elements: int, *, accesses: int, masks: bool = False) -> Operator:
    """A kernel that reads or writes ``elements`` FP16 elements ``accesses`` times, and a dropout mask or not."""
    return Operator(name=name, bytes=elements * (ELEMENT_BYTES * accesses + MASK_BYTES * masks))


@dataclass(frozen=True)
class Share:
    """One of ``tp`` GPUs that run ``model``."""

    model: SizedModel
    tp: int
    fused: bool

    @property
    def transformer(self) -> Transformer:
        """The model's layers and sizes."""
        return self.model.transformer

    @property
    def tokens(self) -> int:
        """T: rows of the GEMMs with weights."""
        return self.model.tokens

    @property
    def hidden(self) -> int:
        """H."""
        return self.transformer.hidden

    @property
    def stream(self) -> int:
        """T H: elements of the activations between sublayers, whole on every GPU."""
        return self.tokens * self.hidden

    @property
    def dropout(self) -> bool:
        """Whether masks are written: in training, of models that have it."""
        return self.model.training and self.transformer.dropout

    def part(self, columns: int) -> int:
        """Of columns that TP splits, those of the GPU that has most."""
        return ceil_div(columns, self.tp)
