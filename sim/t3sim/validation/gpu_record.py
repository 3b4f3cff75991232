"""What ``t3 validate gpu`` measured on a GPU, as ``gpu.json`` holds it: docs/guides/validate-gpu.md."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from t3sim import __version__
from t3sim.inputs.workload import Workload, custom_workload

CopyKind = Literal["host", "memory"]
"""Where copies go beside a GEMM: to and from the host, or within the GPU's memory, read here and written there."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class DeviceFacts(_Part):
    """The GPU as its driver names it; sizes in bytes."""

    name: str
    driver: str
    memory_clock_mhz: float = Field(gt=0)
    multiprocessors: int = Field(ge=1)
    l2_bytes: int = Field(ge=0)
    memory_bytes: int = Field(ge=1)
    versions: dict[str, str]
    """Of what measured it: Python, PyTorch, CUDA."""


class Timing(_Part):
    """GEMMs one after the other, beside copies of ``asked_gb_s`` each way, as far as these came: time of one in us, the
    median, least and most of the samples."""

    asked_gb_s: float = Field(ge=0)
    read_gb_s: float = Field(ge=0)
    written_gb_s: float = Field(ge=0)
    gemms: int = Field(ge=1)
    clock_mhz: float = Field(gt=0)
    """Of the CUs while they multiplied, the median: a GPU at its limit of power lowers it."""
    us: float = Field(gt=0)
    least_us: float = Field(gt=0)
    most_us: float = Field(gt=0)

    @property
    def copies_gb_s(self) -> float:
        """What the copies took of the memory each way, on average."""
        return (self.read_gb_s + self.written_gb_s) / 2


class Shape(_Part):
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
        return self

    def workload(self) -> Workload:
        """The sublayer. Raises ValueError if its sizes are illegal."""
        return custom_workload(self.m, self.n, self.k, self.tp)


class GpuRecord(_Part):
    """All of ``gpu.json``."""

    model_config = ConfigDict(populate_by_name=True)
    schema_version: Literal[2] = Field(default=2, alias="schema")
    opent3: str = __version__
    measured: str
    """When: ISO 8601, UTC."""
    device: DeviceFacts
    copies: CopyKind
    samples: int = Field(ge=1)
    """Of which each time is the median."""
    shapes: tuple[Shape, ...] = Field(min_length=1)
