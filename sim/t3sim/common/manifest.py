"""Which files of an output folder this program wrote: a manifest beside them holds the digest of each.

A file counts as ours only while it is a regular file with a digest of the manifest. Whatever else is in the folder,
also a file of ours that somebody has edited since, belongs to the user and is never replaced or deleted.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

from t3sim import __version__

from .user_input import read_file

MANIFEST = "t3-manifest.json"
"""Name of the manifest in every output folder."""
MAX_BYTES = 1 << 24
"""Size of a manifest: a hundred thousand files."""
LONGEST_PART = 255
"""Bytes in a name, on any file system."""


class Manifest(BaseModel):
    """``files``: path relative to the folder -> SHA-256 digests, one of which the file has.

    There are two digests only while the files of an earlier output are being replaced one by one, so that what an
    interruption leaves is still known as ours.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal[1] = 1
    opent3: str = __version__
    files: dict[str, tuple[str, ...]]

    @field_validator("files")
    @classmethod
    def _inside(cls, files: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for name in files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or not path.parts:
                raise ValueError(f"{name!r} is not a path inside the folder")
            if max(len(os.fsencode(part)) for part in path.parts) > LONGEST_PART:
                raise ValueError(f"{name!r} is longer than a name can be")
        return files

    @classmethod
    def of(cls, folder: Path) -> "Manifest":
        """All files below ``folder``. Raises OSError if one cannot be read."""
        return cls(files={name: (digest_of(folder / name),) for name in sorted(_files(folder))})

    @classmethod
    def read(cls, folder: Path) -> "Manifest | None":
        """The manifest in ``folder``; None if there is none, or none that this program could have written."""
        path = folder / MANIFEST
        try:
            return None if path.is_symlink() else cls.model_validate_json(read_file(path, MAX_BYTES))
        except (OSError, ValueError):
            return None

    def merged(self, other: "Manifest") -> "Manifest":
        """Files of either, with the digests of both."""
        files = dict(self.files)
        for name, digests in other.files.items():
            files[name] = tuple(dict.fromkeys((*files.get(name, ()), *digests)))
        return Manifest(files=dict(sorted(files.items())))

    def holds(self, folder: Path, name: str) -> bool:
        """Whether file ``name`` of ``folder`` is as this program wrote it, reached through no link."""
        path = folder / name
        inside = [folder / parent for parent in PurePosixPath(name).parents if parent.parts]
        if path.is_symlink() or not path.is_file() or any(parent.is_symlink() for parent in inside):
            return False
        return digest_of(path) in self.files.get(name, ())

    def changed(self, folder: Path) -> list[str]:
        """Files of the manifest that are still there, but not as this program wrote them."""
        return [name for name in self.files if os.path.lexists(folder / name) and not self.holds(folder, name)]

    def text(self) -> str:
        """The manifest as JSON."""
        return self.model_dump_json(indent=1) + "\n"


EMPTY: Manifest = Manifest(files={})
"""What the manifest of a folder without files of ours says."""


def digest_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files(folder: Path) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in names:
            relative = Path(place, name).relative_to(folder).as_posix()
            if relative != MANIFEST:
                yield relative
