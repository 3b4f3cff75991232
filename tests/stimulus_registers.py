"""Random inputs for ControlRegisters."""

import random

from lockstep import Lockstep
from stimulus import Stimulus, pack
from t3hdl.config import T3Config
from t3hdl.control import register_map as regs

_NAMED = (
    regs.ID, regs.STATUS, regs.ARBITER, regs.THRESHOLDS, regs.PEAK_ENTRIES, regs.OVERFLOWED, regs.THRESHOLD,
    regs.VERSION, regs.CAPABILITY, regs.CAPABILITY_TRACKER, regs.IRQ_STATUS, regs.IRQ_STATUS, regs.IRQ_ENABLE,
    regs.ERRORS, regs.VIOLATION, regs.VIOLATIONS, regs.WATCHDOG, regs.STUCK, regs.LOCK, regs.DEBUG_SELECT,
    regs.DEBUG_DATA, regs.UPDATES, regs.TILES, regs.TRIGGERS, regs.COMMAND_STALL, regs.PEAK_READY, regs.DONE_MASK,
    regs.POISONED, regs.NMC_FLAGS,
)  # fmt: skip
_MOSTLY_0 = {"maintenance", "abort_busy", "quiesced", "violations", "nmc_flags"}
"""Inputs that would refuse nearly every arm, or raise the same event all the time."""


class Registers(Stimulus):
    """Bus requests to every kind of address, privileged or not, while every status input changes at random."""

    answered = False

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.status = [name for name in bench.inputs if not name.startswith("bus_")]
        self.locks_at = rng.choice((4000, 15000))  # cycle from which LOCK.configuration may be set, for good
        bench.set("init_done", 1)

    def address(self) -> int:
        """A register, a neighbour of a table's entries, any word, any byte."""
        rng, config = self.rng, self.config
        tables = (
            regs.RANGE + rng.randrange(config.ranges + 1) * regs.RANGE_STRIDE + 8 * rng.randrange(4),
            regs.RANGE + rng.randrange(config.ranges) * regs.RANGE_STRIDE + 16,
            regs.QUOTA + 8 * rng.randrange(config.contexts + 1),
            regs.CONTEXT + 8 * rng.randrange(config.contexts + 1),
            regs.PROFILE + 8 * (16 * rng.randrange(5) + rng.randrange(config.wavefronts + 1)),
            regs.DESCRIPTOR + rng.randrange(config.descriptors + 1) * regs.DESCRIPTOR_STRIDE + 8 * rng.randrange(8),
        )
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
            count = rng.randint(1, self.config.descriptors - first) if self.chance(0.9) else rng.getrandbits(7)
            actions = rng.choice((("arm",), ("arm",), ("arm",), ("abort",), ("disarm",), ("quiesce",), ("resume",), ()))
            if self.chance(0.05):
                actions = rng.sample(("arm", "abort", "disarm", "quiesce", "resume"), 2)
            context = rng.randrange(min(16, self.config.contexts + 1)) if self.chance(0.95) else rng.getrandbits(4)
            return pack(
                regs.Control, first=first, descriptors=count, context=context, **dict.fromkeys(actions, 1)
            ) | rng.choice((0, anything & ~0 << regs.Control.size))
        if regs.RANGE <= address < regs.QUOTA and self.chance(0.9):
            context = rng.randrange(self.config.contexts)
            return pack(regs.RangeAttributes, valid=self.chance(0.8), context=context, epoch=rng.getrandbits(2))
        return anything

    def change_status(self) -> None:
        """Give one status input another value."""
        rng, name = self.rng, self.rng.choice(self.status)
        bits = self.bench.inputs[name][1]
        value = rng.getrandbits(bits)
        if name in _MOSTLY_0 and self.chance(0.8):
            value = 0
        elif name == "violations" and self.chance(0.9):
            value = rng.randrange(1, 4)
        elif name == "init_done" and self.chance(0.8):
            value = 1
        elif name == "violation" and self.chance(0.5):
            value = (1 << bits) - 1
        self.bench.set(name, value)

    def drive_part(self) -> None:
        bench = self.bench
        if not bench.driven("bus_valid") or self.answered:
            requests = self.chance(self.rate("bus"))
            bench.set("bus_valid", requests)
            if requests:
                address = self.address()
                bench.set("bus_write", self.chance(0.6))
                bench.set("bus_privileged", self.chance(0.6))
                bench.set("bus_address", address)
                bench.set("bus_data", self.value(address))
        self.answered = bool(bench.driven("bus_valid") and bench.get("bus_ready"))
        if self.chance(self.rate("status") / 3):
            self.change_status()
