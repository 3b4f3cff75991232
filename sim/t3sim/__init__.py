"""The co-simulator of OpenT3: workloads, machines, policies, behavioural models, results and the command line."""

import hashlib
import os
from pathlib import Path

import platformdirs

__version__ = "0.1.0"

CACHE_VARIABLE = "OPENT3_CACHE"
"""Environment variable that overrides the cache folder."""


def cache_folder() -> Path:
    """Where compiled hardware and kernels are kept: ``$OPENT3_CACHE``, else the user's cache folder."""
    override = os.environ.get(CACHE_VARIABLE)
    return Path(override).expanduser() if override else platformdirs.user_cache_path("opent3")


def _source_digest() -> str:
    """Digest of all sources that a kernel may call: Numba's own check sees a change in the kernel's file only."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for path in sorted([*here.rglob("*.py"), *(here.parents[1] / "hdl" / "t3hdl").rglob("*.py")]):
        if not {here / "reports", here / "faults"} & {*path.parents}:  # they call kernels, and no kernel calls them
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder() / f"numba-{_source_digest()}"))
