"""The operators that one GPU of a tensor-parallel transformer runs, with their work: FLOP of the matrix units, bytes.

Partitioned as in Megatron-LM (Shoeybi et al., arXiv 1909.08053): QKV and FC-1 by columns, so that a GPU has 1/TP of the
heads and of the feed-forward width; the output projection and FC-2 by rows, so that their outputs are all-reduced, as
are the input gradients of FC-1 and QKV. Layer norms and residuals are repeated on every GPU. Symbols: T tokens
(sequence S x batch), H hidden size, N the TP degree, Z = batch x heads / N attention matrices on a GPU, of S x S
scores and H / heads columns; all FP16 (2 bytes), a mask of dropout is 1 byte an element.

Bytes are those that a kernel must move if nothing of another kernel stays in the cache: every input read once, every
output written once. Not counted: biases and their gradients, copies that reorder heads, arithmetic outside the matrix
units (bandwidth limits those kernels), causal skipping of half the scores. Table: docs/guides/end-to-end.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from t3sim.inputs.geometry import ELEMENT_BYTES, ceil_div
from t3sim.inputs.workload import INNER_MULTIPLE, MAX_TP, Model, check_name, named_model

Phase = Literal["prompt", "training"]
PHASES: tuple[Phase, ...] = get_args(Phase)
"""Forward pass over whole prompts; forward and backward pass of one iteration."""

Attention = Literal["unfused", "fused"]
ATTENTIONS: tuple[Attention, ...] = get_args(Attention)
"""Scores go through memory between five kernels, as in the paper's baseline; one kernel keeps them on chip."""

FFN_MULTIPLE = INNER_MULTIPLE["fc2"]
"""Width of the feed-forward layer in units of H."""
MASK_BYTES = 1
"""Bytes that dropout keeps of each element for its backward pass."""
OPTIMIZER_BYTES = 28
"""Bytes that a step of mixed-precision Adam moves for a parameter: reads its gradient (2), FP32 master weight and two
moments (12); writes those (12) and the FP16 weight (2). States as counted by ZeRO (arXiv 1910.02054, section 3.1)."""


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
    ``sublayer``: the all-reduced GEMM of :data:`~t3sim.inputs.workload.INNER_MULTIPLE` that it is, or None.
    """

    name: str
    bytes: int
    gemms: tuple[Gemm, ...] = ()
    sublayer: str | None = None

    @property
    def kind(self) -> Literal["gemm", "bandwidth"]:
        """Whether it uses the matrix units."""
        return "gemm" if self.gemms else "bandwidth"

    @property
    def flop(self) -> int:
        """FLOP of the matrix units."""
        return sum(gemm.flop for gemm in self.gemms)


def layer_operators(model: str, tp: int, phase: Phase, attention: Attention = "unfused") -> list[Operator]:
    """The operators of one layer on one GPU, all-reduced GEMMs included, in the order in which they run.

    Raises ValueError for an unknown model, phase or attention, or a ``tp`` that is not in 2 to 64.
    """
    check_name("phase", phase, PHASES)
    check_name("attention", attention, ATTENTIONS)
    layer = _Layer(model, tp, training=phase == "training", fused=attention == "fused")
    return [*layer.forward(), *(layer.backward() if layer.training else ())]


def model_operators(model: str, tp: int, phase: Phase) -> list[Operator]:
    """The operators outside of the layers, once a model: embedding, last layer norm, output head and its loss.

    The vocabulary of V tokens is split over the GPUs. In the prompt phase only the last token of every sequence goes
    through the head. The all-reduces of the embedding's output and of the head's input gradient, two of 4 x layers + 2,
    are left out. Errors as in :func:`layer_operators`.
    """
    check_name("phase", phase, PHASES)
    training = phase == "training"
    layer = _Layer(model, tp, training=training, fused=False)
    facts, stream, hidden = layer.facts, layer.stream, layer.facts.hidden
    words = ceil_div(facts.vocabulary, tp)
    rows = facts.tokens if training else facts.batch
    operators = [
        _stream("embedding.forward", stream, accesses=3, masks=training),  # word, position; their sum
        _stream("ln_final.forward", stream, accesses=2),
        _gemm("head.forward", rows, words, hidden),
    ]
    if training:
        operators += [
            _stream("loss.forward", rows * words, accesses=2),  # logits; probabilities
            _stream("loss.backward", rows * words, accesses=2),
            _gemm("head.dgrad", rows, hidden, words),
            _gemm("head.wgrad", hidden, words, rows),
            _stream("ln_final.backward", stream, accesses=5),
            _stream("embedding.backward", stream, accesses=3, masks=True),  # gradient; rows of the table read, written
        ]
    return operators


def optimizer_operator(model: str, tp: int) -> Operator:
    """The Adam step on a GPU's share of the parameters: bandwidth alone. Errors as in :func:`layer_operators`."""
    _check_tp(tp)
    return Operator(name="optimizer", bytes=OPTIMIZER_BYTES * ceil_div(named_model(model).parameters, tp))


