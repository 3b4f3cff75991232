"""Mixtral, Qwen2-MoE and Qwen3-MoE: experts in all layers, or in some."""

from functools import cached_property
from typing import Annotated, Self

from pydantic import Field, model_validator

from ..blocks import Experts, FeedForward
from ..transformer import Layer
from .family import MAX_LAYERS, Count, GroupedFamily, Width

DENSE = "-dense"
"""Tag of the dense layers' sublayers where others have experts."""


class Mixtral(GroupedFamily):
    """``mixtral``: every layer has experts."""

    intermediate_size: Width
    num_local_experts: Annotated[Count, Field(ge=1)]
    num_experts_per_tok: Annotated[Count, Field(ge=1)]

    @model_validator(mode="after")
    def _experts_exist(self) -> Self:
        _check_experts("num_local_experts", self.num_local_experts, self.num_experts_per_tok)
        return self

    def layer(self, index: int) -> Layer:
        """All are alike."""
        experts = Experts(
            count=self.num_local_experts, per_token=self.num_experts_per_tok, width=self.intermediate_size
        )
        return Layer(attention=self.attention(qkv_bias=False, out_bias=False), feed_forward=experts)


class QwenMixture(GroupedFamily):
    """``qwen2_moe`` and ``qwen3_moe``. Layer *i* has experts if it is not in ``mlp_only_layers`` and *i* + 1 is a
    multiple of ``decoder_sparse_step``."""

    intermediate_size: Width
    moe_intermediate_size: Width
    num_experts: Count
    num_experts_per_tok: Annotated[Count, Field(ge=1)]
    decoder_sparse_step: Annotated[int, Field(ge=1, le=MAX_LAYERS)] = 1
    mlp_only_layers: list[Annotated[int, Field(ge=0, le=MAX_LAYERS)]] = Field(
        default_factory=list, max_length=MAX_LAYERS
    )

    @model_validator(mode="after")
    def _experts_exist(self) -> Self:
        if self.num_experts:
            _check_experts("num_experts", self.num_experts, self.num_experts_per_tok)
        return self

    @cached_property
    def sparse(self) -> frozenset[int]:
        """The layers that have experts."""
        step = self.decoder_sparse_step
        return frozenset(range(step - 1, self.num_hidden_layers if self.num_experts else 0, step)).difference(
            self.mlp_only_layers
        )

    def block(self, index: int) -> Experts | FeedForward:
        """The layer's feed-forward block."""
        if index in self.sparse:
            return self.experts()
        return FeedForward(width=self.intermediate_size, gated=True, tag=DENSE if self.sparse else "")

    def experts(self) -> Experts:
        """Of a layer that has some."""
        return Experts(count=self.num_experts, per_token=self.num_experts_per_tok, width=self.moe_intermediate_size)


class Qwen2Moe(QwenMixture):
    """``qwen2_moe``: a shared expert with a gate, and biases of queries, keys and values."""

    shared_expert_intermediate_size: Width

    def experts(self) -> Experts:
        """With the shared one."""
        return Experts(
            count=self.num_experts, per_token=self.num_experts_per_tok, width=self.moe_intermediate_size,
            shared_width=self.shared_expert_intermediate_size, shared_gate=True,
        )  # fmt: skip

    def layer(self, index: int) -> Layer:
        """Dense or with experts."""
        return Layer(attention=self.attention(qkv_bias=True, out_bias=False), feed_forward=self.block(index))


class Qwen3Moe(QwenMixture):
    """``qwen3_moe``: no shared expert; queries and keys are normed."""

    def layer(self, index: int) -> Layer:
        """Dense or with experts."""
        bias = self.attention_bias
        attention = self.attention(qkv_bias=bias, out_bias=bias, qk_norm=True)
        return Layer(attention=attention, feed_forward=self.block(index))


def _check_experts(key: str, count: int, per_token: int) -> None:
    if per_token > count:
        raise ValueError(f"num_experts_per_tok ({per_token}) must be at most {key} ({count})")
