"""How the engine's functions are compiled."""

from numba import njit
from numba.core import errors

# Where colorama is installed, Numba wraps sys.stdout anew for each message that it words, and unwraps it again. Threads
# that compile side by side leave wrappers behind, until a print is nested too deeply. Kernels need no colours.
for name in ("init", "reinit", "deinit"):
    setattr(errors, name, lambda: None)

inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
"""A function that only other kernels call: without wrappers for Python, which would unpack a GPU's arrays each."""

kernel = njit(cache=True, nogil=True, error_model="numpy")
"""An entry from Python: releases the interpreter lock, kept on disk."""
