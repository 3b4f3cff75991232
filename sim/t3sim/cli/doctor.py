"""`t3 doctor`: is everything here that a simulation needs, and what to do if not."""

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from opent3.options import usable_cores
from rich.console import Console

from t3sim.common.cache import BuildError, cache_folder
from t3sim.common.fitted_table import FittedTable
from t3sim.common.user_input import readable

from .bars import bar_or_lines
from .console import plain_console
from .start import repair

EXTRAS = {
    "prove": ("proof tools", "`t3 prove`"),
    "fpga": ("FPGA tools", "`t3 fpga`"),
    "dashboard": ("dashboard", "the page that shows the workers of many runs"),
}
"""Extra -> what it is, and what alone needs it."""
GIB = 1 << 30
CACHE_BYTES = GIB
"""Disk that the compiled hardware of a few configurations takes, with room."""
MEMORY_BYTES = 2 * GIB
"""Memory that a paper-size simulation takes, with room."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One line of the doctor's table. ``optional``: all works, but something is missing or left over."""

    name: str
    ok: bool
    found: str
    remedy: str = ""
    optional: bool = False

    @property
    def mark(self) -> str:
        """What the first column says."""
        return ("--" if self.optional else "ok") if self.ok else "FAIL"


def check_all(on_file: repair.OnFile | None = None) -> list[Check]:
    """Every check, in the order in which a user fixes them."""
    return [
        _python(), *_toolchain(), _packages(), *map(_extra, EXTRAS), _cache(), _entries(on_file), _disk(),
        _cores(), _memory(),
    ]  # fmt: skip


@click.command()
@click.option(
    "--fix", is_flag=True, help="Repair the cache folder, and print the commands that install what is missing."
)
def doctor(fix: bool) -> None:
    """Check that everything a simulation needs is here.

    Exit code 1 if something is not.
    """
    console = plain_console()
    with bar_or_lines(plain_console(stderr=True), "doctor", "started") as show:

        def tell(done: int, total: int) -> None:
            show(done, total, f"{done} of {total} compiled functions looked at")

        repaired = _repaired(tell) if fix else []
        checks = check_all(tell)
    for line in repaired:
        console.print(readable(line))
    console.print(doctor_table(checks))
    if fix:
        _print_installs(console)
    if not all(check.ok for check in checks):
        sys.exit(1)


def _print_installs(console: Console) -> None:
    """Prints the commands that install what is missing."""
    from .start import packages

    for extra in ("", *packages.extras()):
        if missing := packages.missing_packages(extra):
            user = EXTRAS[extra][1].strip("`") if extra in EXTRAS else extra
            console.print(f"for {user or 'every command'}:")
            console.print(f"  {packages.pip_command(missing)}", soft_wrap=True)  # to be copied


def _repaired(on_file: repair.OnFile) -> list[str]:
    """What was repaired; nothing where there is no folder to look into, which the checks say."""
    try:
        return repair.repair(cache_folder(), on_file)
    except BuildError:
        return []


def doctor_table(checks: Sequence[Check]) -> FittedTable:
    """A line for each check; remedies have a column if there are any."""
    failed = any(check.remedy for check in checks)
    titles = ("", "what", "found", *(["remedy"] if failed else []))
    table = FittedTable(*titles, names=2, text=titles)
    for check in checks:
        table.add_row(check.mark, check.name, check.found, *([check.remedy] if failed else []))
    return table


def _python() -> Check:
    ok = sys.version_info >= (3, 11)
    return Check(
        name="Python", ok=ok, found=platform.python_version(), remedy="" if ok else "install Python 3.11 or newer"
    )


