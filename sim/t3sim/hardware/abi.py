"""How software calls a part of the hardware, compiled RTL or golden model alike.

A part type has two functions of the machine signature ``void(intp state, intp in_words, intp out_words)``:

- ``reset`` brings the instance behind ``state`` to its state after reset and writes the outputs of the first cycle;
- ``step`` consumes the inputs of cycle t, clocks once and writes the outputs of cycle t + 1.

Words are unsigned 64-bit integers in the order of :func:`t3hdl.interface.words.word_map`. Bits of an output word
above the port's width are 0; bits of an input word above the port's width are ignored. Both functions are first-class
functions of one Numba type, so a kernel that is compiled once (``cache=True``) runs with either backend.
"""

import ctypes
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numba.experimental.function_type  # noqa: F401  Numba does not know WrapperAddressProtocol before
import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.core.errors import NumbaExperimentalFeatureWarning
from numba.extending import intrinsic, typeof_impl
from numba.types import WrapperAddressProtocol
from t3hdl.config import T3Config
from t3hdl.interface.parts import SIMULATED, TABLE
from t3hdl.interface.words import WordMap, split, value_at, word_count, word_map

from t3sim.common.compiled import njit

# Part functions are first-class functions by design, and the warning tells a user nothing that he can act on.
warnings.filterwarnings("ignore", "First-class function type", NumbaExperimentalFeatureWarning)

CALL = types.void(types.intp, types.intp, types.intp)
"""Numba signature of ``reset`` and ``step``, for ``@cfunc(CALL)``."""

_C_CALL = ctypes.CFUNCTYPE(None, ctypes.c_ssize_t, ctypes.c_ssize_t, ctypes.c_ssize_t)


@intrinsic
def _pointer(typingctx, address):
    """The integer ``address`` as a void pointer."""

    def codegen(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), codegen


@njit(inline="always")
def words_at(address, count):
    """The ``count`` words at ``address`` as a uint64 array (a view; for nopython code and cfuncs only)."""
    return carray(_pointer(address), (count,), np.uint64)


@njit(inline="always")
def address_of(array):
    """The address of an array's first element as the intp that a part function takes (Numba does not convert)."""
    return np.intp(array.ctypes.data)


class NativeFunction(WrapperAddressProtocol):
    """A machine-code function of signature :data:`CALL`, as an argument for Numba kernels.

    ``owner`` (a cfunc, a loaded library) is kept alive as long as this object is.
    """

    def __init__(self, address: int, owner: object) -> None:
        self.address = address
        self.owner = owner

    def __wrapper_address__(self) -> int:
        return self.address

    def signature(self) -> Any:
        return CALL


_FUNCTION = types.FunctionType(CALL)


class PartFunctions(tuple[NativeFunction, ...]):
    """Functions as one argument for Numba kernels, whose type is known without a look at each of them.

    Numba looks at the arguments of every call, which for a tuple of ten functions takes 0.2 ms.
    """


@typeof_impl.register(NativeFunction)
def _typeof_function(_value: NativeFunction, _context: object) -> types.Type:
    return _FUNCTION


@typeof_impl.register(PartFunctions)
def _typeof_functions(value: PartFunctions, _context: object) -> types.Type:
    return functions_type(len(value))


@cache
def functions_type(count: int) -> types.Type:
    """The Numba type of :class:`PartFunctions` with ``count`` functions."""
    return types.UniTuple(_FUNCTION, count)


@dataclass(frozen=True, kw_only=True)
class PartType:
    """One kind of part in one configuration.

    ``new`` makes an instance and returns its handle, the ``state`` argument of ``reset`` and ``step``; call ``reset``
    before the first ``step``. Instances live until :meth:`LoadedHardware.close`.
    """

    name: str
    words: WordMap
    step: NativeFunction
    reset: NativeFunction
    new: Callable[[], int]


@dataclass(frozen=True, kw_only=True)
class LoadedHardware:
    """The parts of one configuration, from one backend.

    ``parts``: those of :data:`~t3hdl.interface.parts.SIMULATED`, by name. ``close`` frees every instance; handles are
    invalid afterwards.
    """

    config: T3Config
    backend: str
    parts: Mapping[str, PartType]
    close: Callable[[], None]


@cache
def words_of(config: T3Config, name: str) -> WordMap:
    """The word map of any part of the table. Raises KeyError for another name."""
    return word_map(TABLE[name].ports(config))


@cache
def part_words(config: T3Config) -> Mapping[str, WordMap]:
    """The word map of every part of a :class:`LoadedHardware`, by name. To make them takes Amaranth a while."""
    return MappingProxyType({name: words_of(config, name) for name in SIMULATED})


class Instance:
    """One instance of a part with its words, for Python code (tests, probes); inner loops use the functions."""

    def __init__(self, part: PartType) -> None:
        self.part = part
        self.inputs = np.zeros(max(1, part.words.input_words), np.uint64)
        self.outputs = np.zeros(max(1, part.words.output_words), np.uint64)
        self._step, self._reset = (_C_CALL(function.address) for function in (part.step, part.reset))
        self.handle = part.new()
        self.reset()

    def reset(self) -> None:
        """Reset; ``outputs`` are those of the first cycle."""
        self._reset(self.handle, self.inputs.ctypes.data, self.outputs.ctypes.data)

    def step(self) -> None:
        """One clock with the present ``inputs``; ``outputs`` are those of the next cycle."""
        self._step(self.handle, self.inputs.ctypes.data, self.outputs.ctypes.data)

    def set(self, port: str, value: int) -> None:
        """Drive an input port. Raises KeyError for an unknown port, ValueError if the value does not fit."""
        first, bits = self.part.words.inputs[port]
        if not 0 <= value < 1 << bits:
            raise ValueError(f"{port} of {self.part.name} has {bits} bits, {value:#x} does not fit")
        for i, word in enumerate(split(value, word_count(bits))):
            self.inputs[first + i] = word

    def get(self, port: str) -> int:
        """The value of an output port. Raises KeyError for an unknown port."""
        return value_at(self.outputs, self.part.words.outputs[port])
