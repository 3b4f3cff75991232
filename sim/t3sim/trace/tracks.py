"""What a trace shows, as tracks of slices, instants and counters, before anything is encoded.

Times are whole ns, the floor of cycle x 1000 / clock in MHz, which keeps the order of cycles; a slice has its exact
cycles beside them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise

import numpy as np
from numpy.typing import NDArray

from t3sim.engine import state
from t3sim.run.events import QUEUE_TITLES, GpuEvents, KernelStep, RunEvents, Transfer
from t3sim.run.request import CAUSE_TITLES

Details = dict[str, int | str]
"""What is said of a slice besides its name."""
SPANS = {"gemm": "GEMM", "reduce_scatter": "reduce-scatter", "all_gather": "all-gather"}


@dataclass(frozen=True, kw_only=True)
class Slice:
    """From ``begin`` to ``end`` [ns]. ``flows`` go through it, ``ending`` ones end in it."""

    name: str
    begin: int
    end: int
    details: Details
    flows: tuple[int, ...] = ()
    ending: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Track:
    """A row of slices, none of which overlap, or of values that hold from their time [ns] on. ``unit``: of the values.
    A slice that begins and ends at once is an instant if ``instants``."""

    name: str
    slices: list[Slice] = field(default_factory=list)
    values: list[tuple[int, float]] = field(default_factory=list)
    unit: str = ""
    instants: bool = False


@dataclass(frozen=True, kw_only=True)
class Process:
    """The tracks of one GPU in one run, in the order in which they are shown."""

    name: str
    tracks: list[Track]


def processes(runs: Iterable[RunEvents]) -> Iterator[Process]:
    """One process for each policy and GPU; flows are numbered through all of them."""
    numbers = count(1)
    for run in runs:
        yield from _Layout(run, numbers).processes()


class _Layout:
    """The processes of one run."""

    def __init__(self, run: RunEvents, numbers: Iterator[int]) -> None:
        self.run = run
        self.flows = {(gpu.number, index): next(numbers) for gpu in run.gpus for index, _ in enumerate(gpu.transfers)}
        self.flow_of_command = {
            (gpu.number, transfer.command): self.flows[gpu.number, index]
            for gpu in run.gpus
            for index, transfer in enumerate(gpu.transfers)
            if transfer.command is not None
        }

    def ns(self, cycle: int) -> int:
        """The time of a cycle."""
        return cycle * 1000 // self.run.clock_mhz

    def processes(self) -> list[Process]:
        mirror = " (mirrored)" if self.run.mirror else ""
        return [
            Process(
                name=f"{self.run.policy} GPU {gpu.number}{mirror}", tracks=[*self._slices(gpu), *self._counters(gpu)]
            )
            for gpu in self.run.gpus
        ]

    def _slices(self, gpu: GpuEvents) -> Iterator[Track]:
        for name, span in gpu.spans.items():
            yield from lanes(SPANS[name], [self._slice(SPANS[name], *span, {})])
        yield from lanes("exposed communication", [self._slice("exposed", *span, {}) for span in gpu.exposed])
        stages = [self._slice(f"stage {number}", *span, {}) for number, span in enumerate(gpu.stages, 1)]
        yield from lanes("GEMM stages", stages)
        yield Track(name="triggers", slices=self._triggers(gpu), instants=True)
        steps = [self._step(step) for step in gpu.steps]
        yield from lanes("collective kernel steps", steps)
        yield from lanes("link out", self._sent(gpu))
        yield from lanes("link in", self._arrived(gpu))

    def _slice(self, name: str, begin: int, end: int, details: Details) -> Slice:
        cycles: Details = {"begin_cycle": begin, "end_cycle": end}
        return Slice(name=name, begin=self.ns(begin), end=self.ns(end), details=cycles | details)

    def _triggers(self, gpu: GpuEvents) -> list[Slice]:
        """In the order in which they fired; the flow of each goes to the block's data on the link."""
        found = []
        for number, trigger in enumerate(gpu.triggers):
            details: Details = {"command": number, "chunk": trigger.chunk}
            if trigger.tiles is not None:
                row0, row1, col0, col1 = trigger.tiles
                details |= {"tile_rows": f"{row0} to {row1 - 1}", "tile_columns": f"{col0} to {col1 - 1}"}
            flow = self.flow_of_command.get((gpu.number, number))
            made = self._slice(f"trigger chunk {trigger.chunk}", trigger.cycle, trigger.cycle, details)
            found.append(replace(made, flows=() if flow is None else (flow,)))
        return found

    def _step(self, step: KernelStep) -> Slice:
        verb = "reduce" if step.local else "send"
        resolution = 0 if step.exact else self.run.look_cycles
        details: Details = {"chunk": step.chunk, "resolution_cycles": resolution}
        return self._slice(f"{SPANS[step.kind]}: {verb} chunk {step.chunk}", step.start, step.end, details)

    def _sent(self, gpu: GpuEvents) -> list[Slice]:
        """What leaves; its flow comes from a trigger, if it has one, and goes to the arrival."""
        found = []
        for index, transfer in enumerate(gpu.transfers):
            details = _content(transfer) | {"first_sent_resolution_cycles": 1}
            made = self._slice(_title(transfer, transfer.chunk), transfer.first_sent, transfer.last_sent, details)
            found.append(replace(made, flows=(self.flows[gpu.number, index],)))
        return found

    def _arrived(self, gpu: GpuEvents) -> list[Slice]:
        """What arrives from the GPUs that send to this one; a mirrored neighbour sends this GPU's next chunk."""
        found, behind = [], int(self.run.mirror)
        for sender in self.run.gpus:
            if sender.neighbour != gpu.number:
                continue
            for index, transfer in enumerate(sender.transfers):
                details = _content(transfer) | {"from_gpu": sender.number + behind}
                title = _title(transfer, (transfer.chunk + behind) % self.run.ring)
                made = self._slice(title, transfer.first_arrived, transfer.last_arrived, details)
                found.append(replace(made, ending=(self.flows[sender.number, index],)))
        return found

    def _counters(self, gpu: GpuEvents) -> Iterator[Track]:
        """Rates, whose integral over the trace's own time is exactly what was counted; what waits when each bin
        begins; and the workgroups that looks between windows found."""
        for row, title in enumerate(CAUSE_TITLES.values()):
            yield Track(name=f"DRAM {title}", values=self._rates(gpu, row), unit="GB/s")
        yield Track(name="link out rate", values=self._rates(gpu, state.LINK_BYTES), unit="GB/s")
        yield Track(name="CUs computing", values=self._busy(gpu), unit="CUs")
        for name, (title, unit) in QUEUE_TITLES.items():
            yield Track(name=title, values=self._levels(gpu.queues[name]), unit=unit)
        resident = [(self.ns(cycle), float(value)) for cycle, value in gpu.resident]
        yield Track(name="resident workgroups", values=resident, unit="workgroups")

    def _levels(self, values: NDArray[np.float64]) -> list[tuple[int, float]]:
        """Values at the beginning of the bins, but for those that are as the one before; nothing waits at the end."""
        found: list[tuple[int, float]] = []
        for number, value in enumerate([*values.tolist(), 0.0]):
            if not found or found[-1][1] != value:
                found.append((self.ns(number * self.run.bin_cycles), value))
        return found

    def _busy(self, gpu: GpuEvents) -> list[tuple[int, float]]:
        """Mean number of CUs that compute; a clock at a bin's edge counts in one bin, so that there may be one more."""
        ns_of_clock = 1000 / self.run.clock_mhz / gpu.clocks
        return [(time, min(value, gpu.cus)) for time, value in self._rates(gpu, state.CU_CLOCKS, ns_of_clock)]

    def _rates(self, gpu: GpuEvents, row: int, scale: float = 1.0) -> list[tuple[int, float]]:
        """The counts of a row of bins times ``scale``, per ns; equal neighbours are one value."""
        edges = [self.ns(number * self.run.bin_cycles) for number in range(gpu.bins.shape[1] + 1)]
        found: list[tuple[int, float]] = []
        waiting = 0  # of bins that are shorter than a ns
        for amount, (begin, end) in zip(gpu.bins[row].tolist(), pairwise(edges), strict=True):
            waiting += amount
            if end == begin:
                continue
            rate = waiting * scale / (end - begin)
            waiting = 0
            if not found or found[-1][1] != rate:
                found.append((begin, rate))
        if waiting:
            found.append((edges[-1], waiting * scale))
        return [*found, (edges[-1] + int(waiting > 0), 0.0)]


def _title(transfer: Transfer, chunk: int) -> str:
    names = {"dma": "DMA block", "stores": "stores", "reduce_scatter": "reduce-scatter", "all_gather": "all-gather"}
    return f"{names[transfer.kind]} of chunk {chunk}"


def _content(transfer: Transfer) -> Details:
    command: Details = {} if transfer.command is None else {"command": transfer.command}
    return command | {"chunk": transfer.chunk, "packets": transfer.packets, "lines": transfer.lines}


def lanes(name: str, slices: Sequence[Slice]) -> list[Track]:
    """As few tracks of this name as it takes for slices that overlap; each goes to the first in which there is room."""
    found: list[Track] = []
    for item in sorted(slices, key=lambda item: (item.begin, item.end)):
        lane = next((track for track in found if track.slices[-1].end <= item.begin), None)
        if lane is None:
            lane = Track(name=name)
            found.append(lane)
        lane.slices.append(item)
    return found
