"""What ``t3 validate gpu`` measured on a GPU, as ``gpu.json`` holds it: docs/guides/validate-gpu.md."""

from statistics import median
from typing import Literal, Self

from pydantic import ConfigDict, Field, PositiveFloat, model_validator

from t3sim import __version__
from t3sim.common.strict_record import StrictRecord
from t3sim.inputs.workload import Workload, custom_workload


class DeviceFacts(StrictRecord):
    """The GPU as its driver names it; sizes in bytes."""

    name: str
    driver: str
    memory_clock_mhz: float = Field(gt=0)
    multiprocessors: int = Field(ge=1)
    l2_bytes: int = Field(ge=0)
    memory_bytes: int = Field(ge=1)
    versions: dict[str, str]
    """Of what measured it: Python, PyTorch, CUDA."""


class Timing(StrictRecord):
    """Samples of ``gemms`` GEMMs, one after the other, beside copies to and from the host.

    ``asked_gb_s``: the rate of the copies each way that was asked for; ``read_gb_s``, ``written_gb_s``: the rates that
    they had at the GPU's memory, medians of the samples. ``samples_us``: mean time of a GEMM in each sample;
    ``samples_mhz``: mean clock of the CUs meanwhile, which a GPU at its limit of power lowers.
    """

    asked_gb_s: float = Field(ge=0)
    read_gb_s: float = Field(ge=0)
    written_gb_s: float = Field(ge=0)
    gemms: int = Field(ge=1)
    samples_us: tuple[PositiveFloat, ...] = Field(min_length=1)
    samples_mhz: tuple[PositiveFloat, ...] = Field(min_length=1)

    @property
    def copies_gb_s(self) -> float:
        """The rate of the copies each way, on average."""
        return (self.read_gb_s + self.written_gb_s) / 2

    @property
    def us(self) -> float:
        """Time of a GEMM, the median of the samples."""
        return median(self.samples_us)

    @property
    def clock_mhz(self) -> float:
        """Clock of the CUs, the median of the samples."""
        return median(self.samples_mhz)


class Shape(StrictRecord):
    """One GEMM: ``k`` is the whole inner dimension, of which the GPU has the largest share of ``tp``."""

    names: tuple[str, ...] = Field(min_length=1)
    tp: int
    m: int
    n: int
    k: int
    timings: tuple[Timing, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        self.workload()
        rates = [timing.asked_gb_s for timing in self.timings]
        if rates[0] != 0 or len(set(rates)) < len(rates):
            raise ValueError(f"timings must begin with 0 GB/s of copies and have each rate once, not {rates}")
        if len({len(samples) for timing in self.timings for samples in (timing.samples_us, timing.samples_mhz)}) > 1:
            raise ValueError("timings must have as many samples of every rate, and as many clocks")
        return self

    def slowdowns(self, timing: Timing) -> list[float]:
        """Time of a GEMM beside those copies over that without, round by round: a round has a sample of every rate."""
        alone = self.timings[0].samples_us
        return [beside / without for beside, without in zip(timing.samples_us, alone, strict=True)]

    def workload(self) -> Workload:
        """The sublayer. Raises ValueError if its sizes are illegal."""
        return custom_workload(self.m, self.n, self.k, self.tp)


class GpuRecord(StrictRecord):
    """All of ``gpu.json``."""

    model_config = ConfigDict(populate_by_name=True)
    schema_version: Literal[2] = Field(default=2, alias="schema")
    opent3: str = __version__
    measured: str
    """When: ISO 8601, UTC."""
    device: DeviceFacts
    shapes: tuple[Shape, ...] = Field(min_length=1)
