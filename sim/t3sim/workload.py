"""What is computed: the GEMM of one tensor-parallel sublayer whose partial outputs must be all-reduced."""

import difflib
from dataclasses import dataclass
from types import MappingProxyType

MAX_TP = 64
"""Most GPUs of one ring: a GPU's output has one chunk per GPU, and the hardware tracks up to 64 chunks."""
CUSTOM = "custom"
"""Model and sublayer of a GEMM that is given by its sizes."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A transformer: hidden size H, layers, and the tokens (sequence x batch) that one GEMM sees."""

    hidden: int
    layers: int
    tokens: int


MODELS = MappingProxyType({
    "mega-gpt-2": Model(hidden=3072, layers=74, tokens=16 * 1024),
    "t-nlg": Model(hidden=4256, layers=78, tokens=8 * 1024),
    "gpt-3": Model(hidden=12288, layers=96, tokens=4 * 1024),
    "palm": Model(hidden=18432, layers=118, tokens=4 * 1024),
    "mt-nlg": Model(hidden=20480, layers=105, tokens=4 * 1024),
})  # fmt: skip
"""The T3 paper's models. Hidden size and layers are public facts of the models; sequence 1K x batch is assumed [A]."""

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
        if not 2 <= self.tp <= MAX_TP:
            raise ValueError(f"tp must be in 2 to {MAX_TP} GPUs, not {self.tp}")
        for name in ("m", "n", "k"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.k < self.tp:
            raise ValueError(
                f"k must be at least tp, one column of the weights for each GPU: the smallest legal k is {self.tp}, "
                f"not {self.k}"
            )

    def k_of(self, gpu: int) -> int:
        """Inner dimension on GPU ``gpu``: floor or ceil of k / tp, the longer ones first. Sums to k."""
        return self.k // self.tp + (gpu < self.k % self.tp)

    @property
    def k_range(self) -> tuple[int, int]:
        """Smallest and largest inner dimension on any GPU."""
        return self.k // self.tp, -(-self.k // self.tp)

    def check_tiles(self, tile_rows: int, tile_cols: int) -> None:
        """Refuses an output with fewer workgroup tiles than GPUs (ValueError naming the smallest legal size)."""
        rows, cols = -(-self.m // tile_rows), -(-self.n // tile_cols)
        if rows * cols < self.tp:
            least = (-(-self.tp // rows) - 1) * tile_cols + 1
            raise ValueError(
                f"the output must have at least one {tile_rows} x {tile_cols} tile for each of {self.tp} GPUs, but "
                f"{self.m} x {self.n} has {rows * cols}: the smallest legal n for m = {self.m} is {least}"
            )

    @property
    def title(self) -> str:
        """Name for people, for example ``t-nlg fc2 TP=8 (8192 x 4256 x 17024)``."""
        name = CUSTOM if self.model == CUSTOM else f"{self.model} {self.sublayer}"
        return f"{name} TP={self.tp} ({self.m} x {self.n} x {self.k})"


def model_workload(model: str, sublayer: str, tp: int) -> Workload:
    """The GEMM of ``sublayer`` (op, fc2, fc1, ip) of a model of the paper on ``tp`` GPUs.

    Raises ValueError for an unknown model or sublayer, with the nearest known name.
    """
    _check_name("model", model, MODELS)
    _check_name("sublayer", sublayer, INNER_MULTIPLE)
    facts = MODELS[model]
    inner = INNER_MULTIPLE[sublayer] * facts.hidden
    return Workload(model=model, sublayer=sublayer, tp=tp, m=facts.tokens, n=facts.hidden, k=inner)


def custom_workload(m: int, n: int, k: int, tp: int) -> Workload:
    """Any GEMM: M x N output, whole inner dimension K split over ``tp`` GPUs."""
    return Workload(model=CUSTOM, sublayer=CUSTOM, tp=tp, m=m, n=n, k=k)


def _check_name(what: str, name: str, known: MappingProxyType) -> None:
    if name not in known:
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{what} must be one of {', '.join(known)}, not {name!r}{hint}")
