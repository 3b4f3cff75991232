"""The rule of the backlog: how much, and for how long, communication may wait while compute goes first.

Everything follows from what is predicted before the run.
"""

from dataclasses import dataclass

MOST_BACKLOG = 65535
"""DMA blocks, and PATIENCE_CYCLES, that the register holds."""
PATIENCE_CYCLES = 64
"""Memory clocks in which the register counts a wait."""


@dataclass(frozen=True, kw_only=True)
class Backlog:
    """``gemm_ns``: time of the GEMM alone as :mod:`t3sim.inputs.tiling` predicts it, in ``stages``. Times of the link,
    headers included: ``ring_ns`` for what one of ``gpus`` sends in a collective, ``block_ns`` for a DMA block,
    ``stage_ns`` for what a stage stores, in ``stage_blocks`` DMA blocks."""

    gpus: int
    gemm_ns: float
    stages: int
    ring_ns: float
    block_ns: float
    stage_ns: float
    stage_blocks: int

    @property
    def spare_ns(self) -> float:
        """By what a chunk may be late: its share of the GEMM takes so much longer than its transfer. If it is later,
        the neighbour has made its own part of the chunk before, and waits."""
        return max(0.0, self.gemm_ns - self.ring_ns) / self.gpus

    @property
    def blocks(self) -> int:
        """DMA blocks, ready or under way, from which communication is behind: more than a stage makes at once, and than
        the link can send in the time that it has."""
        return max(2, self.stage_blocks, int(self.spare_ns / self.block_ns))

    @property
    def patience_ns(self) -> float:
        """For how long DMA blocks may wait before communication is behind: half of the time that it has, so that the
        other half is left to catch up, but at least twice what a stage takes the link."""
        return max(2 * self.stage_ns, self.spare_ns / 2)

    @property
    def slack_ns(self) -> float:
        """By what the link is done before the GEMM: it has nothing to send until the first stage is over."""
        return self.gemm_ns * (1 - 1 / self.stages) - self.ring_ns

    @property
    def communication_may_wait(self) -> bool:
        """Whether the run gets no longer if communication waits as long as it may. With two GPUs all of it is stores of
        the neighbour's GEMM, whose CUs would wait."""
        return self.gpus > 2 and self.slack_ns >= self.patience_ns
