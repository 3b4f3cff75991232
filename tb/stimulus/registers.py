"""Random inputs for ControlRegisters."""

import random

from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import EPOCH_BITS, ContextStatus, Op
from t3hdl.interface.words import WORD_BYTES, pack

from tb.lockstep import Lockstep
from tb.stimulus.base import Stimulus

_NAMED = (
    regs.ID, regs.TILE_MARKS, regs.STATUS, regs.ARBITER, regs.THRESHOLDS, regs.PEAK_ENTRIES, regs.OVERFLOWED,
    regs.THRESHOLD, regs.VERSION, regs.CAPABILITY, regs.CAPABILITY_TRACKER, regs.IRQ_STATUS, regs.IRQ_STATUS,
    regs.IRQ_ENABLE, regs.ERRORS, regs.VIOLATION, regs.VIOLATIONS, regs.WATCHDOG, regs.STUCK, regs.LOCK,
    regs.DEBUG_SELECT,
    regs.DEBUG_DATA, regs.UPDATES, regs.TILES, regs.TRIGGERS, regs.COMMAND_STALL, regs.PEAK_READY, regs.DONE_MASK,
    regs.POISONED, regs.NMC_FLAGS, regs.STALE_UPDATE, regs.STALE_UPDATES,
    regs.TILE_TWICE,
)  # fmt: skip
_ACTIONS = ("arm", "abort", "disarm", "quiesce", "resume")
_REFUSALS = ("violation", "stale_update")
_EVENTS = (
    regs.VIOLATION,
    regs.VIOLATIONS,
    regs.STALE_UPDATE,
    regs.STALE_UPDATES,
    regs.IRQ_STATUS,
    regs.ERRORS,
    regs.NMC_FLAGS,
)
_MOSTLY_0 = {
    "maintenance",
    "abort_busy",
    "quiesced",
    "violations",
    "stale_updates",
    "nmc_flags",
    "nmc_uncorrectable",
    "pending",
}
"""Inputs that would refuse nearly every arm, or raise the same event all the time."""


class Registers(Stimulus):
    """Bus requests to every kind of address, privileged or not, while every status input changes at random."""

    answered = False

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.status = [name for name in bench.inputs if not name.startswith("bus_")]
        self.contexts = [name for name in bench.inputs if name.startswith("context.")]
        self.reads = [
            *_NAMED,
            *(regs.QUOTA + regs.QUOTA_STRIDE * context for context in range(config.contexts)),
        ]  # at first, each once
        self.locks_at = rng.choice((2500, 6000, 15000))  # cycle from which LOCK.configuration may be set, for good
        bench.set("init_done", 1)

    def address(self) -> int:
        """A register, a neighbour of a table's entries, any word, any byte."""
        rng, config = self.rng, self.config
        tables = (
            regs.RANGE + rng.randrange(config.ranges + 1) * regs.RANGE_STRIDE + WORD_BYTES * rng.randrange(4),
            regs.RANGE_ATTRIBUTES + rng.randrange(config.ranges) * regs.RANGE_STRIDE,
            regs.QUOTA + regs.QUOTA_STRIDE * rng.randrange(config.contexts + 1),
            regs.CONTEXT + regs.CONTEXT_STRIDE * rng.randrange(config.contexts + 1),
            regs.PROFILE + regs.PROFILE_STRIDE * (16 * rng.randrange(5) + rng.randrange(config.wavefronts + 1)),
            regs.DESCRIPTOR
            + rng.randrange(config.descriptors + 1) * regs.DESCRIPTOR_STRIDE
            + WORD_BYTES * rng.randrange(8),
        )
        if self.chance(0.08):
            return rng.choice(_EVENTS)
        kind = rng.randrange(16)
        if kind < 5:
            return regs.CONTROL
        if kind < 9:
            return rng.choice(_NAMED)
        if kind < 14:
            return rng.choice(tables)
        return rng.getrandbits(16) if kind == 14 else rng.choice(_NAMED + tables) + rng.randrange(8)

    def value(self, address: int) -> int:
        """Data for a write to this address."""
        rng, anything = self.rng, self.rng.getrandbits(64)
        if address == regs.LOCK:
            return pack(
                regs.Lock,
                privileged=self.bench.cycle > 2000 and self.chance(0.5),
                configuration=self.bench.cycle > self.locks_at and self.chance(0.5),
            )
        if address == regs.CONTROL and self.chance(0.95):
            first = rng.randrange(self.config.descriptors)
            count = rng.randint(1, self.config.descriptors - first)
            if self.chance(0.2):  # to the last one, one too many, as if the next register were one more, any number
                end = rng.choice((self.config.descriptors, self.config.descriptors + 1, 65))
                count = rng.choice((end - first, end - first, rng.getrandbits(7)))
            actions = rng.choices(_ACTIONS, (12, 3, 1, 3, 3))
            if self.chance(0.1):
                actions = rng.sample(_ACTIONS, rng.choice((0, 2)))
            context = rng.randrange(min(16, self.config.contexts + 1)) if self.chance(0.95) else rng.getrandbits(4)
            return pack(
                regs.Control,
                first=first,
                descriptors=count,
                context=context,
                forced=self.chance(0.5),
                **dict.fromkeys(actions, 1),
            ) | rng.choice((0, anything & ~0 << regs.Control.size))
        if regs.RANGE <= address < regs.QUOTA and self.chance(0.9):
            context = rng.randrange(self.config.contexts if self.chance(0.6) else 16)
            op = rng.choice((Op.STORE, Op.ADD, Op.MIN, Op.MAX, rng.getrandbits(3)))
            return pack(regs.RangeAttributes, valid=self.chance(0.8), context=context, epoch=self._epoch(), op=op)
        return anything

    def _epoch(self) -> int:
        """Few of them mostly, so that one that is barred comes again."""
        drawn = self.rng.getrandbits(EPOCH_BITS)
        return drawn if drawn % 4 == 0 else (0, 1, 255)[drawn % 3]

    def change_status(self) -> None:
        """Give one status input another value."""
        rng, name = self.rng, self.rng.choice(self.status if self.chance(0.7) else self.contexts)
        bits = self.bench.inputs[name][1]
        value = rng.getrandbits(bits)
        counts = name in {f"{refusal}s" for refusal in _REFUSALS}
        if name in _MOSTLY_0 and self.chance(0.8 if counts else 0.9):
            value = 0
        elif name in self.contexts and self.chance(0.4):  # a job that runs
            value = value & ~pack(ContextStatus, complete=1) | pack(ContextStatus, armed=1)
        elif name in self.contexts and self.chance(0.7):  # nothing in flight
            value &= ~pack(ContextStatus, outstanding=(1 << ContextStatus["outstanding"].width) - 1)
        elif counts and self.chance(0.9):
            value = rng.randrange(1, 4)
        elif name == "init_done" and self.chance(0.8):
            value = 1
        elif name in _REFUSALS and self.chance(0.5):
            value = (1 << bits) - 1
        self.bench.set(name, value)

    def drive_part(self) -> None:
        bench = self.bench
        if not bench.driven("bus_valid") or self.answered:
            requests = self.chance(self.rate("bus"))
            bench.set("bus_valid", requests)
            if requests:
                write = not self.reads and self.chance(0.6)
                address = self.reads.pop() if self.reads else self.address()
                bench.set("bus_write", write)
                bench.set("bus_privileged", self.chance(0.6))
                bench.set("bus_address", address)
                bench.set("bus_data", self.value(address))
        self.answered = bool(bench.driven("bus_valid") and bench.get("bus_ready"))
        if self.chance(self.rate("status") / 3):
            self.change_status()
