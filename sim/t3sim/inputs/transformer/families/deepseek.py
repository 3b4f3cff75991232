"""DeepSeek-V2 and V3: latent attention, shared and routed experts. Layers that predict further tokens are left out."""

from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ..blocks import Experts, FeedForward, LatentAttention
from ..transformer import Layer
from .family import MAX_LAYERS, Count, Family, Width
from .mixtures import DENSE


class DeepSeek(Family):
    """``deepseek_v2`` and ``deepseek_v3``, whose router has a bias for each expert. Layer *i* has experts from
    ``first_k_dense_replace`` on, if *i* is a multiple of ``moe_layer_freq``."""

    model_type: Literal["deepseek_v2", "deepseek_v3"]
    intermediate_size: Width
    q_lora_rank: Width | None = None
    kv_lora_rank: Width
    qk_nope_head_dim: Width
    qk_rope_head_dim: Width
    v_head_dim: Width
    attention_bias: bool = False
    moe_intermediate_size: Width
    n_routed_experts: Count | None = None
    n_shared_experts: Count | None = None
    num_experts_per_tok: Count | None = None
    first_k_dense_replace: Annotated[int, Field(ge=0, le=MAX_LAYERS)] = 0
    moe_layer_freq: Annotated[int, Field(ge=1, le=MAX_LAYERS)] = 1

    @model_validator(mode="after")
    def _experts_exist(self) -> Self:
        if self.n_routed_experts and not 1 <= (self.num_experts_per_tok or 0) <= self.n_routed_experts:
            raise ValueError(
                f"num_experts_per_tok must be in 1 to n_routed_experts ({self.n_routed_experts}), not "
                f"{self.num_experts_per_tok}"
            )
        return self

    @cached_property
    def sparse(self) -> frozenset[int]:
        """The layers that have experts."""
        layers = range(self.first_k_dense_replace, self.num_hidden_layers if self.n_routed_experts else 0)
        return frozenset(index for index in layers if index % self.moe_layer_freq == 0)

    def layer(self, index: int) -> Layer:
        """Dense or with experts."""
        attention = LatentAttention(
            heads=self.num_attention_heads, q_rank=self.q_lora_rank, kv_rank=self.kv_lora_rank,
            nope_dim=self.qk_nope_head_dim, rope_dim=self.qk_rope_head_dim, value_dim=self.v_head_dim,
            bias=self.attention_bias,
        )  # fmt: skip
        return Layer(attention=attention, feed_forward=self.experts() if index in self.sparse else self.dense())

    def experts(self) -> Experts:
        """Of a layer that has some: the shared ones are one of their common width."""
        assert self.n_routed_experts and self.num_experts_per_tok
        return Experts(
            count=self.n_routed_experts, per_token=self.num_experts_per_tok, width=self.moe_intermediate_size,
            shared_width=(self.n_shared_experts or 0) * self.moe_intermediate_size,
            router_bias=self.model_type == "deepseek_v3",
        )  # fmt: skip

    def dense(self) -> FeedForward:
        """Of a layer without experts."""
        return FeedForward(width=self.intermediate_size, gated=True, tag=DENSE if self.sparse else "")
