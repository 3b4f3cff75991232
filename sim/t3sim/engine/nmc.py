"""Near-memory reduction of the lines that carry data: the bank-side unit (RTL or golden), one line at a time.

The unit's timing does not depend on data, so lines without data need no evaluation of it; DRAM's timing model already
holds the bank group for an update.
"""

from t3hdl.interface.words import WORD_BYTES

from t3sim.common.compiled import compiled_inner
from t3sim.hardware.abi import address_of
from t3sim.hardware.words import NMC_REQUEST, place

from .state import INT32, INT64, LINE_WORDS
from .t3unit.ports import NMC_IN, NMC_OUT
from .t3unit.words import NMC, OF_NMC, part_in, part_out

MAX_LATENCY = 64

FIELDS = {
    "carry_of": (INT32, 1),  # [output lines] carried line number or -1
    "partial": (INT64, 2),  # [carried, LINE_WORDS]
    "memory": (INT64, 2),  # [carried, LINE_WORDS]
}


@compiled_inner
def _expand(mask, word):
    """The byte mask of 64-bit word ``word`` as a bit mask."""
    bits = 0
    for byte in range(WORD_BYTES):
        if mask >> (WORD_BYTES * word + byte) & 1:
            bits |= 0xFF << (8 * byte)
    return bits


@compiled_inner
def store_line(g, carry, data):
    """A plain store of a carried line."""
    for word in range(LINE_WORDS):
        g.memory[carry, word] = data[word]


@compiled_inner
def update_line(g, step, carry, op, data):
    """An op-and-store on carried line ``carry``, which is the unit's memory; ``step``: its function."""
    words = g.words
    base, out = part_in(g, NMC, 0), part_out(g, NMC, 0)
    request = base + NMC_IN.request_payload
    words[request] = place(NMC_REQUEST.line, carry) | place(NMC_REQUEST.op, op)
    words[request + NMC_REQUEST.mask.word] = place(NMC_REQUEST.mask, NMC_REQUEST.mask.mask)
    for word in range(LINE_WORDS):
        words[request + NMC_REQUEST.data.word + word] = data[word]
    pending = True
    for _ in range(MAX_LATENCY):
        words[base + NMC_IN.request_valid] = pending
        taken = pending and words[out + NMC_OUT.request_ready] != 0
        reading = words[out + NMC_OUT.read_valid] != 0
        step(g.handles[NMC], address_of(words[base:]), address_of(words[out:]))
        g.evaluated[OF_NMC] += 1
        pending = pending and not taken
        if reading:
            # The memory answers one cycle after the read.
            for word in range(LINE_WORDS):
                words[base + NMC_IN.read_data + word] = g.memory[carry, word]
        if words[out + NMC_OUT.write_valid]:
            for word in range(LINE_WORDS):
                mask = _expand(words[out + NMC_OUT.write_mask], word)
                written = words[out + NMC_OUT.write_data + word]
                g.memory[carry, word] = (g.memory[carry, word] & ~mask) | (written & mask)
            return
    raise RuntimeError("the NMC unit did not perform an update")