def _toolchain() -> list[Check]:
    """Verilator and the C++ compiler, by the rtl backend's search; make and perl, which `t3` does without."""
    from t3sim.hardware.rtl.toolchain import find_toolchain  # here, because it takes half a second to import

    try:
        tools = find_toolchain()
        checks = [
            Check(name="C++ compiler", ok=True, found=tools.compiler_version.splitlines()[0]),
            Check(name="Verilator", ok=True, found=tools.verilator_version),
        ]
    except BuildError as error:
        checks = [Check(name="rtl backend's tools", ok=False, found="incomplete", remedy=str(error))]
    for tool, purpose in (("make", "`make run` and `make test`"), ("perl", "testbenches under Verilator")):
        path = shutil.which(tool)
        found = path or f"missing; only {purpose} need it"
        checks.append(Check(name=tool, ok=True, found=found, optional=path is None))
    return checks


def _packages() -> Check:
    """What every command needs, in versions that will do."""
    from .start import packages  # here, above and below, because every command would pay for its import

    missing = packages.missing_packages()
    return Check(
        name="Python packages", ok=not missing, found=f"missing {', '.join(missing)}" if missing else "complete",
        remedy=packages.pip_command(missing) if missing else "",
    )  # fmt: skip


def _extra(extra: str) -> Check:
    """The packages of one purpose; nothing else needs them, so that they may be missing."""
    from .start import packages

    title, user = EXTRAS[extra]
    if extra not in packages.extras():
        return Check(name=title, ok=True, found="unknown: opent3 itself was not installed by pip", optional=True)
    missing = packages.missing_packages(extra)
    remedy = f"missing {', '.join(missing)}; only {user} needs it: pip install 'opent3[{extra}]'"
    return Check(name=title, ok=True, found=remedy if missing else "complete", optional=bool(missing))


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
        return Check(name=name, ok=False, found=f"{readable(folder)}: {error.strerror}", remedy=remedy)


def _cache() -> Check:
    def check(folder: Path) -> Check:
        with tempfile.TemporaryFile(dir=folder):
            return Check(name="cache folder", ok=True, found=readable(folder))

    return _guarded("cache folder", "make it writable, or set OPENT3_CACHE to a folder that is", check)


def _entries(on_file: repair.OnFile | None) -> Check:
    """What is in the cache folder: whole, and ours to write. Where there is no folder, others say so."""
    name = "cache entries"
    try:
        wrong = repair.faults(cache_folder(), on_file)
    except BuildError as error:
        return Check(name=name, ok=False, found="not looked at", remedy=str(error))
    except OSError as error:
        remedy = "see to its disk and permissions, or set OPENT3_CACHE to another folder"
        return Check(name=name, ok=False, found=f"{readable(error.filename)}: {error.strerror}", remedy=remedy)
    if not wrong:
        return Check(name=name, ok=True, found="no fault")
    wrong.sort(key=lambda fault: not fault.hinders)
    found = f"{readable(wrong[0].path)} {wrong[0].what}"
    if len(wrong) > 1:
        found += f", and {len(wrong) - 1} more fault{'s' * (len(wrong) > 2)}"
    harmless = not wrong[0].hinders
    return Check(name=name, ok=harmless, optional=harmless, found=found, remedy="t3 doctor --fix")


def _disk() -> Check:
    remedy = f"free {CACHE_BYTES // GIB} GiB there, or set OPENT3_CACHE to a folder on another disk"

    def check(folder: Path) -> Check:
        free = shutil.disk_usage(folder).free
        ok = free >= CACHE_BYTES
        return Check(name="disk", ok=ok, found=f"{free / GIB:.1f} GiB free in the cache", remedy="" if ok else remedy)

    return _guarded("disk", remedy, check)


def _cores() -> Check:
    return Check(name="cores", ok=True, found=f"{usable_cores()} usable")


def _memory() -> Check:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    ok = total >= MEMORY_BYTES
    return Check(
        name="memory",
        ok=ok,
        found=f"{total / GIB:.1f} GiB",
        remedy="" if ok else f"a paper-size simulation wants {MEMORY_BYTES // GIB} GiB; use --machine toy or --mirror",
    )
