"""Faults of stored bits around tracker and trigger: in slices, token network, registers and NMC units.

Not in the co-simulation: there most of what they hold means nothing to the models. Each has a bench of its own, in
which all that comes out is compared with what comes out without the fault.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from t3hdl.config import T3Config
from t3hdl.export.single_event_upsets import Stored, stored_words
from t3hdl.export.verilog import PARTS

from t3sim.hardware.abi import LoadedHardware
from t3sim.hardware.rtl.backend import rtl_hardware, upsettable_source
from t3sim.run.request import SimulationError
from t3sim.validation.memory_rate.streams import Strike

from .alone import Hit, observe_nmc, observe_registers
from .outcome import Observation, Outcome, judge
from .streamed import instances, observe_streams
from .struck import AROUND, NAMES, STRUCK

Run = tuple[Observation, int]
"""What was seen, in how many cycles."""


class AroundBench:
    """The benches of one configuration; ``writes``: a driver's program. Raises BuildError as the hardware does."""

    def __init__(self, config: T3Config, writes: Sequence[tuple[int, int]]) -> None:
        self._config, self._writes = config, writes
        self._right: dict[str, Run] = {}

    @cached_property
    def _hardware(self) -> LoadedHardware:
        """Compiled when a fault needs it. The engine takes no parts with these ports, so it is none of a simulation."""
        return rtl_hardware(self._config, dict.fromkeys(STRUCK, upsettable_source))

    @cached_property
    def _stored(self) -> Mapping[str, tuple[Stored, ...]]:
        return {name: stored_words(PARTS[name](self._config)) for name in STRUCK}

    def _run(self, kind: str, part: str, instance: int, place: tuple[int, int, int] | None) -> Run:
        """A run with the bit ``place`` (word, bit, cycle) inverted, or without a fault."""
        try:
            if kind in ("slice", "network"):
                if place is None:
                    return observe_streams(self._hardware, None, None)
                strike = Strike(part=part, instance=instance, word=place[0], bit=place[1], cycle=place[2])
                return observe_streams(self._hardware, strike, self._right[kind][1])
            hit = Hit(word=place[0], bit=place[1], cycle=place[2]) if place else None
            if kind == "registers":
                return observe_registers(self._hardware.parts[kind], self._writes, hit)
            return observe_nmc(self._hardware.parts[kind], self._config.dtypes, hit)
        finally:
            self._hardware.close()

    def run(self, kind: str, rng: random.Random) -> tuple[str, str, Outcome, frozenset[str]]:
        """A fault that is drawn: what the table calls it, where it was, what became of it, and what named it."""
        if kind not in self._right:
            self._right[kind] = self._run(kind, AROUND[kind][0], 0, None)
        right, cycles = self._right[kind]
        if judge(right, right) is not Outcome.MASKED:
            raise SimulationError(f"the run of the {NAMES[kind]} without a fault is not right: {right}")
        words = [(part, word) for part in AROUND[kind] for word in self._stored[part]]
        choose: Callable[[], tuple[str, Stored]] = (
            (lambda: rng.choice(words))
            if rng.random() < 0.5
            else (lambda: rng.choices(words, [word.bits for _, word in words])[0])
        )
        part, word = choose()
        count = instances(self._config, part) if kind in ("slice", "network") else 1
        instance, bit, cycle = rng.randrange(count), rng.randrange(word.bits), rng.randrange(cycles)
        seen, _ = self._run(kind, part, instance, (word.number, bit, cycle))
        where = f"cycle {cycle}, {part} {instance}.{word.path} bit {bit}"
        return f"bit of the {NAMES[kind]}", where, judge(seen, right), seen.named
