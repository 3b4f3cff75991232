"""The state of the golden ControlRegisters: which addresses there are, and what is kept.

Masks have a bit per context. The ports' status words are those of the configuration with the fewest contexts; the
words of the contexts come last.
"""

import numpy as np
from t3hdl.config import DTYPES, T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.signatures import registers_signature
from t3hdl.interface.words import WORD_BITS, WORD_BYTES, pack, ports_of, word_map

from t3sim.common.compiled import njit
from t3sim.hardware.words import (
    ARBITER,
    CONTEXT_STATUS,
    QUOTA,
    THRESHOLDS,
    place,
    state_map,
    take,
)

_PORTS = registers_signature(T3Config(contexts=1))
IN, OUT = ports_of(_PORTS)
"""First words of the ports; the inputs end with one status word per context."""

READABLE, WRITABLE, LOCKABLE, BROADCAST = 1, 2, 4, 8
"""What an address allows: ``LOCKABLE`` by LOCK.configuration, ``BROADCAST`` as configuration pulse."""
_CONTEXTS, _RANGES = 16, 4
_END = regs.CONTROL + WORD_BYTES
"""First address after the register map."""
_PROFILE_EDGES, _PROFILE_WAVEFRONTS = 4, 16

S = state_map(
    contexts=1, descriptors=1, version=1, capability=1, capability_tracker=1, access=_END // WORD_BYTES,  # parameters
    arbiter=1, thresholds=1, watchdog=1, tile_marks=1, quota=_CONTEXTS, lock=1,
    range_valid=_RANGES, range_context=_RANGES,
    window_first=_CONTEXTS, window_end=_CONTEXTS,  # of the last arm
    last_epoch=_CONTEXTS, job_epoch=_CONTEXTS,
    first_barred=_CONTEXTS, last_barred=_CONTEXTS, has_barred=1,  # epochs, past 255 at 0; contexts that have some
    irq_status=1, irq_enable=1, nmc_flags=1, locked_write=1,
    violation=1, violations=1, stale_update=1, stale_updates=1, damage=1,
    aborting=1, abort_begins=1,  # contexts; that of the last cycle's request, which the inputs do not show yet
    # of the last cycle: contexts, contexts, status bits, whether the next one may change something
    complete=1, aborting_before=1, levels=1, busy=1,
    # the address and data of a configuration pulse as at the port
    response_valid=1, response_error=1, response_data=1, config_valid=1, config=2,
)  # fmt: skip
"""The state of the ControlRegisters."""

_READ_ONLY = (
    regs.ID, regs.STATUS, regs.PEAK_ENTRIES, regs.OVERFLOWED, regs.THRESHOLD, regs.VERSION, regs.CAPABILITY,
    regs.CAPABILITY_TRACKER, regs.ERRORS, regs.VIOLATION, regs.VIOLATIONS, regs.STUCK, regs.DEBUG_DATA, regs.UPDATES,
    regs.TILES, regs.TRIGGERS, regs.COMMAND_STALL, regs.PEAK_READY, regs.DONE_MASK, regs.POISONED, regs.STALE_UPDATE,
    regs.STALE_UPDATES, regs.TILE_TWICE,
)  # fmt: skip
_OWN = (regs.IRQ_STATUS, regs.IRQ_ENABLE, regs.LOCK, regs.NMC_FLAGS)
"""What may be read and written, and concerns no other part."""


def input_word(name: str) -> tuple[int, int]:
    """First word of an input port of at most 64 bits, and the mask of its bits."""
    word, bits = word_map(_PORTS).inputs[name]
    return word, (1 << bits) - 1 if bits < WORD_BITS else -1


