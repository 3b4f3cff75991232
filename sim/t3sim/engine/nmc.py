"""Near-memory reduction of the lines that carry data: the bank-side unit (RTL or golden), one line at a time.

The unit's timing does not depend on data, so lines without data need no evaluation of it; DRAM's timing model already
holds the bank group for an update.
"""

from t3hdl.config import T3Config
from t3hdl.interface.layouts import NmcRequest
from t3hdl.interface.signatures import nmc_signature, word_map

from t3sim.common.compiled import inner
from t3sim.hardware.abi import address_of

from .words import NMC, part_in, part_out

_WORDS = word_map(nmc_signature(T3Config()))
REQUEST, REQUEST_VALID = _WORDS.inputs["request.payload"][0], _WORDS.inputs["request.valid"][0]
READ_DATA = _WORDS.inputs["read_data"][0]
REQUEST_READY, READ_VALID = _WORDS.outputs["request.ready"][0], _WORDS.outputs["read_valid"][0]
WRITE_VALID, WRITE_DATA = _WORDS.outputs["write_valid"][0], _WORDS.outputs["write_data"][0]
WRITE_MASK = _WORDS.outputs["write_mask"][0]
OP_SHIFT = NmcRequest["op"].offset
FULL_MASK = (1 << NmcRequest["mask"].width) - 1
MAX_LATENCY = 64


@inner
def _expand(mask, word):
    """The byte mask of 64-bit word ``word`` as a bit mask."""
    bits = 0
    for byte in range(8):
        if mask >> (8 * word + byte) & 1:
            bits |= 0xFF << (8 * byte)
    return bits


@inner
def apply_update(g, carry, op, data):
    """Queue an op-and-store on carried line ``carry``, for the end of this cycle."""
    s = g.s[0]
    update = g.updates[s.update_count]
    update[0], update[1] = carry, op
    for word in range(4):
        update[2 + word] = data[word]
    s.update_count = s.update_count + 1


@inner
def store_line(g, carry, data):
    """A plain store of a carried line."""
    for word in range(4):
        g.memory[carry, word] = data[word]


@inner
def run_updates(g, step):
    """Perform the op-and-stores of this cycle, in the order in which their column commands issued."""
    s = g.s[0]
    for i in range(s.update_count):
        _run(g, step, g.updates[i, 0], g.updates[i, 1], g.updates[i, 2:])
    s.update_count = 0


@inner
def _run(g, step, carry, op, data):
    """One op-and-store through the unit, with the carried line as its memory."""
    words = g.words
    base, out = part_in(g, NMC, 0), part_out(g, NMC, 0)
    words[base + REQUEST] = carry | (op << OP_SHIFT)
    words[base + REQUEST + 1] = FULL_MASK
    for word in range(4):
        words[base + REQUEST + 2 + word] = data[word]
    pending = True
    for _ in range(MAX_LATENCY):
        words[base + REQUEST_VALID] = pending
        taken = pending and words[out + REQUEST_READY] != 0
        reading = words[out + READ_VALID] != 0
        step(g.handles[NMC], address_of(words[base:]), address_of(words[out:]))
        g.evaluated[8] += 1
        pending = pending and not taken
        if reading:
            # The memory answers one cycle after the read.
            for word in range(4):
                words[base + READ_DATA + word] = g.memory[carry, word]
        if words[out + WRITE_VALID]:
            for word in range(4):
                mask = _expand(words[out + WRITE_MASK], word)
                g.memory[carry, word] = (g.memory[carry, word] & ~mask) | (words[out + WRITE_DATA + word] & mask)
            return
    raise RuntimeError("the NMC unit did not perform an update")
