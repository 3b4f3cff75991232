"""Numba with its kernels kept in our cache folder. All other modules take ``njit`` and ``cfunc`` from here."""

import os
from functools import cache
from pathlib import Path
from typing import Any, Self

import t3hdl
from numba import cfunc, config, njit
from numba.core import errors
from numba.core.caching import UserProvidedCacheLocator

from .cache import BuildError, FileLock, cache_errors, cache_folder, check_writable, digest

__all__ = ["cfunc", "compile_types", "compiled", "compiled_inner", "is_kept", "njit"]

# Where colorama is installed, Numba wraps sys.stdout anew for each message that it words, and unwraps it again. Threads
# that compile side by side leave wrappers behind, until a print is nested too deeply. Kernels need no colours.
for name in ("init", "reinit", "deinit"):
    setattr(errors, name, lambda: None)

compiled_inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
"""A function that only other kernels call: without wrappers for Python, which would unpack a GPU's arrays each."""

compiled = njit(cache=True, nogil=True, error_model="numpy")
"""An entry from Python: releases the interpreter lock, kept on disk."""


class CompiledCache(UserProvidedCacheLocator):
    """Where Numba keeps a function. A folder that cannot be written may still hold it.

    Raises BuildError, when the function is defined, if the folder is neither there nor can be made.
    """

    def ensure_cache_path(self) -> None:
        """Make the folder, and see whether it can be written. Raises BuildError."""
        with cache_errors(Path(config.CACHE_DIR)):
            super().ensure_cache_path()

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Self:
        """The place of ``py_func``."""
        found = cls(py_func, py_file)
        try:
            found.ensure_cache_path()
        except BuildError:
            if not os.path.isdir(found.get_cache_path()):
                raise
        return found


def is_kept(function: Any, types: tuple[Any, ...]) -> bool:
    """Whether the cache folder holds the kernel ``function`` for arguments of these Numba types."""
    kept = function._cache  # Numba has no public way to ask, and its own loads the code
    return kept._cache_file.load(kept._index_key(types, function.targetctx.codegen())) is not None


def compile_types(function: Any, types: tuple[Any, ...]) -> None:
    """Compile the kernel ``function`` for arguments of these Numba types, if that was not done before.

    Of several processes with the same cache folder one compiles, and the others wait and load what it made. Raises
    BuildError if the function is not in the cache folder and cannot be kept there.
    """
    folder = Path(config.CACHE_DIR)
    try:
        check_writable(folder)
    except BuildError:
        if not is_kept(function, types):
            raise
        function.compile(types)
        return
    with cache_errors(folder), FileLock(folder / f"{function.__name__}.lock"):
        function.compile(types)


COMPILED_PACKAGES = ("common", "dram", "hardware", "collective", "engine", "validation")
"""Packages of t3sim with kernels in them; what only calls kernels is in the others."""


@cache
def _sources() -> str:
    """Digest of all sources that a kernel may call: Numba's own check sees a change in the kernel's file only."""
    here, hardware = Path(__file__).parents[1], Path(next(iter(t3hdl.__path__)))
    packages = [here / room for room in COMPILED_PACKAGES]
    files = [path for room in (*packages, hardware) for path in room.rglob("*.py")]
    return digest(*(path.read_text("utf-8") for path in sorted(files)))[:16]


if "NUMBA_CACHE_DIR" not in os.environ:
    config.CACHE_DIR = str(cache_folder() / f"numba-{_sources()}")
config.CACHE_LOCATOR_CLASSES = f"{__name__}.{CompiledCache.__name__}"
