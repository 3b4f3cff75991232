"""Times GEMMs on a GPU, alone and beside copies; what a GPU must do for it is :class:`Device`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from statistics import median
from typing import Protocol

from t3sim.inputs.workload import Workload

from .gpu_record import CopyKind, DeviceFacts, GpuRecord, Shape, Timing

SAMPLE_SECONDS = 0.05
"""Least time of one sample: many times what starting and stopping the copies takes."""

RATES: Mapping[CopyKind, tuple[float, ...]] = {"host": (0, 6, 12, 24), "memory": (0, 50, 100, 200, 400)}
"""Of copies each way, in GB/s, if none are given: parts of a PCIe 4.0 bus, and what a GPU's links bring."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """``us``: mean time of a GEMM; ``clock_mhz``: the CUs' meanwhile; rates of the copies that were done beside it, as
    the GPU's memory sees them."""

    us: float
    clock_mhz: float
    read_gb_s: float = 0.0
    written_gb_s: float = 0.0


class Device(Protocol):
    """A GPU that multiplies and copies."""

    copies: CopyKind

    def facts(self) -> DeviceFacts:
        """What it is."""

    def sample(self, m: int, n: int, k: int, *, gemms: int, copies_gb_s: float) -> Sample:
        """Runs ``gemms`` FP16 GEMMs of m x n x k, one after the other, and beside them copies that read and write
        ``copies_gb_s`` GB/s each of the GPU's memory, or as fast as they go. Inputs do not come from the cache."""


def check_rates(rates: Sequence[float]) -> tuple[float, ...]:
    """The rates of copies, with 0 first. Raises ValueError if one is negative, or comes twice."""
    if any(not 0 <= rate < float("inf") for rate in rates) or len(set(rates)) < len(rates):
        raise ValueError(f"--rates must be different GB/s of 0 or more, not {','.join(f'{rate:g}' for rate in rates)}")
    return (0.0, *(rate for rate in rates if rate > 0))


def measure(
    device: Device,
    shapes: Mapping[Workload, tuple[str, ...]],
    rates: Sequence[float],
    samples: int,
    on_shape: Callable[[int], None],
) -> GpuRecord:
    """The record of ``device``: for each of ``shapes`` and ``rates`` the median of ``samples`` samples.

    ``on_shape`` is told how many shapes are done. Raises ValueError for illegal rates.
    """
    rates = check_rates(rates)
    measured = []
    for work, names in shapes.items():
        timings = _timings(device, work, rates, samples)
        measured.append(Shape(names=names, tp=work.tp, m=work.m, n=work.n, k=work.k, timings=timings))
        on_shape(len(measured))
    return GpuRecord(
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
        device=device.facts(),
        copies=device.copies,
        samples=samples,
        shapes=tuple(measured),
    )


def _timings(device: Device, work: Workload, rates: Sequence[float], samples: int) -> tuple[Timing, ...]:
    """Of every rate. The rates take turns, so that a GPU that gets slower as it gets warm does so for all alike."""
    m, n, k = work.m, work.n, work.k_range[1]
    device.sample(m, n, k, gemms=1, copies_gb_s=0)  # chooses the kernel, allocates
    gemms = ceil(SAMPLE_SECONDS * 1e6 / device.sample(m, n, k, gemms=3, copies_gb_s=0).us)
    rounds = [[device.sample(m, n, k, gemms=gemms, copies_gb_s=rate) for rate in rates] for _ in range(samples)]
    return tuple(_timing(rate, gemms, found) for rate, found in zip(rates, zip(*rounds, strict=True), strict=True))


def _timing(rate: float, gemms: int, found: Sequence[Sample]) -> Timing:
    times = [sample.us for sample in found]
    return Timing(
        asked_gb_s=rate,
        read_gb_s=median(sample.read_gb_s for sample in found),
        written_gb_s=median(sample.written_gb_s for sample in found),
        gemms=gemms,
        clock_mhz=median(sample.clock_mhz for sample in found),
        us=median(times),
        least_us=min(times),
        most_us=max(times),
    )
