"""The computer that a measurement of real time is of."""

import os
import platform
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_NAME = "model name"


def computer() -> str:
    """Cores that this process may use, and what the processor calls itself; its architecture where that is not told."""
    cores = len(os.sched_getaffinity(0))
    return f"{cores} core{'s' if cores > 1 else ''} of {_processor()}"


def _processor() -> str:
    """By Linux; the first one, if there are several."""
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith(_NAME))
    return next(filter(None, names), f"an unnamed {platform.machine()}")