def _check_tp(tp: int) -> None:
    if not 2 <= tp <= MAX_TP:
        raise ValueError(f"tp must be in 2 to {MAX_TP} GPUs, not {tp}")


def _gemm(name: str, m: int, n: int, k: int, count: int = 1, sublayer: str | None = None) -> Operator:
    gemm = Gemm(m=m, n=n, k=k, count=count)
    return Operator(name=name, bytes=gemm.bytes, gemms=(gemm,), sublayer=sublayer)


def _stream(name: str, elements: int, *, accesses: int, masks: bool = False) -> Operator:
    """A kernel that reads or writes ``elements`` FP16 elements ``accesses`` times, and a dropout mask or not."""
    return Operator(name=name, bytes=elements * (ELEMENT_BYTES * accesses + MASK_BYTES * masks))


@dataclass(frozen=True)
class _Layer:
    """One layer on one GPU. In comments: what is read; what is written."""

    model: str
    tp: int
    training: bool
    fused: bool

    def __post_init__(self) -> None:
        _check_tp(self.tp)
        named_model(self.model)

    @cached_property
    def facts(self) -> Model:
        return named_model(self.model)

    @property
    def stream(self) -> int:
        """T H: elements of the activations between sublayers, whole on every GPU."""
        return self.facts.tokens * self.facts.hidden

    @property
    def width(self) -> int:
        """H / N: attention columns of a GPU."""
        return ceil_div(self.facts.hidden, self.tp)

    @property
    def ffn(self) -> int:
        """4 H / N: feed-forward columns of a GPU."""
        return ceil_div(FFN_MULTIPLE * self.facts.hidden, self.tp)

    @property
    def matrices(self) -> int:
        """Z: score matrices of a GPU. Heads that TP does not divide are shared out over the batch."""
        return ceil_div(self.facts.batch * self.facts.heads, self.tp)

    @property
    def scores(self) -> int:
        """Z S^2."""
        return self.matrices * self.facts.sequence**2

    def forward(self) -> Iterator[Operator]:
        t, h, training = self.facts.tokens, self.facts.hidden, self.training
        yield _stream("ln1.forward", self.stream, accesses=2)
        yield _gemm("qkv.forward", t, 3 * self.width, h)
        yield from self._attention_forward()
        yield _gemm("op.forward", t, h, self.width, sublayer="op")
        yield _stream("residual1.forward", self.stream, accesses=3, masks=training)  # GEMM's output, input; their sum
        yield _stream("ln2.forward", self.stream, accesses=2)
        yield _gemm("fc1.forward", t, self.ffn, h)
        yield _stream("gelu.forward", t * self.ffn, accesses=2)
        yield _gemm("fc2.forward", t, h, self.ffn, sublayer="fc2")
        yield _stream("residual2.forward", self.stream, accesses=3, masks=training)

    def backward(self) -> Iterator[Operator]:
        """Twice the FLOP of the forward pass: each GEMM has one for its input's gradient and one for its weights'.

        A layer norm reads gradient and input for its gain, and again for its input's gradient, which it writes.
        """
        t, h = self.facts.tokens, self.facts.hidden
        yield _stream("dropout2.backward", self.stream, accesses=2, masks=True)
        yield _gemm("fc2.dgrad", t, self.ffn, h)
        yield _gemm("fc2.wgrad", self.ffn, h, t)
        yield _stream("gelu.backward", t * self.ffn, accesses=3)  # gradient, input; gradient
        yield _gemm("fc1.dgrad", t, h, self.ffn, sublayer="fc1")
        yield _gemm("fc1.wgrad", h, self.ffn, t)
        yield _stream("ln2.backward", self.stream, accesses=5)
        yield _stream("residual2.backward", self.stream, accesses=3)  # gradients of both branches; their sum
        yield _stream("dropout1.backward", self.stream, accesses=2, masks=True)
        yield _gemm("op.dgrad", t, self.width, h)
        yield _gemm("op.wgrad", self.width, h, t)
        yield from self._attention_backward()
        yield _gemm("qkv.dgrad", t, h, 3 * self.width, sublayer="ip")
        yield _gemm("qkv.wgrad", h, 3 * self.width, t)
        yield _stream("ln1.backward", self.stream, accesses=5)
        yield _stream("residual1.backward", self.stream, accesses=3)

    def _by_scores(self) -> Gemm:
        """Z products of S x H / heads and H / heads x S: Q K^T, or the gradient of the probabilities."""
        s = self.facts.sequence
        return Gemm(m=s, n=s, k=ceil_div(self.facts.hidden, self.facts.heads), count=self.matrices)

    def _by_columns(self) -> Gemm:
        """Z products of S x S and S x H / heads: P V, or the gradient of Q, of K, of V."""
        scores = self._by_scores()
        return Gemm(m=scores.m, n=scores.k, k=scores.n, count=scores.count)

    def _attention_forward(self) -> Iterator[Operator]:
        scores, columns = self._by_scores(), self._by_columns()
        if self.fused:  # Q, K, V; output: FlashAttention (arXiv 2205.14135), without its S statistics
            data = ELEMENT_BYTES * 4 * self.facts.tokens * self.width
            yield Operator(name="attention.forward", bytes=data, gemms=(scores, columns))
            return
        yield Operator(name="scores.forward", bytes=scores.bytes, gemms=(scores,))
        yield _stream("scale.forward", self.scores, accesses=2)
        yield _stream("mask.forward", self.scores, accesses=2)  # the mask itself is shared by all matrices
        yield _stream("softmax.forward", self.scores, accesses=2)
        if self.training:
            yield _stream("dropout.forward", self.scores, accesses=2, masks=True)
        yield Operator(name="context.forward", bytes=columns.bytes, gemms=(columns,))

    def _attention_backward(self) -> Iterator[Operator]:
        scores, columns = self._by_scores(), self._by_columns()
        if self.fused:  # Q, K, V, output, its gradient; gradients of Q, K, V. The scores are computed once more.
            data = ELEMENT_BYTES * 8 * self.facts.tokens * self.width
            gemms = (scores, scores, columns, columns, columns)
            yield Operator(name="attention.backward", bytes=data, gemms=gemms)
            return
        yield Operator(name="context.dgrad_scores", bytes=scores.bytes, gemms=(scores,))
        yield Operator(name="context.dgrad_values", bytes=columns.bytes, gemms=(columns,))
        yield _stream("dropout.backward", self.scores, accesses=2, masks=True)
        yield _stream("softmax.backward", self.scores, accesses=3)  # gradient, probabilities; gradient
        yield _stream("scale.backward", self.scores, accesses=2)
        yield Operator(name="scores.dgrad_queries", bytes=columns.bytes, gemms=(columns,))
        yield Operator(name="scores.dgrad_keys", bytes=columns.bytes, gemms=(columns,))
