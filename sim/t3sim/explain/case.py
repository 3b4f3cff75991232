"""A record to be explained, and the quantities that rules take from it."""

from dataclasses import dataclass, field

from t3sim.common.units import TIMES, with_unit
from t3sim.run.request import TRACKED
from t3sim.run.result import Contention, Result, StreamContention

from .causes import FIELDS, TITLES

LINK_BOUND = 0.8
"""Part of a collective from which on the link counts as its bound; below, latencies and launches are a fifth."""
REASONS = {FIELDS[cause]: title for cause, title in TITLES.items()}
"""Why lines wait at a memory slice, by the fields of the record."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One sentence, or a few that belong together. ``figures``: what it is made from, times in ns, parts of 1."""

    rule: str
    text: str
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Case:
    """``record`` is what is explained; ``alone`` is the same work under ``sequential``, if it was simulated, too."""

    record: Result
    alone: Result | None = None

    @property
    def overlapped(self) -> bool:
        """Whether the reduce-scatter runs beside the GEMM."""
        return self.record.policy in TRACKED

    @property
    def total(self) -> float:
        return self.record.time_ns.total

    @property
    def contention(self) -> Contention:
        """Raises ValueError for a computed policy, which has none: rules that need it are for simulated ones."""
        if self.record.contention is None:
            raise ValueError(
                f"the record of {self.record.policy} has no contention: it was not simulated, or not observed"
            )
        return self.record.contention

    @property
    def stall(self) -> float:
        """Mean time that a CU waited for memory [ns], at most the GEMM's."""
        return min(sum(self.contention.cu_stall_ns.values()), self.record.time_ns.gemm)

    @property
    def exposed_reduce_scatter(self) -> float:
        """Reduce-scatter that is not hidden [ns]: all of it without overlap; with it, what comes between the GEMM and
        the all-gather. Exposed time is no measure of it: while packets are on their way nothing is."""
        time = self.record.time_ns
        if not self.overlapped:
            return time.reduce_scatter
        return min(time.reduce_scatter, max(0.0, time.total - time.gemm - time.all_gather))

    def link_time(self) -> tuple[float, float]:
        """Time of the busiest link in reduce-scatter and in all-gather [ns].

        The record has the sum, which is divided by the bytes that arrive; a reduction by kernels writes one of N chunks
        that did not come over the link. Packets have one form in both, so that headers divide alike.
        """
        traffic, tp = self.record.traffic_bytes_per_gpu, self.record.workload.tp
        scatter = traffic.rs_write
        if self.record.policy in ("sequential", "sequential-pipelined"):
            scatter *= (tp - 1) / tp
        both = scatter + traffic.ag_write
        busy = self.contention.link_busy_ns
        return (busy * scatter / both, busy * traffic.ag_write / both) if both else (0.0, 0.0)

    def link_shares(self) -> tuple[float, float]:
        """The same as parts of reduce-scatter and all-gather, at most 1."""
        scatter, gather = self.link_time()
        time = self.record.time_ns
        return _share(scatter, time.reduce_scatter), _share(gather, time.all_gather)


def _share(busy: float, span: float) -> float:
    return min(1.0, busy / span) if span else 0.0


def waits(stream: StreamContention) -> dict[str, int]:
    """Memory clocks that lines of a stream waited at a slice, by field of the record."""
    return {name: getattr(stream, name) for name in REASONS}


def ns(time: float) -> str:
    """A time in ns with its unit."""
    return with_unit(TIMES, time)


def part(share: float) -> str:
    """A part of 1 in percent."""
    return f"{100 * share:.0f} %"
