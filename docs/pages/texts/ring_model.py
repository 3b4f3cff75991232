"""Times of ring collectives in closed form: of a link with a latency and a rate, and ASTRA-sim's cost model.

A ring of N GPUs moves a reduce-scatter or an all-gather in N - 1 steps, each of one chunk of 1/N of the data.
"""

from dataclasses import dataclass, replace
from math import floor


def pass_ns(*, gpus: int, chunk_bytes: float, gb_s: float, latency_ns: float) -> float:
    """Time of a reduce-scatter or all-gather of ``chunk_bytes`` per step (with its headers) on links alone.

    (N - 1) (latency + chunk / rate): a step begins when the last one's chunk has arrived, and memory takes no time.
    """
    return (gpus - 1) * (latency_ns + chunk_bytes / gb_s)


@dataclass(frozen=True, kw_only=True)
class AstraRing:
    """ASTRA-sim's cost model of an all-reduce on a ring, with its analytical network and its ring collective.

    The data are cut into ``splits`` that follow each other. Each takes 2 (N - 1) messages of size / (splits N) bytes: a
    message takes the latency and its bytes at the link's rate, which ASTRA-sim takes in 2^30 bytes per 10^9 bytes
    asked for, rounded down to a nanosecond. Each of the N - 1 messages of the reduce-scatter is then added, which reads
    two and writes one at the rate of the local memory (10^9 bytes per second). ``endpoint_delay_ns`` is paid for each
    message, and once more.
    """

    size_bytes: int
    npus: int
    gb_s: float
    latency_ns: int
    splits: int
    local_memory_gb_s: float
    endpoint_delay_ns: int

    @property
    def message_bytes(self) -> float:
        """Bytes of one message."""
        return self.size_bytes / (self.splits * self.npus)

    @property
    def network_ns(self) -> int:
        """Part of the messages."""
        rate = self.gb_s * 2**30 / 1e9
        return self.splits * 2 * (self.npus - 1) * floor(self.latency_ns + self.message_bytes / rate)

    @property
    def memory_ns(self) -> int:
        """Part of the local memories."""
        return self.splits * (self.npus - 1) * 3 * floor(self.message_bytes / self.local_memory_gb_s)

    @property
    def endpoint_ns(self) -> int:
        """Part of the endpoints."""
        return self.splits * (2 * (self.npus - 1) + 1) * self.endpoint_delay_ns

    @property
    def all_reduce_ns(self) -> int:
        """Time of the all-reduce."""
        return self.network_ns + self.memory_ns + self.endpoint_ns

    def without_splits(self) -> "AstraRing":
        """The same with all data at once."""
        return replace(self, splits=1)


ASTRA_REGRESSION = AstraRing(
    size_bytes=1 << 20, npus=8, gb_s=50, latency_ns=500, splits=4, local_memory_gb_s=50, endpoint_delay_ns=10
)
"""The case of ASTRA-sim's regression test (tests/rt_template): 1 MiB on 8 NPUs, 50 GB/s, 500 ns."""
ASTRA_REGRESSION_NS = 117_780
"""What that test expects."""
