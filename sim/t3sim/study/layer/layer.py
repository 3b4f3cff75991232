"""The operators of one layer, in the order in which they run."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from t3sim.inputs.geometry import ceil_div
from t3sim.inputs.transformer.blocks import Attention, FeedForward
from t3sim.inputs.transformer.sublayers import backward_sublayers, forward_sublayers
from t3sim.inputs.transformer.transformer import Layer

from .attention import AttentionWork
from .feed_forward import DenseWork, ExpertsWork
from .latent_attention import LatentAttentionWork
from .work import Gemm, Operator, Share, gemm_operator, products, stream_operator


@dataclass(frozen=True)
class LayerWork:
    """``layer`` on one GPU. In comments: what is read; what is written.

    A parallel layer has both norms, or the one, before its branches; ``op+fc2`` and ``ip+fc1`` then stand for both
    GEMMs (:mod:`t3sim.inputs.transformer.sublayers`).
    """

    share: Share
    layer: Layer

    @cached_property
    def attention(self) -> AttentionWork | LatentAttentionWork:
        """Attention's part."""
        block = self.layer.attention
        if isinstance(block, Attention):
            return AttentionWork(self.share, block)
        return LatentAttentionWork(self.share, block)

    @cached_property
    def feed_forward(self) -> DenseWork | ExpertsWork:
        """The feed-forward layer's part."""
        block = self.layer.feed_forward
        if isinstance(block, FeedForward):
            return DenseWork(self.share, block)
        return ExpertsWork(self.share, block)

    @cached_property
    def reduced(self) -> dict[str, Gemm]:
        """Sublayer -> its GEMM on the GPU with the largest shard."""
        hidden, tp = self.share.hidden, self.share.tp
        found = forward_sublayers(self.layer, hidden) | backward_sublayers(self.layer, hidden, tp)
        return {name: Gemm(m=self.share.tokens, n=n, k=ceil_div(k, tp)) for name, (n, k) in found.items()}

    def _named(self, start: str) -> str | None:
        """The sublayer called ``start``, with its tag if it has one."""
        tag = self.layer.feed_forward.tag if start.startswith("fc") else ""
        return start + tag if start + tag in self.reduced else None

    def forward(self) -> Iterator[Operator]:
        """The forward pass."""
        stream, masks = self.share.stream, self.share.dropout
        fc2 = self._named("fc2") or "op+fc2"
        yield stream_operator("ln1.forward", stream, accesses=2)
        yield from self.attention.forward()
        if self.layer.parallel:
            if self.layer.norms > 1:
                yield stream_operator("ln2.forward", stream, accesses=2)
        else:
            yield products("op.forward", self.reduced["op"], "op")
            yield stream_operator("residual1.forward", stream, accesses=3, masks=masks)  # output, input; their sum
            yield stream_operator("ln2.forward", stream, accesses=2)
        yield from self.feed_forward.forward(self.reduced[fc2])
        yield products(f"{'op+fc2' if self.layer.parallel else 'fc2'}.forward", self.reduced[fc2], fc2)
        yield stream_operator("residual2.forward", stream, accesses=3, masks=masks)

    def backward(self) -> Iterator[Operator]:
        """Twice the FLOP of the forward pass: each GEMM has one for its input's gradient and one for its weights'.

        A layer norm reads gradient and input for its gain, and again for its input's gradient, which it writes.
        """
        share, stream = self.share, self.share.stream
        if share.dropout:
            yield stream_operator("dropout2.backward", stream, accesses=2, masks=True)
        yield from self.feed_forward.backward()
        fc1 = self._named("fc1") or "ip+fc1"
        if fc1 != "ip+fc1":
            yield products("fc1.dgrad", self.reduced[fc1], fc1)
        yield from self.feed_forward.weight_gradients(self.reduced[fc1])
        if self.layer.norms > 1:
            yield stream_operator("ln2.backward", stream, accesses=5)
            yield stream_operator("residual2.backward", stream, accesses=3)  # gradients of both branches; their sum
        if share.dropout and not self.layer.parallel:
            yield stream_operator("dropout1.backward", stream, accesses=2, masks=True)
        columns = share.part(self.layer.attention.out_columns)
        yield gemm_operator("op.dgrad", share.tokens, columns, share.hidden)
        yield gemm_operator("op.wgrad", columns, share.hidden, share.tokens)
        yield from self.attention.backward()
        if fc1 == "ip+fc1":
            yield products("ip+fc1.dgrad", self.reduced[fc1], fc1)
        yield from self.attention.input_gradients(self._named("ip"))
        yield stream_operator("ln1.backward", stream, accesses=5)
        yield stream_operator("residual1.backward", stream, accesses=3)
