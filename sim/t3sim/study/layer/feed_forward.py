"""The operators of a feed-forward layer, dense or of experts, without the two GEMMs that are all-reduced."""

from collections.abc import Iterator
from dataclasses import dataclass

from t3sim.inputs.geometry import ELEMENT_BYTES, ceil_div
from t3sim.inputs.transformer.blocks import Experts, FeedForward

from .work import Gemm, Operator, Share, gemm_operator, stream_operator


@dataclass(frozen=True)
class DenseWork:
    """``block`` on one GPU."""

    share: Share
    block: FeedForward

    @property
    def first(self) -> int:
        """Columns of FC-1."""
        return (1 + self.block.gated) * self.second

    @property
    def second(self) -> int:
        """What FC-2 takes in."""
        return self.share.part(self.block.width)

    def forward(self, reduced: Gemm) -> Iterator[Operator]:
        """Up to FC-2; ``reduced``: the GEMM that FC-2 is part of, here and below."""
        share = self.share
        yield gemm_operator("fc1.forward", share.tokens, self.first, share.hidden)
        yield _activation(self.block.gated, "", share.tokens * self.second, backward=False)

    def backward(self) -> Iterator[Operator]:
        """From FC-2's gradient to FC-1's."""
        share = self.share
        yield gemm_operator("fc2.dgrad", share.tokens, self.second, share.hidden)
        yield gemm_operator("fc2.wgrad", self.second, share.hidden, share.tokens)
        yield _activation(self.block.gated, "", share.tokens * self.second, backward=True)

    def weight_gradients(self, reduced: Gemm) -> Iterator[Operator]:
        """FC-1's, after its input's."""
        yield gemm_operator("fc1.wgrad", self.share.hidden, self.first, self.share.tokens)


@dataclass(frozen=True)
class ExpertsWork:
    """``block`` on one GPU, with balanced routing: as many rows for each expert, in one kernel for all experts.

    Rows are gathered and summed where a kernel loads and stores them, which takes no kernel of its own. The simulated
    GEMMs read the weights of as many experts as a token has; those of the others are read beside them.
    """

    share: Share
    block: Experts

    @property
    def active(self) -> int:
        """Experts that have rows."""
        return self.block.active(self.share.tokens)

    @property
    def rows(self) -> int:
        """Of each of them."""
        return ceil_div(self.share.tokens * self.block.per_token, self.active)

    @property
    def width(self) -> int:
        """Columns of an expert."""
        return self.share.part(self.block.width)

    @property
    def shared(self) -> int:
        """Columns of the shared expert."""
        return self.share.part(self.block.shared_width)

    def forward(self, reduced: Gemm) -> Iterator[Operator]:
        """Up to FC-2, and the weights that its simulation does not read."""
        tokens, hidden = self.share.tokens, self.share.hidden
        yield gemm_operator("router.forward", tokens, self.block.count, hidden)
        yield self._grouped("experts.fc1.forward", self.rows, 2 * self.width, hidden)
        yield _activation(True, "experts.", self.active * self.rows * self.width, backward=False)
        if self.shared:
            yield gemm_operator("shared.fc1.forward", tokens, 2 * self.shared, hidden)
            yield _activation(True, "shared.", tokens * self.shared, backward=False)
        yield from self._other_weights("experts.fc2.weights", self.width, reduced)

    def backward(self) -> Iterator[Operator]:
        """From FC-2's gradient to FC-1's."""
        tokens, hidden = self.share.tokens, self.share.hidden
        yield self._grouped("experts.fc2.dgrad", self.rows, self.width, hidden)
        yield self._grouped("experts.fc2.wgrad", self.width, hidden, self.rows)
        yield _activation(True, "experts.", self.active * self.rows * self.width, backward=True)
        if self.shared:
            yield gemm_operator("shared.fc2.dgrad", tokens, self.shared, hidden)
            yield gemm_operator("shared.fc2.wgrad", self.shared, hidden, tokens)
            yield _activation(True, "shared.", tokens * self.shared, backward=True)

    def weight_gradients(self, reduced: Gemm) -> Iterator[Operator]:
        """FC-1's and the router's; ``reduced``: the GEMM of FC-1's input gradient."""
        tokens, hidden = self.share.tokens, self.share.hidden
        yield from self._other_weights("experts.fc1.weights", 2 * self.width, reduced)
        yield self._grouped("experts.fc1.wgrad", hidden, 2 * self.width, self.rows)
        if self.shared:
            yield gemm_operator("shared.fc1.wgrad", hidden, 2 * self.shared, tokens)
        yield gemm_operator("router.dgrad", tokens, hidden, self.block.count)
        yield gemm_operator("router.wgrad", hidden, self.block.count, tokens)

    def _grouped(self, name: str, m: int, n: int, k: int) -> Operator:
        return gemm_operator(name, m, n, k, self.active)

    def _other_weights(self, name: str, columns: int, reduced: Gemm) -> Iterator[Operator]:
        experts = self.active - self.block.per_token
        if experts:
            data = ELEMENT_BYTES * experts * columns * self.share.hidden
            yield Operator(name=name, bytes=data, beside=reduced)


def _activation(gated: bool, where: str, elements: int, *, backward: bool) -> Operator:
    """Forward it reads its inputs and writes its output; backward it reads the gradient as well, and writes one for
    each input. A gated one has two inputs."""
    inputs = 1 + gated
    name = f"{where}{'glu' if gated else 'gelu'}.{'backward' if backward else 'forward'}"
    return stream_operator(name, elements, accesses=1 + (2 if backward else 1) * inputs)
