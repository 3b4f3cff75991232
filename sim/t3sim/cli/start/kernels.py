"""Whether the engine's kernels are compiled: the cache folder keeps them, one set for each state of the sources."""

import sys
from pathlib import Path

from numba import config

import t3sim.common.compiled  # noqa: F401  it says where Numba's folder is

_ENTRY = "gpu.advance"
"""The kernel that a simulation calls; all others are compiled into it."""


def are_kept() -> bool:
    """Whether a simulation finds its kernels, and does not compile them for a minute or two."""
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    return any(Path(config.CACHE_DIR).glob(f"*/{_ENTRY}-*.{python}.nbi"))
