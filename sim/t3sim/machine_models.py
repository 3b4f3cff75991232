"""The simulated machine: every number of GPU, memory, link and T3 hardware, named, with its unit and its source.

The models below hold names, units and limits but no defaults: a number comes from a preset in ``machines/`` or from a
user's file, so that nothing about a machine hides in code.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from t3hdl.config import NO_LIMIT, T3Config, preset
from t3hdl.layouts import LINE_BYTES

from .hbm_timing import HbmParameters

ELEMENT_BYTES = 2
"""Bytes of an FP16 element."""
STORE_ROW_BYTES = 256
"""Bytes of the widest store row that the GPU's egress matches at once (docs/hardware.md, RangeMatcher)."""


def _quantity(unit: str, **limits: Any) -> Any:
    """A required field with a unit; ``limits`` are pydantic's ge, gt, le, lt."""
    return Field(json_schema_extra={"unit": unit}, **limits)


Tile = tuple[int, int]
"""Rows and columns of a workgroup's part of the output."""
Threshold = Annotated[int, Field(json_schema_extra={"unit": "lines"}, ge=0, le=NO_LIMIT)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _is_tile(tile: object) -> bool:
    """Whether ``tile`` is (rows, cols) that a store row and the GEMM kernel can have."""
    if not isinstance(tile, tuple) or [type(size) for size in tile] != [int, int]:
        return False
    rows, cols = tile
    widest, step = STORE_ROW_BYTES // ELEMENT_BYTES, LINE_BYTES // ELEMENT_BYTES
    return 1 <= rows <= 1024 and step <= cols <= widest and cols % step == 0


class Gpu(_Section):
    """Compute units and how the GEMM kernel uses them."""

    cus: int = _quantity("CUs", ge=1, le=1024)
    clock_mhz: int = _quantity("MHz", ge=1)
    flop_per_clock_per_cu: int = _quantity("FLOP/clock/CU", ge=1)
    workgroups_per_cu: int = _quantity("workgroups/CU", ge=1, le=8)
    tiles: tuple[Tile, ...] = _quantity("elements")
    tile_margin: float = _quantity("fraction", ge=0, le=1)
    slab_k: int = _quantity("elements", ge=1)
    wavefronts: int = _quantity("wavefronts/workgroup", ge=1, le=16)
    prefetch_slabs: int = _quantity("slabs", ge=0, le=16)
    dispatch: Literal["free", "stage"]
    store_release: Literal["accepted", "performed"]
    store_bytes_per_clock: int = _quantity("bytes/clock/CU", ge=LINE_BYTES, multiple_of=LINE_BYTES)
    swizzle_rows: int = _quantity("tile rows", ge=1)
    kernel_launch_ns: int = _quantity("ns", ge=0)

    @field_validator("tiles", mode="before")
    @classmethod
    def _is_a_menu(cls, menu: object) -> object:
        if not isinstance(menu, tuple) or not menu or not all(_is_tile(tile) for tile in menu):
            raise ValueError(
                "gpu.tiles must be a list of one or more [rows, cols] with rows of 1 to 1024 and cols a multiple of "
                f"{LINE_BYTES // ELEMENT_BYTES} (whole 32-byte lines of FP16) up to {STORE_ROW_BYTES // ELEMENT_BYTES} "
                f"(a store row), as in [[128, 64]], not {json.dumps(menu)}"
            )
        if len(set(menu)) < len(menu):
            raise ValueError(f"gpu.tiles must name each tile once, not {json.dumps(menu)}")
        return menu

    @model_validator(mode="after")
    def _wavefronts_share_a_tile(self) -> Self:
        for rows, cols in self.tiles:
            if rows % self.wavefronts:
                raise ValueError(
                    f"rows of a tile in gpu.tiles must be a multiple of gpu.wavefronts ({self.wavefronts}), not {rows} "
                    f"as in [{rows}, {cols}]"
                )
        return self


class Llc(_Section):
    """Last-level cache of one GPU."""

    capacity_kib: int = _quantity("KiB", ge=1)
    ways: int = _quantity("ways", ge=1, le=64)
    line_bytes: int = _quantity("bytes", ge=LINE_BYTES, le=1024, multiple_of=LINE_BYTES)
    latency_ns: int = _quantity("ns", ge=0)
    bytes_per_clock_per_cu: int = _quantity("bytes/clock/CU", ge=1)
    replacement: Literal["lru", "random"]

    @model_validator(mode="after")
    def _sets_are_whole(self) -> Self:
        if self.capacity_kib * 1024 % (self.ways * self.line_bytes):
            raise ValueError(
                f"llc.capacity_kib must be whole sets of {self.ways} ways x {self.line_bytes} bytes, not "
                f"{self.capacity_kib}"
            )
        return self


class Fabric(_Section):
    """Crossbar between the CUs with their LLC and the memory controllers."""

    request_ns: int = _quantity("ns", ge=0)
    response_ns: int = _quantity("ns", ge=0)


class Hbm(_Section):
    """DRAM of one GPU: pseudo-channels, their timings in memory clocks, the controller's queues and NMC timing."""

    channels: int = _quantity("pseudo-channels", ge=1, le=64)
    clock_mhz: int = _quantity("MHz", ge=1)
    nBL: int = _quantity("clocks", ge=1)
    nCL: int = _quantity("clocks", ge=1)
    nRCDRD: int = _quantity("clocks", ge=1)
    nRCDWR: int = _quantity("clocks", ge=1)
    nRP: int = _quantity("clocks", ge=1)
    nRAS: int = _quantity("clocks", ge=1)
    nRC: int = _quantity("clocks", ge=1)
    nWR: int = _quantity("clocks", ge=1)
    nRTPL: int = _quantity("clocks", ge=1)
    nCWL: int = _quantity("clocks", ge=1)
    nCCDS: int = _quantity("clocks", ge=1)
    nCCDL: int = _quantity("clocks", ge=1)
    nRRDS: int = _quantity("clocks", ge=1)
    nRRDL: int = _quantity("clocks", ge=1)
    nWTRS: int = _quantity("clocks", ge=1)
    nWTRL: int = _quantity("clocks", ge=1)
    nFAW: int = _quantity("clocks", ge=1)
    nRFC: int = _quantity("clocks", ge=1)
    nREFI: int = _quantity("clocks", ge=1)
    refresh: bool
    queue: Literal["shared", "split"]
    queue_lines: int = _quantity("lines", ge=4, le=NO_LIMIT - 1)
    read_lines: int = _quantity("lines", ge=2, le=NO_LIMIT - 1)
    write_lines: int = _quantity("lines", ge=2, le=NO_LIMIT - 1)
    drain_high: float = _quantity("fraction", gt=0, le=1)
    drain_low: float = _quantity("fraction", ge=0, lt=1)
    age_limit_cycles: int = _quantity("clocks", ge=1)
    row_policy: Literal["oldest", "hits-first"]
    substrate: Literal["nmc", "pim", "atomics"]
    nmc_update_cycles: int = _quantity("clocks", ge=1)
    pim_switch_cycles: int = _quantity("clocks", ge=2)
    atomic_cycles: int = _quantity("clocks", ge=1)
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


class Link(_Section):
    """One direction of the ring link between neighbours; bandwidth is per direction, in 10^9 bytes per second."""

    gb_s: float = _quantity("GB/s", gt=0)
    latency_ns: int = _quantity("ns", ge=1)
    header_bytes: int = _quantity("bytes/packet", ge=0)
    egress_buffer_kib: int = _quantity("KiB", ge=1)
    rx_buffer_kib: int = _quantity("KiB", ge=1)


class Dma(_Section):
    """The DMA engine that the trigger commands; rates are per memory clock."""

    buffer_kib: int = _quantity("KiB", ge=1)
    lines_per_cycle: int = _quantity("lines/clock", ge=1)
    block: Literal["tile", "column", "chunk"]


class Kernel(_Section):
    """The reduce-scatter and all-gather kernels that run on ``cus`` of the CUs; what a CU can do is the same for all.

    ``bytes_per_clock_per_cu``: reads, per CU clock.
    """

    cus: int = _quantity("CUs", ge=1)
    bytes_per_clock_per_cu: int = _quantity("bytes/clock/CU", ge=1)
    outstanding_lines_per_cu: int = _quantity("lines/CU", ge=STORE_ROW_BYTES // LINE_BYTES)
    step_overhead_ns: int = _quantity("ns", ge=0)
    slice_kib: int = _quantity("KiB", ge=1)


class Arbiter(_Section):
    """T3-MCA: starvation limit, and occupancy thresholds by first-stage use (of a 64-line queue; 127: no limit)."""

    starvation_cycles: int = _quantity("clocks", ge=1, le=65535)
    starvation_burst: int = _quantity("lines", ge=1, le=255)
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


class Hardware(_Section):
    """Which :class:`~t3hdl.config.T3Config` the T3 hardware has: a preset, and fields of it that are overridden."""

    preset: str
    overrides: dict[str, int | str] = {}

    @model_validator(mode="after")
    def _is_legal(self) -> Self:
        self.config()
        return self

    def config(self) -> T3Config:
        """The hardware's configuration. Raises ValueError naming the parameter if it is illegal."""
        return hardware_config(self.preset, self.overrides)


class Variation(_Section):
    """Differences between GPUs, one value per GPU; an empty list means that all are alike."""

    start_skew_ns: tuple[float, ...] = _quantity("ns")
    clock_scale: tuple[float, ...] = _quantity("factor")
    link_gb_s: tuple[float, ...] = _quantity("GB/s")

    @field_validator("start_skew_ns", "clock_scale", "link_gb_s")
    @classmethod
    def _physical(cls, values: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        may_be_zero = info.field_name == "start_skew_ns"
        for value in values:
            if value < 0 or (value == 0 and not may_be_zero):
                raise ValueError(
                    f"variation.{info.field_name} must be {'at least' if may_be_zero else 'above'} 0, not {value}"
                )
        return values


class Machine(_Section):
    """One simulated machine. ``sources`` says for each ``section.key`` where its value comes from."""

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
        """The fully resolved machine as a machine file: :func:`~t3sim.machine.load_machine` reads it back equal."""
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


SECTIONS: dict[str, type[_Section]] = {
    name: field.annotation
    for name, field in Machine.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, _Section)
}
"""Section name of a machine file -> its model."""


def unit_of(section: str, key: str) -> str | None:
    """Unit of a field, or None where it has none (choices, switches)."""
    extra = SECTIONS[section].model_fields[key].json_schema_extra
    return str(extra["unit"]) if isinstance(extra, dict) else None


def _toml_line(key: str, value: Any, unit: str | None, source: str) -> str:
    fields = {"value": value} | ({"unit": unit} if unit else {}) | {"source": source}
    # JSON's scalars, strings and arrays are also TOML's
    return f"{key} = {{ {', '.join(f'{name} = {json.dumps(item)}' for name, item in fields.items())} }}"
