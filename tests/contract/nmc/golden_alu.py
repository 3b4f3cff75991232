"""An ALU of one stage with the golden arithmetic, as a part that can be told to err."""

import numpy as np
from numba import cfunc
from t3hdl.config import T3Config
from t3hdl.interface.signatures import alu_signature
from t3hdl.interface.words import ports_of, word_map
from t3sim.hardware.abi import CALL, NativeFunction, PartType
from t3sim.hardware.golden.arithmetic import LANE_BITS, lane
from t3sim.hardware.words import int64_at

_IN, _OUT = ports_of(alu_signature(T3Config()))
_LANE_BITS = tuple(LANE_BITS.values())
RESULT, FLAG, SILENT, MASKED_FLAG = range(1, 5)
"""Faults: a wrong result or a wrong inexact flag of one lane, no results, flags of lanes that are masked off."""


@cfunc(CALL)
def _reset(state_at, in_at, out_at):
    out = int64_at(out_at, _OUT.size)
    for word in range(_OUT.size):
        out[word] = 0


@cfunc(CALL)
def _step(state_at, in_at, out_at):
    fault, faulty_lane, faulty_a = int64_at(state_at, 3)
    words, out = int64_at(in_at, _IN.size), int64_at(out_at, _OUT.size)
    dtype, mask = words[_IN.dtype], words[_IN.mask]
    bits, flags = _LANE_BITS[dtype], 0
    ones, size = (1 << bits) - 1, bits // 8
    for place in range(256 // bits):
        word, shift = divmod(place * bits, 64)
        old, new = words[_IN.old + word] >> shift & ones, words[_IN.data + word] >> shift & ones
        result, raised = old, 0
        if mask >> place * size & (1 << size) - 1 == (1 << size) - 1:
            result, raised = lane(words[_IN.op], dtype, old, new)
            if old == faulty_a and place == faulty_lane:
                if fault == RESULT:
                    result ^= 1
                elif fault == FLAG:
                    raised ^= 1
        elif fault == MASKED_FLAG:
            raised = 16
        flags |= raised
        kept = out[_OUT.result + word] & ~(ones << shift)
        out[_OUT.result + word] = kept | result << shift
    out[_OUT.result_valid] = words[_IN.valid] if fault != SILENT else 0
    out[_OUT.flags] = flags


def golden_alu(fault: int = 0, lane: int = 0, a: int = -1) -> PartType:
    """The part; ``fault`` occurs in this lane for this operand a."""
    state = np.array([fault, lane, a], np.int64)
    return PartType(
        name="alu",
        words=word_map(alu_signature(T3Config())),
        step=NativeFunction(_step.address, _step),
        reset=NativeFunction(_reset.address, _reset),
        new=lambda: state.ctypes.data,
    )
