"""What the tests of ``t3 doctor`` share: a cache that is whole."""

from pathlib import Path

import pytest
from t3sim.cli import doctor

from .damage import NAME


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A cache folder with an entry that is whole."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / f"{NAME}.v").write_text("module t3_slice;\nendmodule\n")
    monkeypatch.setenv("OPENT3_CACHE", str(cache))
    monkeypatch.setattr(doctor, "_toolchain", list)  # it takes seconds, and is nothing that --fix repairs
    return cache
