"""What is computed: the GEMM of one tensor-parallel sublayer whose partial outputs must be all-reduced."""

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from .arguments import instance, integer

MAX_TP = 64
"""Most GPUs of one ring: a GPU's output has one chunk per GPU, and the hardware tracks up to 64 chunks."""
REPORTED_TP = 32
"""Most GPUs of a model whose sublayers the paper reports; those of more are its outlook."""
MAX_SIZE = 1 << 22
"""Most elements of a GEMM along each of its three dimensions."""
CUSTOM = "custom"
"""Model and sublayer of a GEMM that is given by its sizes."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A transformer with multi-head attention of width H and a feed-forward layer of width 4 H.

    ``hidden``: H in elements; ``heads``: attention heads of H / heads elements each; ``sequence`` tokens x ``batch``:
    what one iteration or prompt holds; ``vocabulary``: tokens that exist; ``tp``: degrees that are reported.
    """

    hidden: int
    layers: int
    heads: int
    batch: int
    vocabulary: int
    tp: tuple[int, ...]
    sequence: int = 1024

    @property
    def tokens(self) -> int:
        """Rows of every GEMM with weights: sequence x batch."""
        return self.sequence * self.batch

    @property
    def parameters(self) -> int:
        """Weights of the layers' GEMMs, 12 H^2 a layer, and of the embedding, H for each token of the vocabulary."""
        return (sum(INNER_MULTIPLE.values()) * self.layers * self.hidden + self.vocabulary) * self.hidden


MODELS = MappingProxyType(
    {
        "mega-gpt-2": Model(hidden=3072, layers=74, heads=32, batch=16, vocabulary=51200, tp=(8, 16)),
        "t-nlg": Model(hidden=4256, layers=78, heads=28, batch=8, vocabulary=50257, tp=(8, 16)),
        "gpt-3": Model(hidden=12288, layers=96, heads=96, batch=4, vocabulary=50257, tp=(32,)),
        "palm": Model(hidden=18432, layers=118, heads=48, batch=4, vocabulary=256000, tp=(32,)),
        "mt-nlg": Model(hidden=20480, layers=105, heads=128, batch=4, vocabulary=51200, tp=(32,)),
        "1t": Model(hidden=25600, layers=128, heads=160, batch=4, vocabulary=51200, tp=(64,)),
        "10t": Model(hidden=57344, layers=128, heads=448, batch=4, vocabulary=51200, tp=(64,)),
    }
)
"""The T3 paper's models, with the TP degrees that it evaluates; the source of each number: docs/guides/end-to-end.md.

Sequence 1K x batch is assumed for all, and everything about 10t. PaLM's shared keys and values, its 256-element heads
and its gated, parallel feed-forward layer are not modelled: it is a transformer like the others here, as the paper's
sublayers take it.
"""

