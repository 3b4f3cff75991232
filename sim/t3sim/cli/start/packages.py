"""The Python packages that this program needs, as its own metadata names them, and which of them are missing here."""

import importlib.metadata
import shlex
import sys
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.version import InvalidVersion

DISTRIBUTION = "opent3"
FOR_DEVELOPERS = "dev"
"""The extra that no command needs."""


def extras() -> list[str]:
    """The extras of this program; none of sources that were not installed, which say nothing."""
    try:
        named = importlib.metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [name for name in named if name != FOR_DEVELOPERS]


def missing_packages(extra: str = "") -> list[str]:
    """What pip must install for ``extra``, or without one for every command: what is not there, or in a version that
    will not do. Packages that are not for this Python or computer are not wanted."""
    return [_text(item) for item in _wanted(extra) if not _is_installed(item)]


def _wanted(extra: str) -> Iterator[Requirement]:
    """The requirements of ``extra`` alone."""
    try:
        texts = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return
    for item in map(Requirement, texts):
        if item.name != DISTRIBUTION and _holds(item, extra) and not (extra and _holds(item, "")):
            yield item


def _holds(item: Requirement, extra: str) -> bool:
    return item.marker is None or item.marker.evaluate({"extra": extra})


def _is_installed(item: Requirement) -> bool:
    try:
        return item.specifier.contains(importlib.metadata.version(item.name), prereleases=True)
    except (importlib.metadata.PackageNotFoundError, InvalidVersion):
        return False


def _text(item: Requirement) -> str:
    """The requirement without its marker, which holds here."""
    named = f"[{','.join(sorted(item.extras))}]" if item.extras else ""
    return f"{item.name}{named}{item.specifier}"


def pip_command(requirements: list[str]) -> str:
    """What installs them beside this program, for any shell."""
    return shlex.join([sys.executable, "-m", "pip", "install", *requirements])
