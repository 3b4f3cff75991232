"""What became of a run with a fault, against the same run without it."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from t3hdl.interface import register_map as regs
from t3hdl.interface.words import mask_of

from t3sim.engine.gpu_state import GpuState
from t3sim.run.request import SimulationError

from .setup import FaultSystem


class Outcome(StrEnum):
    """How a run with a fault ended."""

    MASKED = "masked"
    """Right, and nobody noticed anything."""
    CORRECTED = "corrected"
    """Right, and the hardware or the link says that it put something right."""
    DETECTED = "detected"
    """Something names the fault, whether the result is right or not."""
    HANG = "silent hang"
    """It never ended, and nothing says why."""
    SILENT = "silent corruption"
    """It ended with a wrong result or a wrong count, and nothing says so."""


TELL_CYCLES = 3
"""Cycles from a wrong bit to where a part tells it, at most."""
SILENT = (Outcome.HANG, Outcome.SILENT)
"""What must not happen."""
_COUNTS = (regs.UPDATES, regs.DONE_MASK, regs.CONTEXT)
"""Registers that do not depend on time."""
_STATISTICS = (regs.STATUS, regs.TILES, regs.TRIGGERS, regs.PEAK_ENTRIES, regs.OVERFLOWED, regs.PEAK_READY,
               regs.COMMAND_STALL)  # fmt: skip
"""Registers that repeat if everything happens at the same time: how full a table gets, which chunks overflow, and
with that how many tiles are counted (none of a chunk that overflowed), depends on the order of the stores."""
_NAMED = (
    "unmatched", "over_count", "over_total", "locked_write", "violation", "uncorrectable", "tile_twice", "too_large",
)  # fmt: skip
_ERRORS = {name: mask_of(regs.Errors, name) for name in (*_NAMED, "corrected")}
_COMMAND = ("row0", "row1", "col0", "col1", "source", "target", "pitch", "op")


@dataclass(frozen=True)
class Observation:
    """All that a run is judged by. ``result``, ``commands``, ``counts``, ``times`` and ``statistics`` are per GPU."""

    completed: bool
    result: tuple[str, ...]
    commands: tuple[tuple[tuple[int, ...], ...], ...]
    counts: tuple[tuple[int, ...], ...]
    times: tuple[int, ...]
    statistics: tuple[tuple[int, ...], ...]
    premature: bool
    named: frozenset[str]
    corrected: bool

    def equals(self, right: "Observation", retimed: bool) -> bool:
        """Whether everything that counts is as in the run without a fault; see :func:`judge`."""
        return (
            self.completed
            and not self.premature
            and (self.result, self.commands, self.counts) == (right.result, right.commands, right.counts)
            and (retimed or self.times != right.times or self.statistics == right.statistics)
        )


def judge(seen: Observation, right: Observation, retimed: bool = False) -> Outcome:
    """The outcome of a run; ``right`` is the run without a fault.

    ``retimed``: the fault alters only when stores come, so statistics say nothing even where the GPUs happen to end
    in the same cycles.
    """
    if seen.named:
        return Outcome.DETECTED
    if seen.equals(right, retimed):
        return Outcome.CORRECTED if seen.corrected else Outcome.MASKED
    return Outcome.SILENT if seen.completed else Outcome.HANG


def ended_with_error(reason: str) -> Observation:
    """A run that the simulated system itself ended with an error."""
    return Observation(False, (), (), (), (), (), False, frozenset((reason,)), False)


def observe(system: FaultSystem) -> Observation:
    """Look at a system that has run to its end or limit, also over its bus."""
    named: set[str] = set()
    corrected, counts, statistics = False, [], []
    for number, gpu in enumerate(system.gpus):
        named |= _named_by_models(gpu)
        corrected |= bool(gpu.link["packets_dropped"] or gpu.link["packets_resent"])
        try:
            errors = system.read(number, regs.ERRORS)
            named |= {name for name in _NAMED if errors & _ERRORS[name]}
            corrected |= bool(errors & _ERRORS["corrected"])
            named |= {"watchdog"} if system.read(number, regs.STUCK) & 1 else set()
            named |= {"poisoned"} if system.read(number, regs.POISONED) else set()
            counts.append(tuple(system.read(number, address) for address in _COUNTS))
            statistics.append(tuple(system.read(number, address) for address in _STATISTICS))
        except SimulationError:
            named.add("bus")
    return Observation(
        completed=system.finished,
        result=tuple(hashlib.blake2b(gpu.memory.tobytes(), digest_size=16).hexdigest() for gpu in system.gpus),
        commands=tuple(tuple(sorted(_commands(gpu))) for gpu in system.gpus),
        counts=tuple(counts),
        times=tuple(int(gpu.time["finish_cycle"]) for gpu in system.gpus),
        statistics=tuple(statistics),
        premature=any(gpu.own["premature"] or gpu.dma["premature_reads"] for gpu in system.gpus),
        named=frozenset(named),
        corrected=corrected,
    )


def _named_by_models(gpu: GpuState) -> set[str]:
    """What the DMA engine or the memory refused with an error."""
    refused = {"dma address": gpu.dma["bad_commands"], "violation": gpu.unit["refused"]}
    return {name for name, count in refused.items() if count}


def _commands(gpu: GpuState) -> Iterator[tuple[int, ...]]:
    """The DMA commands that a GPU carried out; the ring keeps them all if there are not too many."""
    given: Any = gpu.commands[: min(int(gpu.dma["command_tail"]), len(gpu.commands))]
    for move in given:
        yield tuple(int(move[name]) for name in _COMMAND)
