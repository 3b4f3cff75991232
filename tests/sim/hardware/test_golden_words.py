"""Field access of the golden model, and that no part of it computes in floating point."""

import importlib
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from amaranth.lib import data
from numba import njit
from t3hdl.config import T3Config
from t3hdl.interface.layouts import ConfigWrite, MemoryRequest
from t3hdl.interface.signatures import tracker_signature
from t3hdl.interface.words import (
    fields_of,
    join,
    mask_of,
    pack,
    ports_of,
    signed,
    split,
    unpack,
    value_at,
    word_count,
    word_map,
)
from t3sim.hardware import words
from t3sim.hardware.golden.backend import MODELS

PARTS = tuple(module.__name__.rpartition(".")[2] for module in MODELS.values())
QUICK = ("matcher", "monitor")
"""Parts that Numba compiles in few seconds."""


def words_of(value: int, count: int) -> np.ndarray:
    """A struct as signed words."""
    return np.array([signed(word) for word in split(value, count)], np.int64)


@njit
def _read_all(memory):
    return (
        words.get(memory, 1, words.REQUEST.line),
        words.get(memory, 1, words.REQUEST.source),
        words.get(memory, 1, words.REQUEST.bottom),
        words.get(memory, 1, words.REQUEST.tag),
    )


@njit
def _write_all(memory, line, source, bottom, tag):
    words.put(memory, 1, words.REQUEST.line, line)
    words.put(memory, 1, words.REQUEST.source, source)
    words.put(memory, 1, words.REQUEST.bottom, bottom)
    words.put(memory, 1, words.REQUEST.tag, tag)


@njit
def _copy_config(memory):
    address, value = words.config_address(memory, 0), words.config_data(memory, 0)
    words.put_config(memory, 2, address, value)
    return address, value


def test_fields_keep_their_neighbours_and_all_bits():
    rng = random.Random(3)
    print("seed 3")
    for _ in range(50):
        old, other = (unpack(MemoryRequest, rng.getrandbits(MemoryRequest.size)) for _ in range(2))
        new = {name: other[name] for name in ("line", "source", "bottom", "tag")}
        memory = np.concatenate([[-1], words_of(pack(MemoryRequest, **old), 2), [-1]])
        assert _read_all(memory) == tuple(old[name] for name in new)
        _write_all(memory, *new.values())
        assert unpack(MemoryRequest, join(memory[1:3])) == old | new
        assert (memory[0], memory[3]) == (-1, -1)


def test_values_that_do_not_fit_are_cut():
    memory = np.zeros(3, np.int64)
    _write_all(memory, -1, 256, 2, -1)
    assert _read_all(memory) == ((1 << 39) - 1, 0, 0, (1 << 29) - 1)


@pytest.mark.parametrize("value", [0, 1, 1 << 63, (1 << 64) - 1, 0x8123_4567_89AB_CDEF])
def test_configuration_data_span_two_words(value):
    memory = np.concatenate([words_of(pack(ConfigWrite, address=0xFFF8, data=value), 2), [0, 0]])
    address, seen = _copy_config(memory)
    assert (address, seen & (1 << 64) - 1) == (0xFFF8, value)
    assert np.array_equal(memory[:2], memory[2:])


def test_words_of_a_value():
    value = 0x0123_4567_89AB_CDEF << 64 | 1 << 63
    assert split(value, 2) == [1 << 63, 0x0123_4567_89AB_CDEF] and join(split(value, 2)) == value
    assert join([signed(word) for word in split(value, 2)]) == value and signed(1 << 63) == -1 << 63
    assert value_at(np.array([7, *split(value, 2)], np.uint64), (1, 121)) == value
    assert (word_count(1), word_count(64), word_count(65)) == (1, 1, 2)


def test_fields_of_an_integer():
    word = pack(MemoryRequest, line=3, op=2, tag=9)
    assert unpack(MemoryRequest, word) == dict.fromkeys(MemoryRequest.members, 0) | {"line": 3, "op": 2, "tag": 9}
    assert mask_of(MemoryRequest, "op", "stream") == pack(MemoryRequest, op=7, stream=1)
    with pytest.raises(ValueError, match="^field op has 3 bits and takes 0 to 7, not 8$"):
        pack(MemoryRequest, op=8)
    with pytest.raises(KeyError):
        pack(MemoryRequest, operation=1)


def test_a_field_over_two_words_is_refused():
    with pytest.raises(ValueError, match="must not straddle 64-bit words, unlike 'wide' at bit 60"):
        fields_of(data.StructLayout({"low": 60, "wide": 8}))


def test_ports_have_the_places_of_the_word_map():
    signature = tracker_signature(T3Config(tracker_banks=2))
    inputs, outputs = ports_of(signature)
    expected = word_map(signature)
    assert inputs.token_1_payload == expected.inputs["token.1.payload"][0]
    assert (inputs.size, outputs.size) == (expected.input_words, expected.output_words)
    assert outputs.wake_at == expected.outputs["wake_at"][0]


def test_state_map_lays_variables_out_in_order():
    assert words.state_map(a=1, b=3, c=2)._asdict() == {"a": 0, "b": 1, "c": 4, "size": 6}


def module_of(part: str) -> str:
    """The module with the step function of a part: that of its own name where the part is a package."""
    name = f"t3sim.hardware.golden.{part}"
    return f"{name}.{part}" if hasattr(importlib.import_module(name), "__path__") else name


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.long if part in QUICK else pytest.mark.slow) for part in PARTS]
)
def test_no_part_computes_in_floating_point(part, tmp_path):
    """In a process of its own with an empty cache: Numba does not show the code of what it loads from its cache."""
    script = (
        f"from {module_of(part)} import reset, step\n"
        "assert 'i64' in step.inspect_llvm()\n"
        "assert 'double' not in step.inspect_llvm() + reset.inspect_llvm()\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_parts_share_one_call_signature():
    for part in PARTS:
        module = importlib.import_module(module_of(part))
        assert str(module.step._sig) == str(module.reset._sig) == "(int64, int64, int64) -> none"
