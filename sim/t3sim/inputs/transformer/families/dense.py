"""Llama, Mistral, Qwen2 and Qwen3: RMS norms, rotary positions, grouped queries, a gated feed-forward layer."""

from ..blocks import Attention, FeedForward
from ..transformer import Layer
from .family import GroupedFamily, Width


class Llama(GroupedFamily):
    """``llama`` and ``mistral`` (whose sliding window changes no size)."""

    intermediate_size: Width
    mlp_bias: bool = False

    def layer(self, index: int) -> Layer:
        """All are alike."""
        feed_forward = FeedForward(width=self.intermediate_size, gated=True, bias=self.mlp_bias)
        return Layer(attention=self.heads(), feed_forward=feed_forward)

    def heads(self) -> Attention:
        """Biases of all projections, or of none."""
        return self.attention(qkv_bias=self.attention_bias, out_bias=self.attention_bias)


class Qwen2(Llama):
    """``qwen2``: queries, keys and values have biases, the output has none."""

    def heads(self) -> Attention:
        """With those biases."""
        return self.attention(qkv_bias=True, out_bias=False)


class Qwen3(Llama):
    """``qwen3``: queries and keys are normed."""

    def heads(self) -> Attention:
        """With those norms."""
        return self.attention(qkv_bias=self.attention_bias, out_bias=self.attention_bias, qk_norm=True)
