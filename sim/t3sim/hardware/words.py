"""Fields of packed words in compiled code: for the golden model, the engine, and whatever else Numba compiles.

Compiled code computes in ``int64`` only: a word is 64 bits, seen as signed, and a field is taken out by shift and mask,
so that the sign of a word never matters and no mixed-sign arithmetic (which Numba turns into floating point) can occur.
All places come from :mod:`t3hdl.interface.words`; as global tuples they are constants to Numba.
"""

from collections import namedtuple
from typing import Any

import numpy as np
from t3hdl.interface import layouts, register_map
from t3hdl.interface.words import WORD_BITS, fields_of

from t3sim.common.compiled import njit

from .abi import words_at


def state_map(**words: int) -> Any:
    """First words of a state's variables, given their sizes in words, as a named tuple; ``size`` is the sum."""
    first, size = {}, 0
    for name, count in words.items():
        first[name] = size
        size += count
    first["size"] = size
    return namedtuple("State", first)(**first)


REQUEST = fields_of(layouts.MemoryRequest)
TOKEN = fields_of(layouts.Token)
TILE_DONE = fields_of(layouts.TileDone)
CHUNK_DONE = fields_of(layouts.ChunkDone)
COMMAND = fields_of(layouts.DmaCommand)
ROUTE = fields_of(layouts.Route)
LOAD = fields_of(layouts.SlotLoad)
NMC_REQUEST = fields_of(layouts.NmcRequest)
CONTEXT_STATUS = fields_of(layouts.ContextStatus)
STUCK = fields_of(layouts.Stuck)
TILE_TWICE = fields_of(layouts.TileTwice)
CONTROL = fields_of(register_map.Control)
STATUS = fields_of(register_map.Status)
ARBITER = fields_of(register_map.Arbiter)
THRESHOLDS = fields_of(register_map.Thresholds)
ERRORS = fields_of(register_map.Errors)
INTERRUPTS = fields_of(register_map.Interrupts)
LOCK = fields_of(register_map.Lock)
REFUSAL_RECORD = fields_of(register_map.RefusalRecord)
QUOTA = fields_of(register_map.Quota)
DEBUG_SELECT = fields_of(register_map.DebugSelect)
DEBUG_DATA = fields_of(register_map.DebugData)
RANGE = fields_of(register_map.RangeAttributes)
# One field tuple per descriptor word; the word number of each is the descriptor word that holds it.
DESCRIPTOR = tuple(fields_of(layout, first_word=i) for i, layout in enumerate(register_map.DESCRIPTOR_LAYOUTS))

READ, STORE, ADD, MIN, MAX, READ_CLEAR = (int(op) for op in layouts.Op)
KIND_NONE, KIND_REMOTE, KIND_DMA, KIND_LOCAL = (int(kind) for kind in layouts.ChunkKind)
EVENT_TILE, EVENT_OVERFLOW = (int(kind) for kind in layouts.EventKind)
NEVER = layouts.NEVER
TOKEN_LIMIT = (1 << layouts.COUNT_BITS) - 1

_ADDRESS, _DATA = layouts.ConfigWrite["address"], layouts.ConfigWrite["data"]
_ADDRESS_MASK = (1 << _ADDRESS.width) - 1
_DATA_SHIFT = _DATA.offset
_DATA_REST = WORD_BITS - _DATA_SHIFT
_HIGH_MASK = (1 << _DATA_SHIFT) - 1
_LOW_MASK = (1 << _DATA_REST) - 1
if _ADDRESS.offset != 0 or not 0 < _DATA_SHIFT < WORD_BITS:
    raise ValueError(f"ConfigWrite must start with the address and split its data over two words, not {_DATA!r}")


@njit(cache=True)
def int64_at(address, count):
    """The ``count`` words at ``address``, as int64."""
    return words_at(address, count).view(np.int64)


@njit(cache=True)
def get(words, first, field):
    """The value of ``field`` (one of :func:`~t3hdl.interface.words.fields_of`) of the struct at word ``first``."""
    return (words[first + field.word] >> field.shift) & field.mask


@njit(cache=True)
def put(words, first, field, value):
    """Write ``value`` to ``field`` of the struct that starts at word ``first``; its other fields stay."""
    index = first + field.word
    words[index] = (words[index] & ~(field.mask << field.shift)) | ((value & field.mask) << field.shift)


@njit(cache=True)
def take(word, field):
    """The value of ``field`` in one word of its struct (the word that holds the field)."""
    return (word >> field.shift) & field.mask


@njit(cache=True)
def place(field, value):
    """``value`` at the bit position of ``field``, in a word that is 0 otherwise."""
    return (value & field.mask) << field.shift


@njit(cache=True)
def bit_run(first, count):
    """A word with the ``count`` bits from bit ``first`` on set: the descriptors of a window."""
    return (-1 if count > 63 else (1 << count) - 1) << first


@njit(cache=True)
def config_address(words, first):
    """Byte address of the configuration write whose port starts at word ``first``."""
    return words[first] & _ADDRESS_MASK


@njit(cache=True)
def config_data(words, first):
    """Data of the configuration write whose port starts at word ``first``: all 64 bits, as int64."""
    return ((words[first] >> _DATA_SHIFT) & _LOW_MASK) | (words[first + 1] << _DATA_REST)


@njit(cache=True)
def put_config(words, first, address, value):
    """Write address and data of a configuration write to the port that starts at word ``first``."""
    words[first] = address | (value << _DATA_SHIFT)
    words[first + 1] = (value >> _DATA_REST) & _HIGH_MASK
