"""Times GEMMs on a GPU, alone and beside copies; what a GPU must do for it is :class:`Device`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from statistics import median
from typing import Protocol

from t3sim.inputs.workload import Workload

from .gpu_record import DeviceFacts, GpuRecord, Shape, Timing

SAMPLE_SECONDS = 0.05
"""About the time of a sample: many times what it takes to start and stop the copies."""
FIRST_GEMMS = 20
"""Of the sample that says how many GEMMs take so long."""
MOST_GEMMS = 500
"""In a sample: an H100's driver queued about 512, and kept the host, which starts the copies, waiting until then."""
WARM_SAMPLES = 6
"""Samples before those that count, in which the GPU finds its clock."""

RATES = (0.0, 12.0, 24.0, 48.0)
"""Of copies each way, in GB/s, if none are given: as much as buses of PCIe 3.0, 4.0 and 5.0 carry."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """``us``: mean time of a GEMM; ``clock_mhz``: mean clock of the CUs meanwhile; rates at which the copies beside it
    read and wrote the GPU's memory."""

    us: float
    clock_mhz: float
    read_gb_s: float = 0.0
    written_gb_s: float = 0.0


class Device(Protocol):
    """A GPU that multiplies and copies."""

    def facts(self) -> DeviceFacts:
        """What it is."""

    def sample(self, m: int, n: int, k: int, *, gemms: int, copies_gb_s: float) -> Sample:
        """Runs ``gemms`` FP16 GEMMs of m x n x k, one after the other, and beside them copies to and from the host, of
        ``copies_gb_s`` GB/s in each direction, or as many as the bus carries. Inputs do not come from the cache."""


def check_samples(samples: int) -> int:
    """That many samples. Raises ValueError for less than one."""
    if samples < 1:
        raise ValueError(f"samples must be 1 or more, not {samples}")
    return samples


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
    """The record of ``device``: for each of ``shapes`` and ``rates`` so many ``samples``.

    ``on_shape`` is told how many shapes are done. Raises ValueError for illegal rates and less than one sample.
    """
    rates, samples = check_rates(rates), check_samples(samples)
    measured = []
    for work, names in shapes.items():
        timings = _timings(device, work, rates, samples)
        measured.append(Shape(names=names, tp=work.tp, m=work.m, n=work.n, k=work.k, timings=timings))
        on_shape(len(measured))
    return GpuRecord(
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
        device=device.facts(),
        shapes=tuple(measured),
    )


def _timings(device: Device, work: Workload, rates: Sequence[float], samples: int) -> tuple[Timing, ...]:
    """Of every rate. The rates take turns, there and back, so that a GPU that gets slower does so for all alike."""
    m, n, k = work.m, work.n, work.k_range[1]
    first = device.sample(m, n, k, gemms=FIRST_GEMMS, copies_gb_s=0)
    gemms = min(MOST_GEMMS, ceil(SAMPLE_SECONDS * 1e6 / first.us))
    for _ in range(WARM_SAMPLES):
        device.sample(m, n, k, gemms=gemms, copies_gb_s=0)
    found: dict[float, list[Sample]] = {rate: [] for rate in rates}
    for number in range(samples):
        for rate in reversed(rates) if number % 2 else rates:
            found[rate].append(device.sample(m, n, k, gemms=gemms, copies_gb_s=rate))
    return tuple(_timing(rate, gemms, taken) for rate, taken in found.items())


def _timing(rate: float, gemms: int, samples: Sequence[Sample]) -> Timing:
    return Timing(
        asked_gb_s=rate,
        read_gb_s=median(sample.read_gb_s for sample in samples),
        written_gb_s=median(sample.written_gb_s for sample in samples),
        gemms=gemms,
        samples_us=tuple(sample.us for sample in samples),
        samples_mhz=tuple(sample.clock_mhz for sample in samples),
    )
