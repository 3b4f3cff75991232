"""Fields, ports and state words for the golden model's Numba functions.

The golden model computes in ``int64`` only: a word is 64 bits, seen as signed, and a field is taken out by shift and
mask, so that the sign of a word never matters and no mixed-sign arithmetic (which Numba turns into floating point)
can occur. All positions come from the shared definitions in :mod:`t3hdl`; as global tuples they are constants to Numba.
"""

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.lib.wiring import Signature
from t3hdl.interface import layouts, register_map
from t3hdl.interface.signatures import word_map

from t3sim.common.compiled import njit
from t3sim.hardware.abi import words_at


class Field(NamedTuple):
    """Place of a field in its layout: word number, lowest bit in that word, mask at bit 0 (-1 for 64 bits)."""

    word: int
    shift: int
    mask: int


def fields_of(layout: data.StructLayout, *, first_word: int = 0) -> Any:
    """A named tuple with a :class:`Field` per field of ``layout``, which starts at word ``first_word``.

    A field wider than a word names its first word. Raises ValueError for a field that starts inside a word and ends
    in another one: it needs its own access function.
    """
    fields = {}
    for name, field in layout:
        word, shift = divmod(field.offset, 64)
        width = Shape.cast(field.shape).width
        if shift and shift + width > 64:
            raise ValueError(f"a field must not straddle 64-bit words, unlike {name!r} at bit {field.offset}")
        fields[str(name)] = Field(first_word + word, shift, (1 << width) - 1 if width < 64 else -1)
    return namedtuple("Fields", fields)(**fields)


def ports_of(signature: Signature) -> tuple[Any, Any]:
    """First words of the inputs and of the outputs, as two named tuples; ``token.0.payload`` is ``token_0_payload``.

    Both have a last member ``size``: the number of words.
    """
    words = word_map(signature)
    result = []
    for ports, size in (
        (words.inputs, words.input_words),
        (words.outputs, words.output_words),
    ):
        first = {path.replace(".", "_"): word for path, (word, _) in ports.items()} | {"size": size}
        result.append(namedtuple("Ports", first)(**first))
    return result[0], result[1]


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
VIOLATION = fields_of(layouts.Violation)
CONTROL = fields_of(register_map.Control)
STATUS = fields_of(register_map.Status)
ARBITER = fields_of(register_map.Arbiter)
THRESHOLDS = fields_of(register_map.Thresholds)
ERRORS = fields_of(register_map.Errors)
INTERRUPTS = fields_of(register_map.Interrupts)
LOCK = fields_of(register_map.Lock)
VIOLATION_RECORD = fields_of(register_map.ViolationRecord)
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

_ADDRESS = layouts.ConfigWrite["address"]
_DATA = layouts.ConfigWrite["data"]
_ADDRESS_MASK = (1 << Shape.cast(_ADDRESS.shape).width) - 1
_DATA_SHIFT = _DATA.offset
_HIGH_MASK = (1 << _DATA_SHIFT) - 1
_LOW_MASK = (1 << (64 - _DATA_SHIFT)) - 1
if _ADDRESS.offset != 0 or not 0 < _DATA_SHIFT < 64:
    raise ValueError(f"ConfigWrite must start with the address and split its data over two words, not {_DATA!r}")


@njit(cache=True)
def int64_at(address, count):
    """The ``count`` words at ``address``, as int64."""
    return words_at(address, count).view(np.int64)


@njit(cache=True)
def get(words, first, field):
    """The value of ``field`` (a :class:`Field`) of the struct that starts at word ``first`` of ``words``."""
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
    return ((words[first] >> _DATA_SHIFT) & _LOW_MASK) | (words[first + 1] << (64 - _DATA_SHIFT))


@njit(cache=True)
def put_config(words, first, address, value):
    """Write address and data of a configuration write to the port that starts at word ``first``."""
    words[first] = address | (value << _DATA_SHIFT)
    words[first + 1] = (value >> (64 - _DATA_SHIFT)) & _HIGH_MASK
