"""A decoder-only transformer as tensor parallelism sees it, and the tokens that it is run on."""

from dataclasses import dataclass
from typing import Literal, get_args

from .blocks import Attention, Experts, FeedForward, LatentAttention

Phase = Literal["prompt", "decode", "training"]
PHASES: tuple[Phase, ...] = get_args(Phase)
"""Forward pass over whole prompts; forward pass over one new token of every sequence, with a cache of keys and values;
forward and backward pass of one iteration."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer. ``parallel``: attention and feed-forward read the same input, and their outputs are added at once;
    ``norms``: layer norms, one if both branches of a parallel layer share it, else two; ``norm_bias``: each has a bias
    beside its gain."""

    attention: Attention | LatentAttention
    feed_forward: FeedForward | Experts
    norms: int = 2
    norm_bias: bool = False
    parallel: bool = False

    def parameters(self, hidden: int) -> int:
        """Weights, biases and gains."""
        norms = self.norms * (1 + self.norm_bias) * hidden
        return norms + self.attention.parameters(hidden) + self.feed_forward.parameters(hidden)


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """``layers``: kinds of layers with how many there are of each; ``tied``: the output head is the embedding;
    ``learned_positions``: positions are looked up and added; ``dropout``: in training, on scores and residuals."""

    hidden: int
    vocabulary: int
    layers: tuple[tuple[Layer, int], ...]
    tied: bool = False
    learned_positions: bool = False
    dropout: bool = False

    @property
    def depth(self) -> int:
        """Layers of all kinds."""
        return sum(count for _, count in self.layers)

    @property
    def parameters(self) -> int:
        """Weights, biases and gains of layers, last norm, embedding and head."""
        layers = sum(count * layer.parameters(self.hidden) for layer, count in self.layers)
        last = (1 + self.layers[-1][0].norm_bias) * self.hidden
        return layers + last + (1 if self.tied else 2) * self.vocabulary * self.hidden


@dataclass(frozen=True, kw_only=True)
class SizedModel:
    """A transformer on ``batch`` sequences, each with ``sequence`` new tokens that attend to ``context`` tokens.

    In the decode phase ``sequence`` is 1; otherwise it is the context. ``parameters``: for the optimizer's step.
    """

    name: str
    transformer: Transformer
    parameters: int
    phase: Phase
    batch: int
    sequence: int
    context: int

    @property
    def tokens(self) -> int:
        """Rows of every GEMM with weights."""
        return self.batch * self.sequence

    @property
    def training(self) -> bool:
        """Whether there is a backward pass."""
        return self.phase == "training"
