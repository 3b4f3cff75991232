"""Where the ports of the parts lie among their words, and which words of a GPU are wired to which.

Slice, matcher, monitor and NMC unit have the same ports in every configuration: their places are constants to Numba.
Those of the other parts depend on the configuration; a GPU has them in its record ``at``, found in its hardware.
"""

from collections.abc import Iterator

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface.layouts import ChunkDone, ConfigWrite, SlotLoad, TileDone, Token
from t3hdl.interface.parts import SIMULATED, TABLE
from t3hdl.interface.words import WORD_BITS, ports_of, word_count, word_map

from t3sim.hardware.abi import LoadedHardware, PartType

from ..state import INT64
from .words import FIRST, REGISTERS, instance_counts

_LEAST = T3Config(slices=1, node_inputs=1, leaf_outputs=1, tracker_banks=1, contexts=1)
"""Every array of ports has one member in it."""
_SAME = {name: TABLE[name].ports(_LEAST) for name in ("slice", "matcher", "monitor", "nmc")}
"""Parts whose ports do not depend on the configuration (:func:`places` checks it)."""
SLICE_IN, SLICE_OUT = ports_of(_SAME["slice"])
MATCHER_IN, MATCHER_OUT = ports_of(_SAME["matcher"])
MONITOR_IN, MONITOR_OUT = ports_of(_SAME["monitor"])
NMC_IN, NMC_OUT = ports_of(_SAME["nmc"])

_SIZED = {name: TABLE[name].ports(_LEAST) for name in SIMULATED if name not in _SAME}
"""The others: ports that every configuration has."""


def _field(part: str, port: str) -> str:
    return f"{part}_{port.replace('.0', '').replace('.', '_')}"


_FIELDS = {
    _field(part, port): (part, port)
    for part, signature in _SIZED.items()
    for words in (word_map(signature),)
    for port in (*words.inputs, *words.outputs)
}
AT = np.dtype([(field, np.int64) for field in _FIELDS])
"""First words of the ports of leaf, root, tracker, trigger and registers, among the inputs or outputs of their part.

``tracker_load_valid`` is the tracker's ``load_valid``; of an array it is the first member's: ``root_token_in_payload``.
"""

FIELDS = {
    "at": (AT, 0),
    "shown": (INT64, 2),  # [.., 2] word of the registers' inputs, word of a part's outputs that it shows
    "fault_words": (INT64, 2),  # [2, ..] outputs of parts: a stored bit was corrected, was uncorrectable
}

TOKEN_STRIDE = word_count(Token.size) + 1
"""Words from one member of an array of token streams to the next on the sending side: payload, valid."""
LOAD_PULSE, TILE_DONE_PULSE, CHUNK_DONE_PULSE, CONFIG_PULSE = (
    1 + word_count(layout.size) for layout in (SlotLoad, TileDone, ChunkDone, ConfigWrite)
)
"""Words of a pulse: valid, payload."""
POISON_PULSE = 2


def _first_word(part: PartType, port: str) -> int:
    words = part.words
    return (words.inputs if port in words.inputs else words.outputs)[port][0]


def places(hardware: LoadedHardware) -> np.ndarray:
    """The ``AT`` record of a configuration's parts.

    Raises ValueError if the ports of a part that should be the same in every configuration are not.
    """
    for name, signature in _SAME.items():
        if hardware.parts[name].words != word_map(signature):
            raise ValueError(f"the engine is compiled for other ports of a {name} than this configuration has")
    array = np.zeros((), AT)
    for field, (part, port) in _FIELDS.items():
        array[field] = _first_word(hardware.parts[part], port)
    return array


_COMBINED = ("init_done", "corrected", "uncorrectable")
"""Inputs of the registers that are made of an output of several parts."""


def shown(hardware: LoadedHardware, words: np.ndarray) -> np.ndarray:
    """Which words the registers show of the other parts: rows of (input of the registers, output of a part).

    Both are indices into the GPU's ``words``, which :func:`~.words.place` has made.
    """
    inputs, first = hardware.parts["registers"].words.inputs, int(words[2 * REGISTERS])
    rows = [
        (first + inputs[port][0], out + word)
        for name in ("tracker", "trigger", "monitor")
        for part, out in _instances(hardware, words, name)
        for port, (word, bits) in part.words.outputs.items()
        if port in inputs and port not in _COMBINED and bits <= WORD_BITS
    ]
    return np.array(rows, np.int64)


def fault_words(hardware: LoadedHardware, words: np.ndarray) -> np.ndarray:
    """Where the parts say that a stored bit was wrong: [corrected, uncorrectable] x outputs, indices into ``words``."""
    outputs = [
        [out + part.words.outputs[port][0] for port in ("corrected", "uncorrectable")]
        for name in instance_counts(hardware.config)
        for part, out in _instances(hardware, words, name)
        if "corrected" in part.words.outputs
    ]
    return np.ascontiguousarray(np.array(outputs, np.int64).T)


def _instances(hardware: LoadedHardware, words: np.ndarray, name: str) -> Iterator[tuple[PartType, int]]:
    """Every instance of a part in a GPU: its type, its first output word."""
    for index in range(instance_counts(hardware.config)[name]):
        yield hardware.parts[name], int(words[2 * (FIRST[name] + index) + 1])
