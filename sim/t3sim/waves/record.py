"""A run up to the end of a window, in which one GPU is simulated clock by clock and its probes are read."""

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from t3hdl.interface.layouts import ChunkKind

from t3sim.collective.ring import ring_maps
from t3sim.engine.gpu import advance
from t3sim.engine.prepare import open_prepared
from t3sim.engine.t3unit.words import FIRST
from t3sim.hardware.abi import LoadedHardware
from t3sim.hardware.rtl.traced import TracedPartType, traced_source
from t3sim.run.plan import RunPlan
from t3sim.run.request import Backend, OnProgress, Progress, RunRequest, preparing
from t3sim.run.simulate import AnySystem, set_up
from t3sim.run.sizes import check_fits
from t3sim.run.system import System
from t3sim.run.work import work_done

from .internals import InternalProbe, Internals
from .probe import Probe
from .selection import PartInstance
from .signals import Change, Signal
from .slice_probe import SliceProbe
from .tap import Tap

MOST_CLOCKS = 1_000_000
"""Clocks in a window: a file of some ten megabytes at least."""
MOST_CLOCKS_INSIDE = 20_000
"""The same with internal signals, of which a part changes dozens in a clock: half a gigabyte of memory for a few."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """Memory clocks from ``first`` to ``last`` (not included), since the launch of the GEMM."""

    first: int
    last: int


@dataclass(frozen=True, kw_only=True)
class Wave:
    """One instance in a window: the signals of its ports and their changes (cycle, number of the signal, value).

    ``internals``: the signals within it; empty if they were not recorded.
    """

    instance: PartInstance
    signals: Sequence[Signal]
    changes: Sequence[Change]
    internals: Internals


@dataclass(frozen=True, kw_only=True)
class Waves:
    """Instances of one GPU's unit in a window. ``epoch``: what the unit's time is ahead of the window's."""

    hardware: Backend
    gpu: int
    window: Window
    clock_mhz: int
    epoch: int
    parts: Sequence[Wave]

    def picoseconds(self, cycle: int) -> int:
        """The time of a clock's edge since the launch of the GEMM, rounded down."""
        return cycle * 1_000_000 // self.clock_mhz


class _WatchedSystem(System):
    """A system that reads the probes of one GPU while it is in ``window``."""

    gpu: int
    window: Window
    tap: Tap
    probes: Sequence[Probe]

    def watch(self, hardware: LoadedHardware, gpu: int, window: Window, parts: Sequence[PartInstance]) -> None:
        """Choose what is read. The system is programmed."""
        self.gpu, self.window = gpu, window
        self.tap = Tap(hardware, frozenset(instance.part for instance in parts))
        self.probes = [self._probe(hardware, instance) for instance in parts]

    def _probe(self, hardware: LoadedHardware, instance: PartInstance) -> Probe:
        gpu, part = self.gpus[self.gpu], hardware.parts[instance.part]
        inside = None
        if isinstance(part, TracedPartType):
            handle = int(gpu.handles[FIRST[instance.part] + instance.index])
            inside = InternalProbe(part, handle, int(gpu.unit["epoch_cycles"]))
        return (SliceProbe if instance.part == "slice" else Probe)(hardware.config, instance, gpu, inside)

    def _advance(self, number: int, until: int, packets: int, credits: int) -> int:
        gpu, last = self.gpus[number], min(until, self.window.last)
        if number != self.gpu or last <= self.window.first or gpu.time["now_cycle"] >= last:
            return super()._advance(number, until, packets, credits)
        wake = until
        if gpu.time["now_cycle"] < self.window.first:
            super()._advance(number, self.window.first, packets, credits)
        for probe in self.probes:
            probe.settle()
        while (cycle := int(gpu.time["now_cycle"])) < last:
            self.tap.begin(cycle)
            wake = advance(gpu, self.tap.steps, cycle + 1, packets, credits)
            for probe in self.probes:
                probe.look(cycle, self.tap)
            reached = min(wake, until)
            if cycle + 1 < min(reached, last):
                for probe in self.probes:
                    probe.rest(cycle + 1, min(reached, last))
            gpu.time["now_cycle"] = reached  # as the engine's own loop does, which skips the clocks in between
        return wake if gpu.time["now_cycle"] >= until else super()._advance(number, until, packets, credits)


