"""The simulated machine: every number of GPU, memory, link and T3 hardware, named, with its unit and its source.

The models below hold names, units and limits but no defaults: a number comes from a preset in ``machines/`` or from a
user's file, so that nothing about a machine hides in code.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from t3hdl.config import NO_LIMIT, T3Config, preset
from t3hdl.interface.layouts import LINE_BYTES

from t3sim.dram.timing import MOST_CLOCKS, MOST_INTERVAL, HbmParameters

from .gpu import STORE_ROW_BYTES, Gpu, Llc
from .section import (
    CLOCK_RATIO,
    CLOCK_SCALE,
    GB_S,
    MHZ,
    MOST_HEADER_BYTES,
    MOST_KIB,
    MOST_NS,
    MOST_SKEW_NS,
    Section,
    quantity,
)

Threshold = Annotated[int, Field(json_schema_extra={"unit": "lines"}, ge=0, le=NO_LIMIT)]


class Fabric(Section):
    """Crossbar between the CUs with their LLC and the memory controllers."""

    request_ns: int = quantity("ns", ge=0, le=MOST_NS)
    response_ns: int = quantity("ns", ge=0, le=MOST_NS)


class Hbm(Section):
    """DRAM of one GPU: pseudo-channels, their timings in memory clocks, the controller's queues and NMC timing."""

    channels: int = quantity("pseudo-channels", ge=1, le=64)
    clock_mhz: int = quantity("MHz", ge=MHZ[0], le=MHZ[1])
    nBL: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nCL: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nRCDRD: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nRCDWR: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nRP: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nRAS: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nRC: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nWR: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nRTPL: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nCWL: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nCCDS: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nCCDL: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nRRDS: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nRRDL: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nWTRS: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nWTRL: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nFAW: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nRFC: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    nREFI: int = quantity("clocks", ge=1, le=MOST_INTERVAL)
    refresh: bool
    queue: Literal["shared", "split"]
    queue_lines: int = quantity("lines", ge=4, le=NO_LIMIT - 1)
    read_lines: int = quantity("lines", ge=2, le=NO_LIMIT - 1)
    write_lines: int = quantity("lines", ge=2, le=NO_LIMIT - 1)
    drain_high: float = quantity("fraction", gt=0, le=1)
    drain_low: float = quantity("fraction", ge=0, lt=1)
    age_limit_cycles: int = quantity("clocks", ge=1, le=MOST_INTERVAL)
    row_policy: Literal["oldest", "hits-first"]
    substrate: Literal["nmc", "pim", "atomics"]
    nmc_update_cycles: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    pim_switch_cycles: int = quantity("clocks", ge=2, le=MOST_CLOCKS)
    atomic_cycles: int = quantity("clocks", ge=1, le=MOST_CLOCKS)
    line_order: Literal["rotate", "bank-local"]

    @model_validator(mode="after")
    def _values_agree(self) -> Self:
        if self.channels & (self.channels - 1):
            raise ValueError(f"hbm.channels must be a power of two, not {self.channels}")
        self.parameters()
        return self

    def parameters(self) -> HbmParameters:
        """One pseudo-channel, as the HBM model takes it; it checks the timings against each other (ValueError)."""
        return HbmParameters(**self.model_dump(exclude={"channels", "clock_mhz"}))


class Link(Section):
    """One direction of the ring link between neighbours; bandwidth is per direction, in 10^9 bytes per second."""

    gb_s: float = quantity("GB/s", ge=GB_S[0], le=GB_S[1])
    latency_ns: int = quantity("ns", ge=1, le=MOST_NS)
    header_bytes: int = quantity("bytes/packet", ge=0, le=MOST_HEADER_BYTES)
    egress_buffer_kib: int = quantity("KiB", ge=1, le=MOST_KIB)
    rx_buffer_kib: int = quantity("KiB", ge=1, le=MOST_KIB)
    retry: bool
    retry_timeout_ns: int = quantity("ns", ge=1, le=4 * MOST_NS)

    @model_validator(mode="after")
    def _timeout_is_long_enough(self) -> Self:
        if self.retry and self.retry_timeout_ns <= 2 * self.latency_ns:
            raise ValueError(
                f"link.retry_timeout_ns must be above a round trip, {2 * self.latency_ns} ns, not "
                f"{self.retry_timeout_ns}"
            )
        return self


class Dma(Section):
    """The DMA engine that the trigger commands; rates are per memory clock."""

    buffer_kib: int = quantity("KiB", ge=1, le=MOST_KIB)
    lines_per_cycle: int = quantity("lines/clock", ge=1, le=1024)
    block: Literal["tile", "column", "chunk"]


