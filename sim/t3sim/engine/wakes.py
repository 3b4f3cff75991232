"""When each channel, and the T3 unit behind the slices, must be looked at: a cycle costs what is awake in it.

The channels are on a timing wheel. It has a slot for each of the next cycles, with a bit for every channel that is to
be looked at then; other bits tell which slots have any. A channel whose cycle the wheel does not reach yet waits
outside. One that is woken before the cycle that it expected leaves a bit behind, which counts only if its cycle has
come.
"""

from t3sim.common.compiled import compiled_inner
from t3sim.dram.state import lowest_bit

from .state import INT64, NEVER_CYCLE, integers

WHEEL_CYCLES = 1 << 12
"""More than there are between two refreshes, so that hardly any channel waits outside."""
FILLED_WORDS = WHEEL_CYCLES // 64

# ``turned_cycle``: the first cycle whose slot has not been taken out of the wheel; ``outside``: channels that wait
# outside, as bits, the first of them for ``outside_cycle``; ``unit_cycle``: when something can happen in the T3 unit
# behind the slices, or between its parts.
WAKES = integers("turned_cycle", "outside", "outside_cycle", "unit_cycle")

FIELDS = {
    "wakes": (WAKES, 0),
    "channel_wake": (INT64, 1),  # [channels] the cycle at which a channel must be looked at; NEVER_CYCLE: it rests
    "wheel": (INT64, 1),  # [WHEEL_CYCLES] channels, as bits
    "wheel_filled": (INT64, 1),  # [FILLED_WORDS] a bit for each slot: it is not 0
}


@compiled_inner
def wake_unit(g):
    """Look at the T3 unit in the next cycle: what it gets has changed."""
    g.wakes.unit_cycle = 0


@compiled_inner
def _place(g, c, cycle):
    """Put channel ``c`` into the slot of a cycle; what has passed already counts as the next one."""
    wakes = g.wakes
    cycle = max(cycle, wakes.turned_cycle)
    if cycle - wakes.turned_cycle >= WHEEL_CYCLES:
        wakes.outside |= 1 << c
        wakes.outside_cycle = min(wakes.outside_cycle, cycle)
        return
    slot = cycle % WHEEL_CYCLES
    g.wheel[slot] |= 1 << c
    g.wheel_filled[slot >> 6] |= 1 << (slot & 63)


@compiled_inner
def wake_channel(g, c, cycle):
    """Look at channel ``c`` at ``cycle``, if not before."""
    if cycle < g.channel_wake[c]:
        g.channel_wake[c] = cycle
        _place(g, c, cycle)


@compiled_inner
def set_channel_wake(g, c, cycle):
    """Look at channel ``c`` at ``cycle`` and not before; it has just been looked at."""
    g.channel_wake[c] = cycle
    if cycle < NEVER_CYCLE:
        _place(g, c, cycle)


@compiled_inner
def _let_in(g):
    """Put the channels outside that the wheel reaches now into it."""
    wakes = g.wakes
    waiting = wakes.outside
    wakes.outside, wakes.outside_cycle = 0, NEVER_CYCLE
    while waiting:
        c = lowest_bit(waiting)
        waiting &= waiting - 1
        if g.channel_wake[c] < NEVER_CYCLE:
            _place(g, c, g.channel_wake[c])


@compiled_inner
def take_awake(g, now):
    """The channels that must be looked at in cycle ``now``, as bits. The cycles before it are over."""
    wakes = g.wakes
    wakes.turned_cycle = now
    if wakes.outside_cycle < now + WHEEL_CYCLES:
        _let_in(g)
    wakes.turned_cycle = now + 1
    slot = now % WHEEL_CYCLES
    found, awake = g.wheel[slot], 0
    if found:
        g.wheel[slot] = 0
        g.wheel_filled[slot >> 6] &= ~(1 << (slot & 63))
    while found:
        c = lowest_bit(found)
        found &= found - 1
        awake |= int(g.channel_wake[c] <= now) << c
    return awake


@compiled_inner
def next_awake(g):
    """The first cycle, after the one whose channels were taken last, in which a channel may have to be looked at."""
    wakes = g.wakes
    first = wakes.turned_cycle % WHEEL_CYCLES
    word = first >> 6
    bits = g.wheel_filled[word] & -1 << (first & 63)
    for i in range(FILLED_WORDS + 1):
        if bits:
            slot = (word + i) % FILLED_WORDS * 64 + lowest_bit(bits)
            return min(wakes.outside_cycle, wakes.turned_cycle + (slot - first) % WHEEL_CYCLES)
        bits = g.wheel_filled[(word + i + 1) % FILLED_WORDS]
    return wakes.outside_cycle
