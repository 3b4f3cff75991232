"""The simulated machine: every number of GPU, memory, link and T3 hardware, named, with its unit and its source."""

import json
from typing import Any, Self

from pydantic import Field, model_validator

from .gpu import GpuSection, LlcSection
from .hardware import HardwareSection
from .hbm import HbmSection
from .section import CLOCK_RATIO, Section
from .sections import (
    ArbiterSection,
    DmaSection,
    FabricSection,
    KernelSection,
    LinkSection,
    VariationSection,
)
from .settings import machine_title


class Machine(Section):
    """One simulated machine. ``sources`` says for each ``section.key`` where its value comes from; ``settings`` holds
    what was changed for this run, "section.key" -> value."""

    name: str
    gpu: GpuSection
    llc: LlcSection
    fabric: FabricSection
    hbm: HbmSection
    link: LinkSection
    dma: DmaSection
    kernel: KernelSection
    arbiter: ArbiterSection
    hardware: HardwareSection
    variation: VariationSection
    sources: dict[str, str]
    settings: dict[str, Any] = Field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name, with the values that were changed for this run."""
        return machine_title(self.name, self.settings)

    @model_validator(mode="after")
    def _hardware_fits(self) -> Self:
        config = self.hardware.config()
        if config.slices != self.hbm.channels:
            raise ValueError(
                f"hardware: one slice per memory channel is needed, but preset {self.hardware.preset!r} has "
                f"{config.slices} slices and hbm.channels is {self.hbm.channels}; set hbm.channels = {config.slices} "
                f"or hardware.slices = {self.hbm.channels}"
            )
        if config.wavefronts < self.gpu.wavefronts:
            raise ValueError(
                f"gpu.wavefronts must be at most the hardware's wavefronts ({config.wavefronts}), not "
                f"{self.gpu.wavefronts}; lower it or set hardware.wavefronts"
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
                f"kernel.cus must be at most gpu.cus ({self.gpu.cus}), not {self.kernel.cus}; lower kernel.cus or "
                "raise gpu.cus"
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
                if value is not None:
                    lines.append(_toml_line(key, value, unit_of(section, key), self.sources[f"{section}.{key}"]))
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
    return str(extra["unit"]) if isinstance(extra, dict) and extra.get("unit") else None


def _toml_line(key: str, value: Any, unit: str | None, source: str) -> str:
    fields = {"value": value} | ({"unit": unit} if unit else {}) | {"source": source}
    return f"{key} = {{ {', '.join(f'{name} = {_toml(item)}' for name, item in fields.items())} }}"


def _toml(value: Any) -> str:
    """JSON's scalars, strings and arrays are also TOML's, but for surrogates and DEL in strings."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
