"""The operators of attention with heads of keys and values, from its input's norm to its output projection.

Queries, keys and values are one column-parallel projection. A head of keys and values that fewer heads of queries share
than there are GPUs is repeated, and so are its projection and cache.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from t3sim.inputs.geometry import ceil_div
from t3sim.inputs.transformer.blocks import Attention

from .scores import Scores
from .work import Operator, Share, gemm_operator, stream_operator


@dataclass(frozen=True)
class AttentionWork:
    """``block`` on one GPU."""

    share: Share
    block: Attention

    @property
    def queries(self) -> int:
        """Columns of queries, and of the output."""
        return self.share.part(self.block.out_columns)

    @property
    def keys(self) -> int:
        """Columns of keys, and of values."""
        return self.share.part(self.block.kv_copies(self.share.tp) * self.block.head_dim)

    @property
    def columns(self) -> int:
        """Of the whole projection."""
        return self.queries + 2 * self.keys

    @property
    def scores(self) -> Scores:
        """Heads that TP does not divide are shared out over the batch."""
        model, block, tp = self.share.model, self.block, self.share.tp
        copies = block.kv_copies(tp)
        return Scores(
            count=ceil_div(model.batch * copies, tp),
            rows=ceil_div(block.heads, copies) * model.sequence,
            context=model.context,
            key_dim=block.head_dim,
            value_dim=block.head_dim,
            inputs=model.tokens * self.queries + 2 * model.batch * model.context * self.keys,
            outputs=model.tokens * self.queries,
        )

    def forward(self) -> Iterator[Operator]:
        """Up to the output projection, without it."""
        share = self.share
        yield gemm_operator("qkv.forward", share.tokens, self.columns, share.hidden)
        if self.block.qk_norm:
            yield stream_operator("qk_norm.forward", self._turned(self.block.head_dim), accesses=2)
        if self.block.rotary:
            yield stream_operator("rope.forward", self._turned(self.block.rotary), accesses=2)
        yield from self.scores.forward(fused=share.fused, dropout=share.dropout)

    def backward(self) -> Iterator[Operator]:
        """From the gradient of the scores' output on, without the input's gradient that is all-reduced."""
        yield from self.scores.backward(fused=self.share.fused, dropout=self.share.dropout)
        if self.block.rotary:
            yield stream_operator("rope.backward", self._turned(self.block.rotary), accesses=2)
        if self.block.qk_norm:
            yield stream_operator("qk_norm.backward", self._turned(self.block.head_dim), accesses=5)

    def input_gradients(self, sublayer: str | None) -> Iterator[Operator]:
        """Of the projection: the gradient that is all-reduced (unless another GEMM has it, None), the weights'."""
        share = self.share
        if sublayer is not None:
            yield gemm_operator("qkv.dgrad", share.tokens, share.hidden, self.columns, sublayer=sublayer)
        yield gemm_operator("qkv.wgrad", share.hidden, self.columns, share.tokens)

    def _turned(self, elements: int) -> int:
        """``elements`` of every head of queries and of keys, for all tokens."""
        heads = (self.queries + self.keys) // self.block.head_dim
        return self.share.tokens * heads * elements
