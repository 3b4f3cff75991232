"""The small system of a fault campaign: a ring of GPUs on the toy machine, stepped to wherever a fault strikes."""

from collections.abc import Callable
from dataclasses import dataclass

from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs

from t3sim.collective.carried import partial_products
from t3sim.collective.driver import Driver
from t3sim.engine.kernels import entries_compiled
from t3sim.hardware.abi import LoadedHardware
from t3sim.hardware.rtl.backend import rtl_hardware, upsettable_source
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import custom_workload
from t3sim.run.allocate import new_gpu
from t3sim.run.plan import RunPlan
from t3sim.run.request import RunRequest
from t3sim.run.system import System

UPSETTABLE = ("tracker", "trigger")
"""Parts whose stored bits a fault of the co-simulation can invert."""
GPUS = 3
WATCHDOG_CYCLES = 8_000
"""The watchdog limit, in memory clocks: longer than anything waits in a run without faults."""
LIMIT_CYCLES = 60_000
"""A run that is not over by then hangs: ten times the run without faults, and several times the watchdog's limit."""
TAIL_CYCLES = 600
"""Cycles that a finished run goes on, so that what a late fault sets off is seen."""


def request(protected: bool) -> RunRequest:
    """The run: an output of 8 tiles with cut edges, in three chunks of unlike sizes, sent tile by tile.

    ``protected``: with the hardware's ``protect`` and the link's retries.
    """
    machine = load_machine("toy", {"hardware.protect": protected, "link.retry": protected, "dma.block": "tile"})
    workload = custom_workload(m=126, n=62, k=16, tp=GPUS)
    return RunRequest(workload=workload, machine=machine, policy="t3-mca", data_lines=1 << 30)


class FaultSystem(System):
    """A ring that is stepped from outside. ``alter`` may change a GPU's program before it is written."""

    def __init__(
        self, plan: RunPlan, hardware: LoadedHardware, alter: Callable[[int, Driver], None] | None = None
    ) -> None:
        gpus = [
            new_gpu(
                plan,
                gpu,
                hardware,
                partial_products(plan.carried, plan.grid, plan.request.seed, gpu, plan.request.workload.k_of(gpu)),
            )
            for gpu in range(plan.gpus)
        ]
        super().__init__(plan, hardware, gpus)
        self._alter = alter
        self.now = 0

    def driver(self, number: int) -> Driver:
        """As the system's, with a watchdog."""
        driver = super().driver(number)
        driver.writes.insert(0, (regs.WATCHDOG, WATCHDOG_CYCLES))
        if self._alter is not None:
            self._alter(number, driver)
        return driver

    @property
    def window(self) -> int:
        """Cycles that GPUs may be simulated apart."""
        return int(self.gpus[0].link["latency_cycles"])

    @property
    def finished(self) -> bool:
        """Whether every GPU has all of the result."""
        return all(gpu.time["finish_cycle"] >= 0 for gpu in self.gpus)

    def advance_to(self, cycle: int) -> None:
        """Simulate to the beginning of ``cycle``, at most a window away."""
        if cycle > self.now:
            for job in self._window(cycle):
                job()
            self.now = cycle


@dataclass(frozen=True, kw_only=True)
class Injection:
    """What a fault does to a run: ``prepare`` changes the system before its first cycle, ``alter`` a GPU's program.

    ``events``: (cycle, change), in the order of their cycles. ``watch`` is called after every window. ``retimed``: all
    that it alters is when stores come, and so how full the tables get.
    """

    prepare: Callable[[FaultSystem], None] | None = None
    alter: Callable[[int, Driver], None] | None = None
    events: tuple[tuple[int, Callable[[FaultSystem], None]], ...] = ()
    watch: Callable[[FaultSystem], None] | None = None
    retimed: bool = False


def upsettable_hardware(config: T3Config) -> LoadedHardware:
    """Compiled RTL, in which bits of tracker and trigger can be inverted."""
    return rtl_hardware(config, dict.fromkeys(UPSETTABLE, upsettable_source))


class FaultSetup:
    """The hardware of a campaign, built once; :meth:`run` makes a new system for each run.

    ``build`` makes the hardware. If its parts have no upset ports, as the golden model's, every kind of fault can be
    injected but the inversion of a stored bit.
    """

    def __init__(self, protected: bool, build: Callable[[T3Config], LoadedHardware] = upsettable_hardware) -> None:
        self.plan = RunPlan(request(protected))
        with entries_compiled(lambda done: None):
            self.hardware = build(self.config)

    @property
    def config(self) -> T3Config:
        """The hardware's configuration."""
        return self.plan.config

    def run(self, injection: Injection) -> FaultSystem:
        """A run with a fault, to its end or limit; the caller frees the hardware's instances (``hardware.close()``).

        Raises what the simulation raises.
        """
        system = FaultSystem(self.plan, self.hardware, injection.alter)
        system.program()
        if injection.prepare is not None:
            injection.prepare(system)
        events = list(injection.events)
        while not system.finished and system.now < LIMIT_CYCLES:
            while events and events[0][0] <= system.now:
                events.pop(0)[1](system)
            window = system.now - system.now % system.window + system.window
            system.advance_to(min([window, *(cycle for cycle, _ in events[:1])]))
            if injection.watch is not None:
                injection.watch(system)
        for end in (system.now + TAIL_CYCLES // 2, system.now + TAIL_CYCLES):
            system.advance_to(end)
        return system