class Kernel(Section):
    """The reduce-scatter and all-gather kernels that run on ``cus`` of the CUs; what a CU can do is the same for all.

    ``bytes_per_clock_per_cu``: reads, per CU clock.
    """

    cus: int = quantity("CUs", ge=1, le=1024)
    bytes_per_clock_per_cu: int = quantity("bytes/clock/CU", ge=1, le=1 << 16)
    outstanding_lines_per_cu: int = quantity("lines/CU", ge=STORE_ROW_BYTES // LINE_BYTES, le=1 << 16)
    step_overhead_ns: int = quantity("ns", ge=0, le=MOST_NS)
    slice_kib: int = quantity("KiB", ge=1, le=MOST_KIB)


class Arbiter(Section):
    """T3-MCA: starvation limit, and occupancy thresholds by first-stage use (of a 64-line queue; 127: no limit)."""

    starvation_cycles: int = quantity("clocks", ge=1, le=65535)
    starvation_burst: int = quantity("lines", ge=1, le=255)
    threshold_under_25: Threshold
    threshold_under_50: Threshold
    threshold_under_75: Threshold
    threshold_above: Threshold


def hardware_config(name: str, overrides: Mapping[str, Any]) -> T3Config:
    """The hardware preset ``name`` with ``overrides``. Raises ValueError, also for a value of the wrong type."""
    try:
        return preset(name, **overrides)
    except TypeError as error:
        raise ValueError(str(error)) from error


class Hardware(Section):
    """Which :class:`~t3hdl.config.T3Config` the T3 hardware has: a preset, and fields of it that are overridden."""

    preset: str
    overrides: dict[str, bool | int | str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_legal(self) -> Self:
        self.config()
        return self

    def config(self) -> T3Config:
        """The hardware's configuration. Raises ValueError naming the parameter if it is illegal."""
        return hardware_config(self.preset, self.overrides)


class Variation(Section):
    """Differences between GPUs, one value per GPU; an empty list means that all are alike."""

    start_skew_ns: tuple[Annotated[float, Field(ge=0, le=MOST_SKEW_NS)], ...] = quantity("ns")
    clock_scale: tuple[Annotated[float, Field(ge=CLOCK_SCALE[0], le=CLOCK_SCALE[1])], ...] = quantity("factor")
    link_gb_s: tuple[Annotated[float, Field(ge=GB_S[0], le=GB_S[1])], ...] = quantity("GB/s")


class Machine(Section):
    """One simulated machine. ``sources`` says for each ``section.key`` where its value comes from; ``settings`` holds
    what was changed for this run, "section.key" -> value."""

    name: str
    gpu: Gpu
    llc: Llc
    fabric: Fabric
    hbm: Hbm
    link: Link
    dma: Dma
    kernel: Kernel
    arbiter: Arbiter
    hardware: Hardware
    variation: Variation
    sources: dict[str, str]
    settings: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _hardware_fits(self) -> Self:
        config = self.hardware.config()
        if config.slices != self.hbm.channels:
            raise ValueError(
                f"hardware: one slice per memory channel is needed, but preset {self.hardware.preset!r} has "
                f"{config.slices} slices and hbm.channels is {self.hbm.channels}; set hbm.channels = {config.slices} "
                f"or hardware.overrides.slices = {self.hbm.channels}"
            )
        if config.wavefronts < self.gpu.wavefronts:
            raise ValueError(
                f"gpu.wavefronts must be at most the hardware's wavefronts ({config.wavefronts}), not "
                f"{self.gpu.wavefronts}; lower it or set hardware.overrides.wavefronts"
            )
        return self

    @model_validator(mode="after")
    def _clocks_fit(self) -> Self:
        least, most = CLOCK_RATIO
        for scale in self.variation.clock_scale or (1.0,):
            clocks = scale * self.gpu.clock_mhz / self.hbm.clock_mhz
            if not least <= clocks <= most:
                raise ValueError(
                    f"gpu.clock_mhz x variation.clock_scale must be {least:g} to {most:g} times hbm.clock_mhz "
                    f"({self.hbm.clock_mhz}), not {self.gpu.clock_mhz} x {scale:g}, which is {clocks:g} times"
                )
        return self

    @model_validator(mode="after")
    def _kernel_fits(self) -> Self:
        if self.kernel.cus > self.gpu.cus:
            raise ValueError(
                f"kernel.cus must be at most gpu.cus ({self.gpu.cus}), not {self.kernel.cus}; set kernel.cus too"
            )
        return self

    def check_gpus(self, gpus: int) -> None:
        """Refuses per-GPU lists that do not have one value for each of ``gpus`` GPUs (ValueError)."""
        for key in type(self.variation).model_fields:
            values = getattr(self.variation, key)
            if values and len(values) != gpus:
                raise ValueError(
                    f"variation.{key} must be empty or have one value for each of {gpus} GPUs, not {len(values)} values"
                )

    def to_toml(self) -> str:
        """The fully resolved machine as a machine file, which :func:`~.files.load_machine` reads back equal."""
        lines = [f"# Machine {self.name!r}, fully resolved: reads back with --machine FILE."]
        for section in SECTIONS:
            lines.append(f"\n[{section}]")
            model = getattr(self, section)
            for key in type(model).model_fields:
                value = getattr(model, key)
                settings = (
                    {f"{key}.{inner}": item for inner, item in value.items()}
                    if isinstance(value, dict)
                    else {key: value}
                )
                for name, item in settings.items():
                    lines.append(_toml_line(name, item, unit_of(section, key), self.sources[f"{section}.{name}"]))
        return "\n".join(lines) + "\n"


SECTIONS: dict[str, type[Section]] = {
    name: field.annotation
    for name, field in Machine.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
}
"""Section name of a machine file -> its model."""


def unit_of(section: str, key: str) -> str | None:
    """Unit of a field, or None where it has none (choices, switches)."""
    extra = SECTIONS[section].model_fields[key].json_schema_extra
    return str(extra["unit"]) if isinstance(extra, dict) else None


def _toml_line(key: str, value: Any, unit: str | None, source: str) -> str:
    fields = {"value": value} | ({"unit": unit} if unit else {}) | {"source": source}
    return f"{key} = {{ {', '.join(f'{name} = {_toml(item)}' for name, item in fields.items())} }}"


def _toml(value: Any) -> str:
    """JSON's scalars, strings and arrays are also TOML's, but for surrogates and DEL in strings."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
