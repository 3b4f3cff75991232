"""How the engine's functions are compiled."""

from numba import njit

inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
"""A function that only other kernels call: without wrappers for Python, which would unpack a GPU's arrays each."""

kernel = njit(cache=True, nogil=True, error_model="numpy")
"""An entry from Python: releases the interpreter lock, kept on disk."""
