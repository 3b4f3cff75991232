"""GPT-NeoX and Falcon: layer norms with biases, no gate, and attention beside the feed-forward layer."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from ..blocks import Attention, FeedForward
from ..transformer import Layer
from .family import Family, Heads, Width


class GptNeoX(Family):
    """``gpt_neox``: biases everywhere; a part of each head is rotated."""

    intermediate_size: Width
    use_parallel_residual: bool = True
    attention_bias: bool = True
    rotary_pct: Annotated[float, Field(ge=0, le=1)] = 0.25

    @model_validator(mode="after")
    def _heads_share_the_hidden_state(self) -> Self:
        self.derived_head_dim()
        return self

    def layer(self, index: int) -> Layer:
        """All are alike; the branches have norms of their own also if they are parallel."""
        dim = self.derived_head_dim()
        attention = Attention(
            heads=self.num_attention_heads, kv_heads=self.num_attention_heads, head_dim=dim,
            qkv_bias=self.attention_bias, out_bias=self.attention_bias, rotary=int(self.rotary_pct * dim),
        )  # fmt: skip
        feed_forward = FeedForward(width=self.intermediate_size, gated=False, bias=True)
        return Layer(
            attention=attention, feed_forward=feed_forward, norm_bias=True, parallel=self.use_parallel_residual
        )


class Falcon(Family):
    """``falcon``: keys and values of one head for all, or of ``num_kv_heads`` in the new architecture, which is always
    parallel and then has two norms if not told otherwise. The head is the embedding unless the file says it is not."""

    tie_word_embeddings: bool = True
    num_kv_heads: Heads | None = None
    ffn_hidden_size: Width | None = None
    new_decoder_architecture: bool = False
    multi_query: bool = True
    parallel_attn: bool = True
    alibi: bool = False
    bias: bool = False
    num_ln_in_parallel_attn: Annotated[int, Field(ge=1, le=2)] | None = None

    @model_validator(mode="after")
    def _heads_share_keys(self) -> Self:
        self.derived_head_dim()
        if self.num_attention_heads % self.kv_heads:
            raise ValueError(
                f"num_attention_heads ({self.num_attention_heads}) must be a multiple of num_kv_heads ({self.kv_heads})"
            )
        return self

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values."""
        if self.new_decoder_architecture:
            return self.num_kv_heads or self.num_attention_heads
        return 1 if self.multi_query else self.num_attention_heads

    def layer(self, index: int) -> Layer:
        """All are alike."""
        dim, parallel = self.derived_head_dim(), self.new_decoder_architecture or self.parallel_attn
        attention = Attention(
            heads=self.num_attention_heads, kv_heads=self.kv_heads, head_dim=dim, qkv_bias=self.bias,
            out_bias=self.bias, rotary=0 if self.alibi else dim,
        )  # fmt: skip
        width = self.ffn_hidden_size or 4 * self.hidden_size
        own_norms = self.num_ln_in_parallel_attn or (2 if self.new_decoder_architecture else 1)
        return Layer(
            attention=attention, feed_forward=FeedForward(width=width, gated=False, bias=self.bias),
            norms=own_norms if parallel else 2, norm_bias=True, parallel=parallel,
        )  # fmt: skip
