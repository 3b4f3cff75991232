"""N GPUs in a ring, each simulated alone for as long as the link's latency allows, on threads.

A packet or credit takes at least one window to arrive, so every window sees exactly the packets of earlier windows, and
the result does not depend on which thread ran what.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from time import thread_time

from t3hdl.interface.layouts import ChunkKind
from t3hdl.interface.words import signed

from t3sim.collective.driver import Driver
from t3sim.collective.ring import ring_maps, ring_next
from t3sim.engine.gpu import advance, close_state
from t3sim.engine.gpu_state import GpuState
from t3sim.engine.state import BINS, NEVER_CYCLE
from t3sim.engine.t3unit.program import bus_access, reset_unit, run_cycles, wait_until_ready
from t3sim.hardware.abi import LoadedHardware, PartFunctions
from t3sim.inputs.geometry import ceil_div
from t3sim.inputs.limits import LONGEST_CYCLES

from .plan import RunPlan
from .request import SimulationError

PATIENCE = 100_000
"""Memory cycles in which something happens but DRAM moves no line and nothing is on its way, after which a run is given
up: longer than DRAM ever keeps a line waiting."""


class System:
    """All simulated GPUs of a plan with their hardware."""

    def __init__(self, plan: RunPlan, hardware: LoadedHardware, gpus: list[GpuState]) -> None:
        self.plan = plan
        self.steps = PartFunctions(part.step for part in hardware.parts.values())
        self.resets = PartFunctions(part.reset for part in hardware.parts.values())
        self.config = hardware.config
        count = len(gpus)
        # In mirror mode the one GPU is its own neighbour.
        self.gpus = gpus
        self._took = [0.0] * count
        for number, gpu in enumerate(gpus):
            gpu.bind("rx", gpus[(number + 1) % count].out)
            gpu.bind("grants", gpus[ring_next(number, count)].credits)

    def program(self) -> None:
        """Reset every unit, and unless the policy is sequential map and arm its output."""
        for number, gpu in enumerate(self.gpus):
            reset_unit(gpu, self.resets)
            if not wait_until_ready(gpu, self.steps):
                raise SimulationError("the T3 unit does not finish its initialisation")
            if not self.plan.sequential:
                self._arm(number, gpu)
            # Simulated time starts at the launch of the GEMM; the unit's timestamps go on.
            gpu.unit["epoch_cycles"] = gpu.time["now_cycle"]
            gpu.time["now_cycle"] = 0

    def _arm(self, number: int, gpu: GpuState) -> None:
        """Program the unit, and wait until its chunks are live. Raises SimulationError if it refuses a write."""
        driver = self.driver(number)
        for address, value in driver.writes:
            error, _ = bus_access(gpu, self.steps, 1, address, signed(value))
            if error:
                raise SimulationError(f"the T3 unit refused the write of {value:#x} to register {address:#x}")
        run_cycles(gpu, self.steps, driver.load_cycles)
        gpu.unit["comm_seen"] = 0

    def driver(self, number: int) -> Driver:
        """The program of GPU ``number``."""
        plan = self.plan
        driver = Driver(self.config, plan.receive_lines, plan.grid, plan.bases["out"])
        driver.map_output()
        peer = ring_next(number, plan.gpus)
        for entry in ring_maps(number, plan.gpus):
            chunk = plan.partition.chunks[entry.chunk]
            blocks = plan.blocks(chunk)
            if entry.kind == ChunkKind.REMOTE:
                driver.remote_map(chunk, peer)
            elif entry.kind == ChunkKind.DMA:
                driver.dma_map(chunk, peer, entry.addends, blocks)
            else:
                driver.own(chunk, entry.addends, blocks)
        driver.set_arbiter(plan.arbitration)
        driver.arm()
        return driver

    def read(self, number: int, address: int) -> int:
        """A register of one GPU's unit."""
        error, value = bus_access(self.gpus[number], self.steps, 0, address, 0)
        if error:
            raise SimulationError(f"the T3 unit refused the read of register {address:#x}")
        return int(value)

    def run(self, threads: int) -> Iterator[int]:
        """Simulate until every GPU has finished; yields the cycle reached after each window.

        A window begins at the next cycle in which something happens anywhere, and is as long as the link's latency.
        Raises SimulationError when nothing can happen any more although work is left.
        """
        window = int(self.gpus[0].link["latency_cycles"])
        until = window
        progress, progress_at = -1, 0
        with ThreadPoolExecutor(threads) as pool:
            while True:
                self._fold_bins(until)
                wakes = self._simulate(pool, threads, until)
                yield until
                self._check()
                if all(gpu.time["finish_cycle"] >= 0 for gpu in self.gpus):
                    break
                begin = max(until, min(*wakes, self._next_arrival()))
                if begin > until or self._timed() or self._on_its_way(until):
                    progress_at = begin
                elif (moved := self._progress()) != progress:
                    progress, progress_at = moved, begin
                if begin >= NEVER_CYCLE or begin - progress_at > PATIENCE:
                    raise SimulationError(f"deadlock at cycle {until}: {self._stuck()}")
                if begin > LONGEST_CYCLES:
                    raise SimulationError(self._too_long())
                until = begin + window
        for gpu in self.gpus:
            close_state(gpu, int(gpu.time["finish_cycle"]))

    def _fold_bins(self, until: int) -> None:
        """Halve the resolution of the timeline when its bins would not reach to cycle ``until``."""
        while until > BINS * int(self.gpus[0].time["bin_cycles"]):
            for gpu in self.gpus:
                gpu.bins[:, : BINS // 2] = gpu.bins[:, ::2] + gpu.bins[:, 1::2]
                gpu.bins[:, BINS // 2 :] = 0
                gpu.queued[:, : BINS // 2] = gpu.queued[:, ::2]  # what waits when the first bin of a pair begins
                gpu.queued[:, BINS // 2 :] = 0
                gpu.queued_bins[0] = ceil_div(int(gpu.queued_bins[0]), 2)
                gpu.time["bin_cycles"] *= 2

    def _simulate(self, pool: Executor, threads: int, until: int) -> list[int]:
        """Every GPU to cycle ``until``, on as many threads; the next cycle of each.

        The GPUs that took longest in the last window come first: no thread waits for one that began late.
        """
        jobs, wakes = self._window(until), [0] * len(self.gpus)
        order = iter(sorted(range(len(jobs)), key=lambda number: -self._took[number]))

        def work() -> None:
            for number in order:
                begin = thread_time()
                wakes[number] = jobs[number]()
                self._took[number] = thread_time() - begin

        for worker in [pool.submit(work) for _ in range(min(threads, len(jobs)))]:
            worker.result()
        return wakes

    def _window(self, until: int) -> list[Callable[[], int]]:
        """One job per GPU. The limits are read before any job starts: what is written meanwhile arrives later."""
        count = len(self.gpus)

        def job(i: int) -> Callable[[], int]:
            packets = int(self.gpus[(i + 1) % count].link["out_head"])
            credits = int(self.gpus[ring_next(i, count)].link["credit_head"])
            return lambda: self._advance(i, until, packets, credits)

        return [job(i) for i in range(count)]

    def _advance(self, number: int, until: int, packets: int, credits: int) -> int:
        """As :func:`~t3sim.engine.gpu.advance`, for one GPU."""
        return advance(self.gpus[number], self.steps, until, packets, credits)

    def _check(self) -> None:
        """Raises SimulationError for what the T3 hardware may never do."""
        for number, gpu in enumerate(self.gpus):
            if gpu.dma["bad_commands"]:
                raise SimulationError(f"GPU {number}: a DMA command leaves the output buffer")
            if gpu.own["premature"]:
                raise SimulationError(f"GPU {number}: the own chunk was reported complete before its last update")

    def _progress(self) -> int:
        """A number that grows with every line that DRAM moves."""
        return sum(int(gpu.wait.sum()) + int(gpu.bytes_by_cause.sum()) for gpu in self.gpus)

    def _timed(self) -> bool:
        """Whether a launch, a workgroup, a packet or a kernel step waits for nothing but its time."""
        return any(
            gpu.gemm["start_cycle"] < 0
            or min(model["wake_cycle"] for model in (gpu.gemm, gpu.link, gpu.kernel)) < NEVER_CYCLE
            for gpu in self.gpus
        )

    def _next_arrival(self) -> int:
        """The cycle at which the next packet or credit arrives anywhere; NEVER_CYCLE if none is in flight."""
        count, arrival = len(self.gpus), NEVER_CYCLE
        for i, gpu in enumerate(self.gpus):
            rings = (
                (gpu.rx, gpu.link["rx_tail"], self.gpus[(i + 1) % count].link["out_head"]),
                (gpu.grants, gpu.link["credit_tail"], self.gpus[ring_next(i, count)].link["credit_head"]),
            )
            for ring, tail, head in rings:
                if tail < head:
                    arrival = min(arrival, int(ring["arrival_cycle"][tail % len(ring)]))
        return arrival

    def _on_its_way(self, cycle: int) -> bool:
        """Whether a packet, a credit or a request in the fabric has yet to arrive."""
        usable = (gpu.fronts["usable_cycle"] for gpu in self.gpus)
        return self._next_arrival() < NEVER_CYCLE or any(
            ((heads > cycle) & (heads < NEVER_CYCLE)).any() for heads in usable
        )

    def _too_long(self) -> str:
        seconds = self.plan.ns(LONGEST_CYCLES) / 1e9
        return (
            f"the run takes more than {seconds:.0f} s of simulated time (2**40 memory clocks), as far as it can be "
            "simulated: see which rate of the machine is so low, or which latency so high"
        )

    def _stuck(self) -> str:
        """What each unfinished GPU waits for, for people."""
        reports = []
        for number, gpu in enumerate(self.gpus):
            fabric, kernel = gpu.fabric, gpu.kernel
            if gpu.time["finish_cycle"] < 0:
                reports.append(
                    f"GPU {number}: {gpu.gemm['tiles_done']} of {gpu.output['tiles']} workgroups done, "
                    f"{fabric['live_chunks']} chunks live, {fabric['held']} stores held, {fabric['bursts_used']} "
                    f"bursts in memory, {kernel['step']} of {kernel['steps']} kernel steps, {gpu.dma['triggers']} "
                    "blocks fired"
                )
        return "; ".join(reports)
