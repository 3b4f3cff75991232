"""Registers and NMC units under fire, each alone: a driver's accesses, a stream of updates."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Dtype, NmcRequest, Op
from t3hdl.interface.words import mask_of, pack

from t3sim.hardware.abi import Instance, PartType

from .outcome import TELL_CYCLES, Observation

PATIENCE = 64
"""Cycles after which an access or an update will not be answered any more."""
READS = (
    regs.VERSION, regs.CAPABILITY, regs.STATUS, regs.ERRORS, regs.IRQ_STATUS, regs.UPDATES, regs.DONE_MASK,
    regs.CONTEXT, regs.ARBITER, regs.THRESHOLDS, regs.QUOTA, regs.TILE_MARKS,
)  # fmt: skip
"""What a driver reads after it has written its program."""
UPDATES, LINES = 24, 4
"""Updates of a stream, and the lines that they go to."""


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A stored bit that is inverted in a cycle."""

    word: int
    bit: int
    cycle: int


class _Clock:
    """Steps an instance, with the hit in its cycle. ``told``: the part has said that a bit was wrong."""

    def __init__(self, part: PartType, hit: Hit | None) -> None:
        self.instance, self.now, self._hit = Instance(part), 0, hit
        self.told, self._tells = False, "uncorrectable" in part.words.outputs

    def step(self) -> None:
        """One cycle."""
        struck = self._hit is not None and self.now == self._hit.cycle
        if struck:
            assert self._hit is not None
            self.instance.set("upset_word", self._hit.word)
            self.instance.set("upset_bit", self._hit.bit)
        self.instance.step()
        if struck:
            self.instance.set("upset_word", 0)
        self.told |= self._tells and bool(self.instance.get("uncorrectable"))
        self.now += 1


def observe_registers(part: PartType, writes: Sequence[tuple[int, int]], hit: Hit | None) -> tuple[Observation, int]:
    """A driver's program, then what it reads: answers, and what the parts hear of it; and how many cycles it took.

    At the end it looks whether anything went wrong. An access that the registers do not answer is an error, as
    :class:`~t3hdl.registers.axi.AxiLitePort` makes one of it.
    """
    clock = _Clock(part, hit)
    bus, heard, answers = clock.instance, [], []
    bus.set("init_done", 1)
    bus.set("bus_privileged", 1)

    def access(write: int, address: int, data: int) -> bool:
        for name, value in (("valid", 1), ("write", write), ("address", address), ("data", data)):
            bus.set(f"bus_{name}", value)
        for _ in range(PATIENCE):
            taken = bus.get("bus_ready")
            clock.step()
            if taken:
                bus.set("bus_valid", 0)
            if bus.get("config_valid"):
                heard.append(bus.get("config"))
            if bus.get("response_valid"):
                answers.append((bus.get("response_error"), 0 if write else bus.get("response_data")))
                return True
        return False

    accesses = [(1, *write) for write in writes] + [(0, address, 0) for address in READS]
    for one in accesses:
        if not access(*one):
            answers.append((1, 0))  # the AXI4-Lite port gives an error then
            bus.set("bus_valid", 0)
    result, cycles = (str(heard), str(answers), str(bus.get("interrupt"))), clock.now
    for _ in range(TELL_CYCLES):
        clock.step()
    errors = answers[-1][1] if access(0, regs.ERRORS, 0) else 0
    named = {name for name in ("locked_write", "uncorrectable") if errors & mask_of(regs.Errors, name)}
    named |= {"bus"} if any(error for error, _ in answers) else set()
    corrected = bool(errors & mask_of(regs.Errors, "corrected"))
    return _seen(True, result, named, corrected), cycles


def observe_nmc(part: PartType, dtypes: Sequence[str], hit: Hit | None) -> tuple[Observation, int]:
    """Updates of a few lines one after the other, by all operations and types: what memory holds then, and what the
    unit reported."""
    clock, rng = _Clock(part, hit), random.Random(0)
    told: list[tuple[int, ...]] = []
    completed = True
    memory = [rng.getrandbits(256) for _ in range(LINES)]
    ops = (Op.ADD, Op.MIN, Op.MAX)
    for number in range(UPDATES):
        line = rng.randrange(LINES)
        request = {
            "line": line, "op": ops[number % 3], "dtype": Dtype[dtypes[number % len(dtypes)].upper()], "tag": number,
            "mask": (1 << 32) - 1, "data": rng.getrandbits(256),
        }  # fmt: skip
        completed &= _update(clock, pack(NmcRequest, **request), memory, told)
    cycles = clock.now
    for _ in range(TELL_CYCLES):
        clock.step()
    return _seen(completed, (str(memory), str(told)), {"uncorrectable"} if clock.told else set(), False), cycles


def _update(clock: _Clock, request: int, memory: list[int], told: list[tuple[int, ...]]) -> bool:
    """One update; memory answers a read in the next cycle. Whether it was reported."""
    unit = clock.instance
    unit.set("request.payload", request)
    unit.set("request.valid", 1)
    done = False
    for _ in range(PATIENCE):
        taken, reading = unit.get("request.ready"), unit.get("read_valid")
        line = unit.get("read_line")
        clock.step()
        if taken:
            unit.set("request.valid", 0)
        if reading:
            unit.set("read_data", memory[line % LINES])
        if unit.get("write_valid"):
            mask = sum(0xFF << 8 * byte for byte in range(32) if unit.get("write_mask") >> byte & 1)
            line = unit.get("write_line")
            told.append((line,))
            memory[line % LINES] = memory[line % LINES] & ~mask | unit.get("write_data") & mask
        if unit.get("done_valid"):
            told.append((unit.get("done_tag"), unit.get("done_data"), unit.get("done_flags")))
            done = True
        if done and not unit.get("write_valid"):
            return True
    return False


def _seen(completed: bool, result: tuple[str, ...], named: set[str], corrected: bool) -> Observation:
    return Observation(
        completed=completed, result=result, commands=(), counts=(), times=(), statistics=(), premature=False,
        named=frozenset(named), corrected=corrected,
    )  # fmt: skip
