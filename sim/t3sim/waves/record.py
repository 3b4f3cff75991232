"""A run up to the end of a window, in which one GPU is simulated clock by clock and its probes are read."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from t3sim.engine.gpu import advance
from t3sim.engine.prepare import open_prepared
from t3sim.hardware.abi import LoadedHardware
from t3sim.run.plan import RunPlan
from t3sim.run.request import Backend, OnProgress, Progress, RunRequest, preparing
from t3sim.run.simulate import AnySystem, set_up
from t3sim.run.sizes import check_fits
from t3sim.run.system import System
from t3sim.run.work import work_done

from .probe import Change, Probe
from .selection import PartInstance
from .signals import Signal
from .slice_probe import SliceProbe
from .tap import Tap

MOST_CLOCKS = 1_000_000
"""Clocks in a window: a file of some ten megabytes at least."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """Memory clocks from ``first`` to ``last`` (not included), since the launch of the GEMM."""

    first: int
    last: int


@dataclass(frozen=True, kw_only=True)
class Wave:
    """One instance in a window: its signals and their changes (cycle, number of the signal, value)."""

    instance: PartInstance
    signals: Sequence[Signal]
    changes: Sequence[Change]


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
        self.probes = [
            (SliceProbe if instance.part == "slice" else Probe)(hardware.config, instance, self.gpus[gpu])
            for instance in parts
        ]

    def _advance(self, number: int, until: int, packets: int, credits: int) -> int:
        gpu, last = self.gpus[number], min(until, self.window.last)
        if number != self.gpu or last <= self.window.first or gpu.s["now"][0] >= last:
            return super()._advance(number, until, packets, credits)
        wake = until
        if gpu.s["now"][0] < self.window.first:
            super()._advance(number, self.window.first, packets, credits)
        for probe in self.probes:
            probe.settle()
        while (cycle := int(gpu.s["now"][0])) < last:
            self.tap.stepped.clear()
            wake = advance(gpu, self.tap.steps, cycle + 1, packets, credits)
            for probe in self.probes:
                probe.look(cycle, self.tap)
            reached = min(wake, until)
            if cycle + 1 < min(reached, last):
                for probe in self.probes:
                    probe.rest(cycle + 1)
            gpu.s["now"] = reached  # as the engine's own loop does, which skips the clocks in between
        return wake if gpu.s["now"][0] >= until else super()._advance(number, until, packets, credits)


def record(
    request: RunRequest, gpu: int, parts: Sequence[PartInstance], window: Window, on_progress: OnProgress
) -> Waves:
    """The waves of ``parts`` of GPU ``gpu``; the run is not carried on behind the window.

    Raises ValueError if the run is over before the window begins, and else what a simulation raises.
    """
    with _programmed(request, _WatchedSystem, on_progress) as (system, hardware):
        system.watch(hardware, gpu, window, parts)
        reached = 0
        for reached in _shown(system, request.threads, on_progress):
            if reached >= window.last:
                break
        p, last = system.gpus[gpu].p[0], min(window.last, reached)
        clock_mhz, epoch = int(p["memory_mhz"]), int(p["epoch"])
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
            parts=[Wave(instance=x.instance, signals=x.signals, changes=x.changes) for x in system.probes],
        )


def trigger_cycle(request: RunRequest, gpu: int, number: int, on_progress: OnProgress) -> int:
    """The clock in which GPU ``gpu``'s DMA engine takes its command ``number``, counted from 1.

    Raises ValueError if there is no such command, and else what a simulation raises.
    """
    with _programmed(request, System, on_progress) as (system, _):
        scalars, fired = system.gpus[gpu].s, system.gpus[gpu].fired
        for _ in _shown(system, request.threads, on_progress):
            if number <= min(int(scalars["triggers"][0]), len(fired)):
                return int(fired[number - 1, 1])
        fires = int(scalars["triggers"][0])
        raise ValueError(
            f"--around must name a trigger of the GPU, of which {fires or 'none'} fired in this run, not {number}: "
            f"{f'choose 1 to {fires}, or ' if fires else ''}give --from-ns and --to-ns"
        )


@contextmanager
def _programmed(
    request: RunRequest, kind: type[AnySystem], on_progress: OnProgress
) -> Iterator[tuple[AnySystem, LoadedHardware]]:
    """A system whose units are programmed, and its hardware, whose instances are freed at the end."""
    plan = RunPlan(request)
    check_fits(plan)
    hardware = open_prepared(request.machine.hardware.config(), request.hardware, preparing(on_progress))
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
                simulated_ns=cycle * 1000 / system.plan.request.machine.hbm.clock_mhz,
                work_done=work_done(system),
                phase="up to what is shown",
                wall_seconds=time.perf_counter() - begin,
            )
        )
        yield cycle
