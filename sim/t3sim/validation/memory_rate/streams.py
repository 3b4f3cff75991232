"""Two contexts that store at the memory's rate: slices, token network and tracker, with nothing in front or behind.

Each channel takes a burst whenever it has had the time for the one before (:data:`LINE_CYCLES` for each line). What is
counted are the cycles in which a channel would take one and its slice offers none, although it has held some for long
enough: only a full token queue does that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface.connections import End, links
from t3hdl.interface.layouts import ConfigWrite
from t3hdl.interface.words import pack, split

from t3sim.common.compiled import compiled, compiled_inner
from t3sim.engine.state import NEVER_CYCLE
from t3sim.engine.t3unit.ports import SLICE_IN, SLICE_OUT
from t3sim.engine.t3unit.words import (
    FIRST,
    LEAF,
    OF_LEAF,
    OF_ROOT,
    OF_SLICE,
    OF_TRACKER,
    ROOT,
    SLICE,
    TRACKER,
    place,
)
from t3sim.hardware.abi import LoadedHardware, PartFunctions, address_of
from t3sim.hardware.backends import open_hardware
from t3sim.hardware.words import REQUEST, get
from t3sim.run.request import Backend

from .traffic import Job, Queues

LINE_CYCLES = 2
"""Cycles of a channel for a line: 32 bytes at 16 GB/s and 1 GHz."""
PASSING = 4
"""Cycles in which a burst is through a slice that does not hold it."""
REST = 4000
"""Cycles for what is left in network and tracker at the end."""
_PARTS = ("slice", "leaf", "root", "tracker")
_PULSES = ("tile", "chunk")
_COUNTS = ("updates", "tiles", "overflowed", "unmatched", "over_count", "over_total")


@dataclass(frozen=True, kw_only=True)
class Streamed:
    """``held``: cycles of all channels in which a burst waited for a full token queue.
    ``left``: bursts that memory has not taken. ``tracked``: what the tracker counted, by the names of its outputs."""

    cycles: int
    bursts: int
    lines: int
    held: int
    left: int
    tracked: dict[str, int]


def stream(config: T3Config, jobs: Sequence[Job], backend: Backend) -> Streamed:
    """Streams one job as compute, the other one as communication, until every burst was taken and counted."""
    hardware = open_hardware(config, backend)
    try:
        return StreamBench(hardware).run(jobs)
    finally:
        hardware.close()


@dataclass(frozen=True, kw_only=True)
class Strike:
    """A stored bit of an instance of a part that is inverted in a cycle of the streams; the part is an
    :class:`~t3hdl.export.single_event_upsets.Upsettable` one."""

    part: str
    instance: int
    word: int
    bit: int
    cycle: int


class StreamBench:
    """The parts of one unit in the words of the co-simulator's engine.

    ``seen``: sums of all that has come out so far, the same in any order: accesses for memory, tiles, chunks; and how
    many accesses were refused, for either reason.
    """

    def __init__(self, hardware: LoadedHardware) -> None:
        self._hardware, self._config = hardware, hardware.config
        self._words, self._handles = place(hardware)
        self._steps = PartFunctions(part.step for part in hardware.parts.values())
        for name in _PARTS:
            for instance in range(self._count(name)):
                part, index = hardware.parts[name], FIRST[name] + instance
                addresses = (self._words[self._words[2 * index + side] :].ctypes.data for side in (0, 1))
                _call(part.reset, self._handles[index], *addresses)
        self._copies = np.array([copy for link in self._streams() for copy in link], np.int64)
        self._counts = np.array([self._count(name) for name in _PARTS], np.int64)
        tracker = End("tracker", 0, "", None)
        pulses = [[self._word(tracker, name) for name in (f"{kind}_done_valid", f"{kind}_done")] for kind in _PULSES]
        self._pulses = np.array(pulses, np.int64)
        self.seen = np.zeros(4, np.int64)

    def _count(self, name: str) -> int:
        config = self._config
        return {"slice": config.slices, "leaf": config.nodes, "root": config.roots, "tracker": 1}[name]

    def _word(self, end: End, port: str) -> int:
        """Where a port lies in the words."""
        words, index = self._hardware.parts[end.part].words, FIRST[end.part] + end.instance
        if port in words.inputs:
            return int(self._words[2 * index]) + words.inputs[port][0]
        return int(self._words[2 * index + 1]) + words.outputs[port][0]

    def _streams(self) -> list[list[tuple[int, int]]]:
        """What is copied in a cycle for each stream between the parts: (from, to)."""
        found = []
        for link in links(self._config):
            source, target = link.sources[0], link.target
            if link.kind == "stream" and source.part in _PARTS and target.part in _PARTS:
                forward = [
                    (self._word(source, f"{source.path}.{wire}"), self._word(target, f"{target.path}.{wire}"))
                    for wire in ("payload", "valid")
                ]
                back = self._word(target, f"{target.path}.ready"), self._word(source, f"{source.path}.ready")
                found.append([*forward, back])
        return found

    def _broadcast(self, part: str, port: str, words: Sequence[int], valid: int) -> None:
        """Put a pulse on the inputs of all instances of a part."""
        for instance in range(self._count(part)):
            end = End(part, instance, port, None)
            self._words[self._word(end, f"{port}_valid")] = valid
            at = self._word(end, port)
            self._words[at : at + len(words)] = np.array(words, np.uint64).view(np.int64)

    def rest(self, cycles: int) -> None:
        """Nothing new comes for so many cycles."""
        nothing = Queues(np.zeros((0, 5), np.int64), np.zeros(self._config.slices + 1, np.int64))
        self._play([nothing, nothing], cycles)

    def _configure(self, jobs: Sequence[Job]) -> None:
        self.rest(self._config.sets_per_bank + 2)
        for address, data in (write for job in jobs for write in job.writes()):
            words = split(pack(ConfigWrite, address=address, data=data), 2)
            for part in ("slice", "tracker"):
                self._broadcast(part, "config", words, 1)
            self.rest(1)
        for part in ("slice", "tracker"):
            self._broadcast(part, "config", (0, 0), 0)
        slot = 0
        for job in jobs:
            for load in job.loads(slot):
                self._broadcast("tracker", "load", split(load, 2), 1)
                self.rest(1)
                slot += 1
        self._broadcast("tracker", "load", (0, 0), 0)

    def _play(
        self, queues: Sequence[Queues], least: int, most: int = NEVER_CYCLE, strike: Strike | None = None
    ) -> tuple[int, int, int]:
        offered = np.concatenate([queue.bursts for queue in queues])
        offsets = [0, len(queues[0].bursts)]
        first = np.stack([queue.first + offset for queue, offset in zip(queues, offsets, strict=True)])
        hit = np.full(5, -1, np.int64)
        if strike is not None:
            end = End(strike.part, strike.instance, "", None)
            ports = [self._word(end, name) for name in ("upset_word", "upset_bit")]
            hit[:] = strike.cycle, *ports, strike.word, strike.bit
        return _stream(
            self._words, self._handles, self._steps, self._copies, self._counts, offered, first, least, most, hit,
            self._pulses, self.seen,
        )  # fmt: skip

    def run(self, jobs: Sequence[Job], most: int = NEVER_CYCLE, strike: Strike | None = None) -> Streamed:
        """Streams the jobs, in ``most`` cycles at most, with a stored bit that is struck if there is one."""
        self._configure(jobs)
        queues = [Queues.of(job, self._config) for job in jobs]
        cycles, held, left = self._play(queues, 0, most, strike)
        self.rest(REST)
        return Streamed(
            cycles=cycles,
            bursts=sum(len(queue.bursts) for queue in queues),
            lines=sum(int(queue.bursts[:, 2].sum()) for queue in queues),
            held=held,
            left=left,
            tracked={name: self.output("tracker", 0, name) for name in _COUNTS},
        )

    def output(self, part: str, instance: int, name: str) -> int:
        """What an output of at most a word has now."""
        return int(self._words[self._word(End(part, instance, "", None), name)])


def _call(function: object, handle: int, inputs: int, outputs: int) -> None:
    _call_one(function, handle, inputs, outputs)


@compiled
def _call_one(function, handle, inputs, outputs):
    function(handle, inputs, outputs)


_FIRST, _OF = (SLICE, LEAF, ROOT, TRACKER), (OF_SLICE, OF_LEAF, OF_ROOT, OF_TRACKER)
_QUEUES = ("compute_write", "comm_write")
_PAYLOAD = tuple(getattr(SLICE_IN, f"{name}_payload") for name in _QUEUES)
_VALID = tuple(getattr(SLICE_IN, f"{name}_valid") for name in _QUEUES)
_READY = tuple(getattr(SLICE_OUT, f"{name}_ready") for name in _QUEUES)


_REFUSED = (
    SLICE_OUT.compute_refused_valid, SLICE_OUT.comm_refused_valid, SLICE_OUT.compute_stale_valid,
    SLICE_OUT.comm_stale_valid,
)  # fmt: skip
ACCESSES, TILES, CHUNKS, REFUSALS = range(4)
"""Places in ``seen``."""
_MIX = (0x9E3779B97F4A7C1, 0x2545F4914F6CDD1D)


@compiled_inner
def _mixed(low, high):
    """A number that changes with every bit of both words: sums of such numbers are compared."""
    mixed = (low + 1) * _MIX[0] ^ (high + 1) * _MIX[1]
    mixed ^= (mixed >> 29) & 0x7FFFFFFFF
    return mixed * _MIX[1]


@compiled
def _stream(words, handles, steps, copies, counts, offered, first, least, most, hit, pulses, seen):
    """Cycles until all bursts are taken, at least ``least`` and at most ``most``; cycles in which one was held;
    bursts that are left.

    ``offered``: bursts; those of queue q (compute, communication) and channel c are from ``first[q, c]`` to
    ``first[q, c + 1]``. ``hit``: cycle of an upset, words of the ports that say which, and what they say. ``pulses``:
    words of a valid and of its payload. ``seen``: see :class:`StreamBench`.
    """
    channels = counts[0]
    place, free_at = first[:, :-1].copy(), np.zeros(channels, np.int64)
    inside, held_since = np.zeros(channels, np.int64), np.zeros(channels, np.int64)
    left, cycle, held = offered.shape[0], 0, 0
    while (left > 0 or cycle < least) and cycle < most:
        for i in range(copies.shape[0]):
            words[copies[i, 1]] = words[copies[i, 0]]
        for c in range(channels):
            base, out = words[2 * (SLICE + c)], words[2 * (SLICE + c) + 1]
            takes, offers = cycle >= free_at[c], words[out + SLICE_OUT.dram_valid] != 0
            words[base + SLICE_IN.dram_ready] = takes
            words[base + SLICE_IN.now] = cycle
            if takes and offers:
                lines = get(words, out + SLICE_OUT.dram_payload, REQUEST.length) + 1
                free_at[c] = cycle + LINE_CYCLES * lines
                inside[c] -= 1
                left -= 1
                payload = out + SLICE_OUT.dram_payload
                seen[ACCESSES] += _mixed(words[payload], words[payload + 1])
            elif takes and inside[c] > 0 and cycle >= held_since[c] + PASSING:
                held += 1
            for q in range(2):
                there = place[q, c] < first[q, c + 1] and offered[place[q, c], 4] <= cycle
                words[base + _VALID[q]] = there
                if there:
                    burst = offered[place[q, c]]
                    words[base + _PAYLOAD[q]], words[base + _PAYLOAD[q] + 1] = burst[0], burst[1]
                    if words[out + _READY[q]]:
                        place[q, c] += 1
                        if inside[c] == 0:
                            held_since[c] = cycle
                        inside[c] += 1
            for refusal in _REFUSED:
                seen[REFUSALS] += words[out + refusal]
        for pulse in range(pulses.shape[0]):
            if words[pulses[pulse, 0]]:
                seen[TILES + pulse] += _mixed(words[pulses[pulse, 1]], 0)
        if cycle == hit[0]:
            words[hit[1]], words[hit[2]] = hit[3], hit[4]
        for kind in range(len(_FIRST)):
            for index in range(_FIRST[kind], _FIRST[kind] + counts[kind]):
                inputs, outputs = words[2 * index], words[2 * index + 1]
                steps[_OF[kind]](handles[index], address_of(words[inputs:]), address_of(words[outputs:]))
        if cycle == hit[0]:
            words[hit[1]] = words[hit[2]] = 0
        cycle += 1
    return cycle, held, left
