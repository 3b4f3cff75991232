"""The table of address ranges that a slice and a range matcher each hold a copy of.

A range is three words of the part's state (base line, limit line, attributes), as in the register map.
"""

from t3hdl.interface.layouts import BURST_LINES, LINE_BITS
from t3hdl.interface.register_map import RANGE as RANGE_ADDRESS
from t3hdl.interface.register_map import RANGE_STRIDE

from t3sim.common.compiled import njit
from t3sim.hardware.words import RANGE, take

RANGE_WORDS = 3
ALL_CONTEXTS = -1
_LINE_MASK = (1 << LINE_BITS) - 1
_ATTRIBUTES_MASK = sum(field.mask << field.shift for field in RANGE)
_VALID = RANGE.valid.mask << RANGE.valid.shift


@njit(cache=True)
def write_range(state, table, ranges, address, value):
    """Carry out a configuration write if it is to one of the ``ranges`` ranges at word ``table`` of ``state``."""
    number, offset = (address - RANGE_ADDRESS) // RANGE_STRIDE, (address - RANGE_ADDRESS) % RANGE_STRIDE
    if address < RANGE_ADDRESS or number >= ranges or offset % 8 or offset // 8 >= RANGE_WORDS:
        return
    mask = _ATTRIBUTES_MASK if offset // 8 == 2 else _LINE_MASK
    state[table + number * RANGE_WORDS + offset // 8] = value & mask


@njit(cache=True)
def drop_ranges(state, table, ranges, context):
    """Make every range of ``context``, or of ``ALL_CONTEXTS``, invalid; its other attributes stay."""
    for number in range(ranges):
        attributes = table + number * RANGE_WORDS + 2
        if context == ALL_CONTEXTS or take(state[attributes], RANGE.context) == context:
            state[attributes] &= ~_VALID


@njit(cache=True)
def find_range(state, table, ranges, line):
    """The lowest valid range that holds ``line``, or -1."""
    for number in range(ranges):
        first = table + number * RANGE_WORDS
        if state[first] <= line < state[first + 1] and state[first + 2] & _VALID:
            return number
    return -1


@njit(cache=True)
def is_improper(state, table, ranges, line, length):
    """Whether a burst is of no range: it leaves its aligned block, or a valid range begins or ends inside of it."""
    last = line + length
    if line // BURST_LINES != last // BURST_LINES:
        return True
    for number in range(ranges):
        first = table + number * RANGE_WORDS
        if state[first + 2] & _VALID and (line < state[first] <= last or line < state[first + 1] <= last):
            return True
    return False


@njit(cache=True)
def is_live(state, table, number, contexts, context, epoch):
    """Whether range ``number`` (-1: none) is one of ``context``, a legal one, and its live epoch is ``epoch``."""
    if number < 0 or context >= contexts:
        return False
    owner = range_attribute(state, table, number, RANGE.context)
    return owner == context and range_attribute(state, table, number, RANGE.epoch) == epoch


@njit(cache=True)
def range_base(state, table, number):
    """First line of a range."""
    return state[table + number * RANGE_WORDS]


@njit(cache=True)
def range_attribute(state, table, number, field):
    """A field of a range's attributes (``RANGE.context`` and so on)."""
    return take(state[table + number * RANGE_WORDS + 2], field)