def _access_table(config: T3Config) -> np.ndarray:
    """What each word of the register map allows; 0 where there is no register."""
    table = np.zeros(_END // WORD_BYTES, np.int64)

    def allow(addresses, access: int) -> None:
        table[[address // WORD_BYTES for address in addresses]] = access

    contexts, written = range(config.contexts), WRITABLE | BROADCAST
    allow(_READ_ONLY, READABLE)
    allow(_OWN, READABLE | WRITABLE)
    allow((regs.CONTROL, regs.DEBUG_SELECT), written)
    allow((regs.TILE_MARKS, regs.ARBITER, regs.THRESHOLDS, regs.WATCHDOG), READABLE | written | LOCKABLE)
    allow((regs.QUOTA + regs.QUOTA_STRIDE * c for c in contexts), READABLE | written | LOCKABLE)
    allow((regs.CONTEXT + regs.CONTEXT_STRIDE * c for c in contexts), READABLE)
    for word in range(regs.RANGE_WORDS):
        first, numbers = regs.RANGE + WORD_BYTES * word, range(config.ranges)
        allow((first + regs.RANGE_STRIDE * i for i in numbers), written | LOCKABLE)
    profile = (_PROFILE_WAVEFRONTS * edge + wf for edge in range(_PROFILE_EDGES) for wf in range(config.wavefronts))
    allow((regs.PROFILE + regs.PROFILE_STRIDE * word for word in profile), written | LOCKABLE)
    for word in range(regs.DESCRIPTOR_WORDS):
        first, numbers = regs.DESCRIPTOR + WORD_BYTES * word, range(config.descriptors)
        allow((first + regs.DESCRIPTOR_STRIDE * i for i in numbers), written | LOCKABLE)
    return table


def _constants(config: T3Config) -> tuple[int, int, int]:
    """VERSION, CAPABILITY, CAPABILITY_TRACKER."""
    return (
        pack(regs.Version, **regs.HARDWARE_VERSION),
        pack(
            regs.Capability,
            slices=config.slices, ranges=config.ranges, contexts=config.contexts, descriptors=config.descriptors,
            chunk_window=config.chunk_window, blocks=config.blocks, wavefronts=config.wavefronts,
            egress_ports=config.egress_ports,
            dtypes=sum((name in config.dtypes) << i for i, name in enumerate(DTYPES)),
            protect=config.protect, performed=config.count_on == "performed",
        ),
        pack(
            regs.CapabilityTracker,
            sets=config.tracker_sets, ways=config.tracker_ways, banks=config.tracker_banks,
            row_index_bits=config.row_index_bits, tile_count_bits=config.tile_count_bits,
            chunk_count_bits=config.chunk_count_bits, token_queue=config.token_queue, event_queue=config.event_queue,
            nmc_latency=config.nmc_latency, tile_marks_log=config.tile_marks.bit_length() - 1,
        ),
    )  # fmt: skip


def init_state(config: T3Config) -> np.ndarray:
    """State of the registers of ``config``. Call ``reset`` before ``step``."""
    state = np.zeros(S.size, np.int64)
    state[S.contexts], state[S.descriptors] = config.contexts, config.descriptors
    state[S.version], state[S.capability], state[S.capability_tracker] = _constants(config)
    state[S.access : S.access + _END // WORD_BYTES] = _access_table(config)
    return state


_RESET_ARBITER = place(ARBITER.threshold, 127) | place(ARBITER.starvation, 64) | place(ARBITER.quantum, 8)
_RESET_THRESHOLDS = (
    place(THRESHOLDS.under_25, 127)
    | place(THRESHOLDS.under_50, 30)
    | place(THRESHOLDS.under_75, 10)
    | place(THRESHOLDS.above, 5)
)
_RESET_QUOTA = place(QUOTA.ways, 16) | place(QUOTA.slots, 64) | place(QUOTA.credits, regs.NO_CREDIT_LIMIT)


@njit(cache=True)
def reset_state(state):
    """Every register as after reset."""
    state[S.arbiter :] = 0
    state[S.arbiter], state[S.thresholds] = _RESET_ARBITER, _RESET_THRESHOLDS
    state[S.quota : S.quota + state[S.contexts]] = _RESET_QUOTA


@njit(cache=True)
def access_of(state, address):
    """What an address allows; 0 if there is no register."""
    return state[S.access + address // WORD_BYTES] if address < _END and address % WORD_BYTES == 0 else 0


@njit(cache=True)
def complete_contexts(state, words):
    """The contexts that are complete."""
    mask = 0
    for context in range(state[S.contexts]):
        mask |= take(words[IN.context_0 + context], CONTEXT_STATUS.complete) << context
    return mask


@njit(cache=True)
def armed_contexts(state, words):
    """The contexts that are armed, complete or not."""
    mask = 0
    for context in range(state[S.contexts]):
        mask |= take(words[IN.context_0 + context], CONTEXT_STATUS.armed) << context
    return mask


@njit(cache=True)
def active_contexts(state, words):
    """The contexts that are armed and not complete."""
    return armed_contexts(state, words) & ~complete_contexts(state, words)


@njit(cache=True)
def unfinished_contexts(state, words):
    """The contexts with commands that are not done."""
    mask = 0
    for context in range(state[S.contexts]):
        mask |= (take(words[IN.context_0 + context], CONTEXT_STATUS.outstanding) != 0) << context
    return mask


@njit(cache=True)
def pending_contexts(state, words):
    """The contexts with tracked accesses that are not counted."""
    return words[IN.pending] & ((1 << state[S.contexts]) - 1)
