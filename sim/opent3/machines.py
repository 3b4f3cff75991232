"""Machines: the presets side by side, and a file to begin one's own with."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from t3sim.common.user_input import readable
from t3sim.inputs import arguments
from t3sim.inputs.machine.describe import machine_template
from t3sim.inputs.machine.files import Machine, load_machine, preset_names
from t3sim.inputs.machine.standing import bandwidth_gb_s, matrix_tflop_s, standing

if TYPE_CHECKING:
    import pandas as pd

SUFFIX = ".toml"


@dataclass(frozen=True, kw_only=True)
class MachineSummary:
    """Peak rates of a machine; ``compared_with``: what its results can be compared with, or ``unvalidated``."""

    name: str
    cus: int
    clock_mhz: int
    fp16_tflop_s: float
    llc_mib: float
    memory_gb_s: float
    link_gb_s: float
    compared_with: str

    @classmethod
    def of(cls, machine: Machine) -> MachineSummary:
        """The summary of ``machine``."""
        return cls(
            name=machine.name, cus=machine.gpu.cus, clock_mhz=machine.gpu.clock_mhz,
            fp16_tflop_s=matrix_tflop_s(machine), llc_mib=machine.llc.capacity_kib / 1024,
            memory_gb_s=bandwidth_gb_s(machine), link_gb_s=machine.link.gb_s, compared_with=standing(machine),
        )  # fmt: skip


def machine_summaries() -> list[MachineSummary]:
    """A summary of every preset."""
    return [MachineSummary.of(load_machine(name)) for name in preset_names()]


def machine_frame() -> pd.DataFrame:
    """A row for each preset: the fields of :class:`MachineSummary`."""
    import pandas as pd  # here, because it takes half a second to import

    return pd.DataFrame([asdict(summary) for summary in machine_summaries()])


def new_machine(path: str | Path, base: str = "paper") -> Path:
    """Writes a machine file with every key of the preset ``base`` as a comment, and returns it.

    ``path``: its name, to which ``.toml`` is added. Raises ValueError if there is such a file, which is left as it is,
    if it cannot be written, for the name of a preset, and for an unknown base.
    """
    arguments.instance("path", path, (str, os.PathLike), "the name of a new file")
    file, content = _free_path(str(path)), machine_template(base)
    try:
        opened = file.open("x", encoding="utf-8")
    except FileExistsError as error:
        raise ValueError(f"{readable(file)} exists, and is left as it is: choose another name") from error
    except OSError as error:
        raise ValueError(
            f"NAME must be that of a file that can be written, not {readable(file)}: {error.strerror}"
        ) from error
    with opened:
        try:
            opened.write(content)
            opened.flush()
        except BaseException:
            file.unlink()
            raise
    return file


def _free_path(name: str) -> Path:
    """Where the machine ``name`` goes. Raises ValueError for a name that no file or another machine can have."""
    path = Path(name if name.endswith(SUFFIX) else f"{name}{SUFFIX}")
    if path.name == SUFFIX or not name.isprintable():
        raise ValueError(f"NAME must be the name of a new file, in printable characters, not {name!r}")
    if path.stem in preset_names():
        raise ValueError(f"NAME must not be that of a preset, {path.stem!r}, whose results yours would seem to be")
    return path