def record(
    request: RunRequest,
    gpu: int,
    parts: Sequence[PartInstance],
    window: Window,
    on_progress: OnProgress,
    *,
    internals: bool = False,
) -> Waves:
    """The waves of ``parts`` of GPU ``gpu``; the run is not carried on behind the window.

    ``internals``: with the signals within the parts, of compiled RTL (``request.hardware`` is "rtl").
    Raises ValueError if the run is over before the window begins, and else what a simulation raises.
    """
    traced = {instance.part for instance in parts} if internals else set()
    with _programmed(request, _WatchedSystem, on_progress, traced) as (system, hardware):
        system.watch(hardware, gpu, window, parts)
        reached = 0
        for reached in _shown(system, request.threads, on_progress):
            if reached >= window.last:
                break
        shown, last = system.gpus[gpu], min(window.last, reached)
        clock_mhz, epoch = int(shown.link["memory_mhz"]), int(shown.unit["epoch_cycles"])
        if last <= window.first:
            raise ValueError(
                f"the window must begin while the run goes on: it is over after {reached * 1000 / clock_mhz:.0f} ns, "
                f"and the window begins at {window.first * 1000 / clock_mhz:.0f} ns. Choose an earlier one"
            )
        return Waves(
            hardware=request.hardware,
            gpu=gpu,
            window=Window(first=window.first, last=last),
            clock_mhz=clock_mhz,
            epoch=epoch,
            parts=[
                Wave(
                    instance=probe.instance,
                    signals=probe.signals,
                    changes=probe.changes,
                    internals=probe.inside.read() if probe.inside is not None else Internals(),
                )
                for probe in system.probes
            ],
        )


def trigger_cycle(request: RunRequest, gpu: int, number: int, on_progress: OnProgress) -> int:
    """The clock in which GPU ``gpu``'s DMA engine takes its command ``number``, counted from 1, as of
    :func:`check_trigger`.

    Raises what a simulation raises.
    """
    with _programmed(request, System, on_progress) as (system, _):
        dma, fired = system.gpus[gpu].dma, system.gpus[gpu].fired
        for _ in _shown(system, request.threads, on_progress):
            if number <= int(dma["triggers"]):
                break
        return int(fired[number - 1, 1])


def check_trigger(request: RunRequest, gpu: int, number: int) -> None:
    """Refuses (ValueError) a ``number`` of which GPU ``gpu`` has no trigger: it has one for each DMA block it sends."""
    plan = RunPlan(request)
    blocks = 0
    if not plan.sequential:
        sent = [entry.chunk for entry in ring_maps(gpu, plan.gpus) if entry.kind == ChunkKind.DMA]
        blocks = sum(plan.blocks(plan.partition.chunks[chunk]).count for chunk in sent)
    if number > blocks:
        why = "two GPUs send no chunk by DMA" if plan.gpus == 2 else f"policy {request.policy} sends none"
        raise ValueError(
            f"--around must name a trigger of the GPU, of which there are {blocks} in this run, not {number}: "
            + (f"choose 1 to {blocks}, or " if blocks else f"{why}; ")
            + "give --from-ns and --to-ns"
        )


@contextmanager
def _programmed(
    request: RunRequest, kind: type[AnySystem], on_progress: OnProgress, traced: Collection[str] = ()
) -> Iterator[tuple[AnySystem, LoadedHardware]]:
    """A system whose units are programmed, and its hardware, whose instances are freed at the end.

    ``traced``: the parts that record their internal signals.
    """
    plan = RunPlan(request)
    check_fits(plan)
    config, variants = plan.config, dict.fromkeys(traced, traced_source)
    hardware = open_prepared(config, request.hardware, preparing(on_progress), variants)
    try:
        system, _ = set_up(plan, hardware, kind)
        system.program()
        yield system, hardware
    finally:
        hardware.close()


def _shown(system: System, threads: int, on_progress: OnProgress) -> Iterator[int]:
    """The cycles that a run reaches, each after its progress is shown."""
    begin = time.perf_counter()
    for cycle in system.run(threads):
        on_progress(
            Progress(
                simulated_ns=system.plan.ns(cycle),
                work_done=work_done(system),
                phase="up to what is shown",
                wall_seconds=time.perf_counter() - begin,
            )
        )
        yield cycle
