"""The operators of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434).

The projections from the hidden state to the ranks are whole on every GPU, those from the ranks are split by heads. In
the prompt phase and in training every head gets keys and values of its own. In the decode phase the cache holds the
ranks, and a head's part of the projection is multiplied to its queries and to its output instead ("absorbed"), so that
all heads of a GPU share one key of kv_rank + rope_dim and one value of kv_rank elements.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from t3sim.inputs.transformer.blocks import LatentAttention

from .scores import Scores
from .work import Operator, Share, gemm_operator, stream_operator


@dataclass(frozen=True)
class LatentAttentionWork:
    """``block`` on one GPU."""

    share: Share
    block: LatentAttention

    @property
    def heads(self) -> int:
        """Of this GPU."""
        return self.share.part(self.block.heads)

    @property
    def latent(self) -> int:
        """Columns of the projection to the ranks of keys and values: what the cache holds of a token."""
        return self.block.kv_rank + self.block.rope_dim

    @property
    def queries(self) -> int:
        """Columns of queries."""
        return self.heads * self.block.query_dim

    @property
    def keys_and_values(self) -> int:
        """Columns of the projection from the ranks."""
        return self.heads * (self.block.nope_dim + self.block.value_dim)

    @property
    def scores(self) -> Scores:
        """Of every head, or absorbed."""
        model, block, tokens = self.share.model, self.block, self.share.tokens
        if model.phase == "decode":
            queries, values = self.heads * tokens * self.latent, self.heads * tokens * block.kv_rank
            return Scores(
                count=model.batch, rows=self.heads * model.sequence, context=model.context, key_dim=self.latent,
                value_dim=block.kv_rank, inputs=queries + model.batch * model.context * self.latent, outputs=values,
            )  # fmt: skip
        return Scores(
            count=model.batch * self.heads, rows=model.sequence, context=model.context, key_dim=block.query_dim,
            value_dim=block.value_dim, outputs=tokens * self.heads * block.value_dim,
            inputs=tokens * self.heads * (2 * block.query_dim + block.value_dim),
        )  # fmt: skip

    def forward(self) -> Iterator[Operator]:
        """Up to the output projection, without it."""
        block, tokens, hidden = self.block, self.share.tokens, self.share.hidden
        if block.q_rank is None:
            yield gemm_operator("q.forward", tokens, self.queries, hidden)
        else:
            yield gemm_operator("q_a.forward", tokens, block.q_rank, hidden)
            yield stream_operator("q_a_norm.forward", tokens * block.q_rank, accesses=2)
            yield gemm_operator("q_b.forward", tokens, self.queries, block.q_rank)
        yield gemm_operator("kv_a.forward", tokens, self.latent, hidden)
        yield stream_operator("kv_a_norm.forward", tokens * block.kv_rank, accesses=2)
        yield stream_operator("rope.forward", self._turned, accesses=2)
        absorbed = self.share.model.phase == "decode"
        if absorbed:
            yield gemm_operator("absorbed_keys.forward", tokens, block.kv_rank, block.nope_dim, self.heads)
        else:
            yield gemm_operator("kv_b.forward", tokens, self.keys_and_values, block.kv_rank)
        yield from self.scores.forward(fused=self.share.fused, dropout=self.share.dropout)
        if absorbed:
            yield gemm_operator("absorbed_values.forward", tokens, block.value_dim, block.kv_rank, self.heads)

    def backward(self) -> Iterator[Operator]:
        """From the gradient of the scores' output on, up to the projections."""
        yield from self.scores.backward(fused=self.share.fused, dropout=self.share.dropout)
        yield stream_operator("rope.backward", self._turned, accesses=2)

    def input_gradients(self, sublayer: str | None) -> Iterator[Operator]:
        """Of the projections: gradients of the ranks are all-reduced, those of the hidden state need not be."""
        block, tokens, hidden = self.block, self.share.tokens, self.share.hidden
        yield gemm_operator("kv_b.dgrad", tokens, block.kv_rank, self.keys_and_values, sublayer="ip-kv")
        yield gemm_operator("kv_b.wgrad", block.kv_rank, self.keys_and_values, tokens)
        yield stream_operator("kv_a_norm.backward", tokens * block.kv_rank, accesses=5)
        yield gemm_operator("kv_a.dgrad", tokens, hidden, self.latent)
        yield gemm_operator("kv_a.wgrad", hidden, self.latent, tokens)
        if block.q_rank is None:
            yield gemm_operator("q.dgrad", tokens, hidden, self.queries, sublayer=sublayer)
            yield gemm_operator("q.wgrad", hidden, self.queries, tokens)
            return
        yield gemm_operator("q_b.dgrad", tokens, block.q_rank, self.queries, sublayer=sublayer)
        yield gemm_operator("q_b.wgrad", block.q_rank, self.queries, tokens)
        yield stream_operator("q_a_norm.backward", tokens * block.q_rank, accesses=5)
        yield gemm_operator("q_a.dgrad", tokens, hidden, block.q_rank)
        yield gemm_operator("q_a.wgrad", hidden, block.q_rank, tokens)

    @property
    def _turned(self) -> int:
        """Rotated elements: of every head's query, and of the key that all share."""
        return self.share.tokens * (self.heads + 1) * self.block.rope_dim
