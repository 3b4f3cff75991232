"""How the engine's functions are compiled."""

from pathlib import Path
from typing import Any

from filelock import FileLock
from numba import config, njit, typeof
from numba.core import errors

from ..toolchain import cache_errors

# Where colorama is installed, Numba wraps sys.stdout anew for each message that it words, and unwraps it again. Threads
# that compile side by side leave wrappers behind, until a print is nested too deeply. Kernels need no colours.
for name in ("init", "reinit", "deinit"):
    setattr(errors, name, lambda: None)

inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
"""A function that only other kernels call: without wrappers for Python, which would unpack a GPU's arrays each."""

kernel = njit(cache=True, nogil=True, error_model="numpy")
"""An entry from Python: releases the interpreter lock, kept on disk."""


def compile_once(function: Any, *arguments: Any) -> None:
    """Compile the kernel ``function`` for calls with ``arguments``, if that was not done before.

    Of several processes with the same cache folder one compiles, and the others wait and load what it made. Raises
    BuildError if the cache folder cannot be used.
    """
    folder = Path(config.CACHE_DIR)
    types = tuple(typeof(argument) for argument in arguments)
    with cache_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{function.__name__}.lock"):
            function.compile(types)
