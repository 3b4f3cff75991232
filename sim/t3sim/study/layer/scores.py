"""What is between queries, keys, values and attention's output: the same kernels for every kind of attention."""

from collections.abc import Iterator
from dataclasses import dataclass

from t3sim.inputs.geometry import ELEMENT_BYTES

from .work import Gemm, Operator, products, stream_operator


@dataclass(frozen=True, kw_only=True)
class Scores:
    """``count`` matrices of ``rows`` x ``context`` scores, of queries and keys of ``key_dim`` elements and values of
    ``value_dim``. Heads that share keys are rows of one matrix.

    ``inputs``: elements of queries, keys and values together; ``outputs``: of the context.
    """

    count: int
    rows: int
    context: int
    key_dim: int
    value_dim: int
    inputs: int
    outputs: int

    @property
    def elements(self) -> int:
        """Scores."""
        return self.count * self.rows * self.context

    def _gemm(self, m: int, n: int, k: int) -> Gemm:
        return Gemm(m=m, n=n, k=k, count=self.count)

    def forward(self, *, fused: bool, dropout: bool) -> Iterator[Operator]:
        """Five kernels and dropout, or one (FlashAttention, arXiv 2205.14135, without its statistics of a row)."""
        scores = self._gemm(self.rows, self.context, self.key_dim)
        columns = self._gemm(self.rows, self.value_dim, self.context)
        if fused:
            data = ELEMENT_BYTES * (self.inputs + self.outputs)
            yield Operator(name="attention.forward", bytes=data, gemms=(scores, columns))
            return
        yield products("scores.forward", scores)
        yield stream_operator("scale.forward", self.elements, accesses=2)
        yield stream_operator("mask.forward", self.elements, accesses=2)  # the mask itself is shared by all matrices
        yield stream_operator("softmax.forward", self.elements, accesses=2)
        if dropout:
            yield stream_operator("dropout.forward", self.elements, accesses=2, masks=True)
        yield products("context.forward", columns)

    def backward(self, *, fused: bool, dropout: bool) -> Iterator[Operator]:
        """Gradients of scores, values, queries and keys; fused, the scores are computed once more."""
        of_scores = self._gemm(self.rows, self.context, self.value_dim)
        of_values = self._gemm(self.context, self.value_dim, self.rows)
        of_queries = self._gemm(self.rows, self.key_dim, self.context)
        of_keys = self._gemm(self.context, self.key_dim, self.rows)
        if fused:  # inputs, output and its gradient; gradients of the inputs
            data = ELEMENT_BYTES * 2 * (self.inputs + self.outputs)
            again = self._gemm(self.rows, self.context, self.key_dim)
            gemms = (again, of_scores, of_values, of_queries, of_keys)
            yield Operator(name="attention.backward", bytes=data, gemms=gemms)
            return
        yield products("context.dgrad_scores", of_scores)
        yield products("context.dgrad_values", of_values)
        if dropout:
            yield stream_operator("dropout.backward", self.elements, accesses=2, masks=True)
        yield stream_operator("softmax.backward", self.elements, accesses=3)  # gradient, probabilities; gradient
        yield stream_operator("scale.backward", self.elements, accesses=2)
        yield products("scores.dgrad_queries", of_queries)
        yield products("scores.dgrad_keys", of_keys)