INNER_MULTIPLE = MappingProxyType({"op": 1, "fc2": 4, "fc1": 4, "ip": 3})
"""Sublayer -> inner dimension in units of H: forward output projection and FC-2, backward FC-1 and input projection."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """M x N output of a GEMM with the whole inner dimension K split over ``tp`` GPUs (FP16).

    Use :func:`model_workload` or :func:`custom_workload`. Raises ValueError if ``tp`` is not in 2 to 64, if a size is
    not positive, or if K is smaller than ``tp``.
    """

    model: str
    sublayer: str
    tp: int
    m: int
    n: int
    k: int

    def __post_init__(self) -> None:
        for name in ("tp", "m", "n", "k"):
            object.__setattr__(self, name, integer(f"--{name}", getattr(self, name)))
        if not 2 <= self.tp <= MAX_TP:
            raise ValueError(f"--tp must be in 2 to {MAX_TP} GPUs, not {self.tp}")
        for name in ("m", "n", "k"):
            if not 1 <= getattr(self, name) <= MAX_SIZE:
                raise ValueError(f"--{name} must be in 1 to {MAX_SIZE} elements, not {getattr(self, name)}")
        if self.k < self.tp:
            raise ValueError(
                f"--k must be at least --tp, one column of the weights for each GPU: the smallest legal k is "
                f"{self.tp}, not {self.k}"
            )

    def k_of(self, gpu: int) -> int:
        """Inner dimension on GPU ``gpu``: floor or ceil of k / tp, the longer ones first. Sums to k."""
        return self.k // self.tp + (gpu < self.k % self.tp)

    @property
    def k_range(self) -> tuple[int, int]:
        """Smallest and largest inner dimension on any GPU."""
        return self.k // self.tp, -(-self.k // self.tp)

    def check_tiles(self, menu: Sequence[tuple[int, int]]) -> None:
        """Refuses an output with fewer workgroup tiles than GPUs for all (rows, cols) of ``menu`` (ValueError naming
        the smallest legal size)."""
        least, rows, cols = min((self._least_columns(rows, cols), rows, cols) for rows, cols in menu)
        if self.n < least:
            raise ValueError(
                f"the output must have at least one {rows} x {cols} tile for each of {self.tp} GPUs, but "
                f"{self.m} x {self.n} has {-(-self.m // rows) * -(-self.n // cols)}: the smallest legal n for "
                f"m = {self.m} is {least}"
            )

    def _least_columns(self, tile_rows: int, tile_cols: int) -> int:
        """Smallest n with a tile for each GPU."""
        return (-(-self.tp // -(-self.m // tile_rows)) - 1) * tile_cols + 1

    @property
    def title(self) -> str:
        """Name for people, for example ``t-nlg fc2 TP 8 (8192 x 4256 x 17024)``."""
        name = CUSTOM if self.model == CUSTOM else f"{self.model} {self.sublayer}"
        return f"{name} TP {self.tp} ({self.m} x {self.n} x {self.k})"


def named_model(model: str) -> Model:
    """The model of that name. Raises ValueError for an unknown one, with the nearest known name."""
    check_name("model", model, MODELS)
    return MODELS[model]


def model_workload(model: str, sublayer: str, tp: int) -> Workload:
    """The GEMM of ``sublayer`` (op, fc2, fc1, ip) of a model of the paper on ``tp`` GPUs.

    Raises ValueError for an unknown model or sublayer, with the nearest known name.
    """
    facts = named_model(model)
    check_name("sublayer", sublayer, INNER_MULTIPLE)
    inner = INNER_MULTIPLE[sublayer] * facts.hidden
    return Workload(model=model, sublayer=sublayer, tp=tp, m=facts.tokens, n=facts.hidden, k=inner)


def custom_workload(m: int, n: int, k: int, tp: int) -> Workload:
    """Any GEMM: M x N output, whole inner dimension K split over ``tp`` GPUs."""
    return Workload(model=CUSTOM, sublayer=CUSTOM, tp=tp, m=m, n=n, k=k)


def paper_shapes() -> dict[Workload, tuple[str, ...]]:
    """The GEMMs of the 28 sublayers that the paper reports, each once, and the sublayers ("t-nlg fc2") that have it."""
    found: dict[Workload, tuple[str, ...]] = {}
    for model, facts in MODELS.items():
        for tp in facts.tp:
            for sublayer in INNER_MULTIPLE if tp <= REPORTED_TP else ():
                work = model_workload(model, sublayer, tp)
                shape = custom_workload(work.m, work.n, work.k, tp)
                found[shape] = (*found.get(shape, ()), f"{model} {sublayer}")
    return found


def is_taken(name: str) -> bool:
    """Whether ``name`` is that of a model of this program, or stands for a GEMM of the user's own."""
    return name in MODELS or name == CUSTOM


def check_name(what: str, name: str, known: Collection[str]) -> None:
    """Refuses a ``name`` that is not ``known`` (ValueError with all of them and the nearest)."""
    instance(f"--{what}", name, str, f"one of {', '.join(known)}")
    if name not in known:
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"--{what} must be one of {', '.join(known)}, not {name!r}{hint}")
