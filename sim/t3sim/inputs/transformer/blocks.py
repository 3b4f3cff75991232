"""The blocks of a transformer's layer: attention and feed-forward, with their weights and the columns that TP splits.

Two numbers of each block decide its all-reduced GEMMs. ``out_columns``: inner dimension of the row-parallel projection
whose partial outputs are summed in the forward pass. ``in_columns``: columns of the column-parallel projections, the
inner dimension of the input's gradient, which is summed in the backward pass. Both are of all GPUs together.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Heads with keys and values of their own (MHA), or shared by groups (GQA) or by all of them (MQA).

    ``rotary``: elements of a head that a rotary position embedding turns; ``qk_norm``: queries and keys are normed,
    with a gain for each element of a head.
    """

    heads: int
    kv_heads: int
    head_dim: int
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: bool = False
    rotary: int = 0

    def kv_copies(self, tp: int) -> int:
        """Heads of keys and values on all of ``tp`` GPUs: a head is repeated where there are fewer than GPUs."""
        return max(self.kv_heads, min(tp, self.heads))

    @property
    def out_columns(self) -> int:
        """What the output projection takes in."""
        return self.heads * self.head_dim

    def in_columns(self, tp: int) -> int:
        """Queries, keys and values."""
        return (self.heads + 2 * self.kv_copies(tp)) * self.head_dim

    def parameters(self, hidden: int) -> int:
        """Weights, biases and gains."""
        columns = (self.heads + 2 * self.kv_heads) * self.head_dim
        weights = hidden * (columns + self.out_columns)
        return weights + self.qkv_bias * columns + self.out_bias * hidden + 2 * self.qk_norm * self.head_dim


@dataclass(frozen=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).

    Keys and values are ``kv_rank`` numbers of a token, which ``kv_b`` makes into ``nope_dim`` of a head's key and
    ``value_dim`` of its value; a part of the key of ``rope_dim`` is the same for all heads. Queries come from
    ``q_rank`` numbers, or from the hidden state at once (None). The ranks' own projections are whole on every GPU; the
    projections from them are split by heads.
    """

    heads: int
    q_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    bias: bool = False

    @property
    def query_dim(self) -> int:
        """Of a head's query and key."""
        return self.nope_dim + self.rope_dim

    @property
    def out_columns(self) -> int:
        """What the output projection takes in."""
        return self.heads * self.value_dim

    @property
    def query_columns(self) -> int:
        """Queries of all heads."""
        return self.heads * self.query_dim

    @property
    def kv_columns(self) -> int:
        """Keys without their rotated part, and values, of all heads."""
        return self.heads * (self.nope_dim + self.value_dim)

    def parameters(self, hidden: int) -> int:
        """Weights, biases and gains."""
        into = hidden if self.q_rank is None else self.q_rank
        queries = into * self.query_columns + (0 if self.q_rank is None else (hidden + 1 + self.bias) * self.q_rank)
        latent = hidden * (self.kv_rank + self.rope_dim) + self.kv_rank + self.bias * (self.kv_rank + self.rope_dim)
        return queries + latent + self.kv_rank * self.kv_columns + (self.out_columns + self.bias) * hidden


@dataclass(frozen=True, kw_only=True)
class FeedForward:
    """Two matrices with an activation between them, or three if it is ``gated`` (SwiGLU): the first has the columns of
    gate and up projection side by side.

    ``tag``: what the names of its sublayers have in addition, where layers of another kind have the plain names.
    """

    width: int
    gated: bool
    bias: bool = False
    tag: str = ""

    @property
    def out_columns(self) -> int:
        """What FC-2 takes in."""
        return self.width

    @property
    def in_columns(self) -> int:
        """What FC-1 gives."""
        return (1 + self.gated) * self.width

    def parameters(self, hidden: int) -> int:
        """Weights and biases."""
        return hidden * (self.in_columns + self.width) + self.bias * (self.in_columns + hidden)


@dataclass(frozen=True, kw_only=True)
class Experts:
    """Gated experts, ``per_token`` of ``count`` for each token, and a shared one of ``shared_width`` (or none, 0).

    Each is split over the GPUs as a dense layer is. A token's output is the sum over its experts, so its GEMM's inner
    dimension is that of all of them side by side, and one all-reduce of tokens x hidden follows.
    """

    count: int
    per_token: int
    width: int
    shared_width: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    tag: str = ""

    @property
    def out_columns(self) -> int:
        """What FC-2 of a token's experts takes in."""
        return self.per_token * self.width + self.shared_width

    @property
    def in_columns(self) -> int:
        """What FC-1 of a token's experts gives."""
        return 2 * self.out_columns

    def active(self, tokens: int) -> int:
        """Experts that ``tokens`` reach if routing is balanced."""
        return min(self.count, tokens * self.per_token)

    def parameters(self, hidden: int) -> int:
        """Weights of all experts and of the router."""
        experts = 3 * hidden * (self.count * self.width + self.shared_width)
        return experts + hidden * (self.count + self.shared_gate) + self.router_bias * self.count
