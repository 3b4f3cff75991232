"""What the configurations of all families share: their sizes within bounds, and what follows from them."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..blocks import Attention
from ..transformer import Layer, Transformer

MAX_WIDTH = 1 << 20
"""Widest hidden state or feed-forward layer: ten times that of the largest published models."""
MAX_LAYERS, MAX_HEADS, MAX_EXPERTS, MAX_VOCABULARY = 1000, 10_000, 10_000, 1 << 24

Width = Annotated[int, Field(ge=1, le=MAX_WIDTH)]
Heads = Annotated[int, Field(ge=1, le=MAX_HEADS)]
Count = Annotated[int, Field(ge=0, le=MAX_EXPERTS)]


class Family(BaseModel):
    """A configuration of one family. Files have many more keys, which are ignored; a key with a default may be absent,
    as in the family's own configuration class. Booleans and sizes are not converted: ``"64"`` is no number."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    hidden_size: Width
    num_hidden_layers: Annotated[int, Field(ge=1, le=MAX_LAYERS)]
    num_attention_heads: Heads
    vocab_size: Annotated[int, Field(ge=1, le=MAX_VOCABULARY)]
    tie_word_embeddings: bool = False

    def transformer(self) -> Transformer:
        """The model that the configuration describes."""
        return Transformer(
            hidden=self.hidden_size, vocabulary=self.vocab_size, layers=self.layers(), tied=self.tie_word_embeddings
        )

    def layers(self) -> tuple[tuple[Layer, int], ...]:
        """Kinds of layers, in the order in which each first appears."""
        kinds = [self.layer(index) for index in range(self.num_hidden_layers)]
        return tuple((kind, kinds.count(kind)) for kind in dict.fromkeys(kinds))

    def layer(self, index: int) -> Layer:
        """The layer of that number, from 0."""
        raise NotImplementedError

    def derived_head_dim(self) -> int:
        """Elements of a head, if heads share out the hidden state. Raises ValueError if they do not."""
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size ({self.hidden_size}) must be a multiple of num_attention_heads "
                f"({self.num_attention_heads}), or head_dim be given"
            )
        return self.hidden_size // self.num_attention_heads


class GroupedFamily(Family):
    """Families with grouped queries: fewer heads of keys and values, and heads of any size."""

    num_key_value_heads: Heads | None = None
    head_dim: Width | None = None
    attention_bias: bool = False

    @model_validator(mode="after")
    def _heads_share_keys(self) -> Self:
        if self.num_attention_heads % self.kv_heads:
            raise ValueError(
                f"num_attention_heads ({self.num_attention_heads}) must be a multiple of num_key_value_heads "
                f"({self.num_key_value_heads})"
            )
        if self.head_dim is None:
            self.derived_head_dim()
        return self

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values: as many as of queries if not given."""
        return self.num_key_value_heads or self.num_attention_heads

    def attention(self, *, qkv_bias: bool, out_bias: bool, qk_norm: bool = False) -> Attention:
        """The attention block, rotated as a whole."""
        dim = self.head_dim or self.derived_head_dim()
        return Attention(
            heads=self.num_attention_heads, kv_heads=self.kv_heads, head_dim=dim, rotary=dim,
            qkv_bias=qkv_bias, out_bias=out_bias, qk_norm=qk_norm,
        )  # fmt: skip
