"""The T3 hardware of one GPU behind its bus: all parts, connected by direct wires."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import wiring

from .common.broadcast import control_pulses
from .config import T3Config
from .egress.matcher import RangeMatcher
from .interface.layouts import TIME_BITS
from .interface.signatures import core_signature
from .registers.registers import ControlRegisters
from .slice.arbiter import OccupancyMonitor
from .slice.slice import MemorySlice
from .token_network.network import TokenNetwork
from .tracker.tracker import Tracker
from .trigger.trigger import Trigger

_STREAMS = ("compute_read", "compute_write", "comm_read", "comm_write", "dram")
_BUS = ("bus_valid", "bus_write", "bus_privileged", "bus_address", "bus_data")
_RESPONSE = ("bus_ready", "response_valid", "response_error", "response_data")
_REFUSED = ("compute_refused", "comm_refused")
_TRACKER_STATUS = (
    "unmatched", "over_count", "over_total", "peak_entries", "overflowed", "maintenance", "abort_busy", "debug_data",
    "updates", "tiles",
)  # fmt: skip
_TRIGGER_STATUS = (
    "armed", "live", "chunks_done", "done_mask", "poisoned", "quiesced", "quiet", "stuck", "triggers",
    "command_stall", "peak_ready",
)  # fmt: skip
_MONITOR_STATUS = ("threshold", "chosen")


class T3Core(wiring.Component):
    """Slices, token network, tracker, trigger, occupancy monitor, egress matchers and registers of one GPU.

    NMC units sit at the memory's banks and are not in here.

    Parameters
    ----------
    config : the hardware configuration.

    Members
    -------
    compute_read, compute_write : In(stream(MemoryRequest)).array(slices) : the GPU's accesses to each channel.
    comm_read, comm_write : In(stream(MemoryRequest)).array(slices) : those of DMA engine, link and collective kernels.
    dram : Out(stream(MemoryRequest)).array(slices) : to each DRAM queue; ``tagged`` is 1 if the access is tracked.
    update_done : In : pulse of each channel; the memory has performed a ``dram`` request (count_on = performed).
    occupancy : In : entries in each channel's DRAM queue.
    now : In : cycles of this clock, for the starvation limit, the watchdog and the measurement.
    compute_refused, comm_refused : Out : pulses of each slice; a write to another context's range, given back.
    store : In(stream(MemoryRequest)).array(egress_ports) : one row of a wavefront tile, by its first line.
    route : Out(stream(Route)).array(egress_ports) : where it goes, in the order of ``store``.
    command : Out(stream(DmaCommand)) : blocks for the DMA engine.
    command_done : In : pulse; a command of this context is done (its credit comes back).
    nmc_flags : In : exception flags that NMC units raised in this cycle.
    bus_*, response_* : the register file.
    interrupt : Out(1) : an enabled bit of IRQ_STATUS is set.
    init_done, armed, live, chunks_done, done_mask, quiet : Out : as in STATUS and DONE_MASK, for logic beside the unit.
    entries : Out(16) : tile entries in use now.
    threshold, chosen : Out : the monitor's limit for communication, 127 before it has chosen.
    idle, wake_at : Out : rule 5 of docs/hardware.md, for the unit as a whole.

    Latency: ``latency`` cycles from an update's transfer on ``dram`` to the command that it triggers. Throughput: one
    request per slice and cycle. Reset: ``init_done`` after the tracker's walker.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__(core_signature(config))
        self._parameters = config
        self._slices = [MemorySlice(config=config) for _ in range(config.slices)]
        self._matchers = [RangeMatcher(config=config) for _ in range(config.egress_ports)]
        self._network = TokenNetwork(config=config)
        self._tracker = Tracker(config=config)
        self._trigger = Trigger(config=config)
        self._monitor = OccupancyMonitor(config=config)
        self._registers = ControlRegisters(config=config)

    @property
    def latency(self) -> int:
        """Cycles from the last counted transfer on ``dram`` to its command, everything empty (count_on = accepted)."""
        parts = self._slices[0].token_latency, self._network.latency, self._tracker.latency, self._trigger.latency
        return sum(parts)

    def elaborate(self, platform: Any) -> Module:
        """Wires only."""
        m = Module()
        for number, part in enumerate(self._slices):
            m.submodules[f"slice_{number}"] = part
        for number, part in enumerate(self._matchers):
            m.submodules[f"matcher_{number}"] = part
        disarm = control_pulses(m, self._registers.config_valid, self._registers.config).disarm
        m.submodules.network = ResetInserter(disarm)(self._network)  # it has no configuration port
        m.submodules.tracker = self._tracker
        m.submodules.trigger = self._trigger
        m.submodules.monitor = self._monitor
        m.submodules.registers = self._registers

        self._connect_slices(m)
        self._connect_matchers(m)
        self._connect_completion(m)
        self._connect_monitor(m)
        self._connect_registers(m)
        self._connect_idle(m)
        return m

    def _connect_slices(self, m: Module) -> None:
        for number, part in enumerate(self._slices):
            for name in _STREAMS:
                wiring.connect(m, wiring.flipped(getattr(self, name)[number]), getattr(part, name))
            wiring.connect(m, part.token, self._network.token_in[number])
            m.d.comb += [
                part.update_done_valid.eq(self.update_done_valid[number]),
                part.update_done.eq(self.update_done[number]),
                part.occupancy.eq(self.occupancy[number]),
                part.now.eq(self.now),
            ]
            for name in _REFUSED:
                m.d.comb += [
                    getattr(self, f"{name}_valid")[number].eq(getattr(part, f"{name}_valid")),
                    getattr(self, name)[number].eq(getattr(part, name)),
                ]

    def _connect_matchers(self, m: Module) -> None:
        for number, part in enumerate(self._matchers):
            wiring.connect(m, wiring.flipped(self.store[number]), part.store)
            wiring.connect(m, part.route, wiring.flipped(self.route[number]))

    def _connect_completion(self, m: Module) -> None:
        """Tokens to the tracker, finished tiles and chunks to the trigger, live chunks back, commands out."""
        tracker, trigger = self._tracker, self._trigger
        for source, bank in zip(self._network.token_out, tracker.token, strict=True):
            wiring.connect(m, source, bank)
        wiring.connect(m, trigger.command, wiring.flipped(self.command))
        m.d.comb += [
            trigger.tile_done_valid.eq(tracker.tile_done_valid),
            trigger.tile_done.eq(tracker.tile_done),
            trigger.chunk_done_valid.eq(tracker.chunk_done_valid),
            trigger.chunk_done.eq(tracker.chunk_done),
            tracker.load_valid.eq(trigger.load_valid),
            tracker.load.eq(trigger.load),
            tracker.now.eq(self.now),
            trigger.now.eq(self.now),
            trigger.poison_valid.eq(tracker.poison_valid),
            trigger.poison_slot.eq(tracker.poison_slot),
            trigger.abort_busy.eq(tracker.abort_busy),
            trigger.command_done_valid.eq(self.command_done_valid),
            trigger.command_done.eq(self.command_done),
            self.entries.eq(tracker.entries),
        ]

    def _connect_monitor(self, m: Module) -> None:
        monitor = self._monitor
        m.d.comb += [
            monitor.tile_done_valid.eq(self._tracker.tile_done_valid),
            monitor.comm_seen.eq(Cat(part.comm_seen for part in self._slices).any()),
            monitor.served.eq(Array(part.served for part in self._slices)[monitor.select]),
            monitor.now.eq(self.now),
        ]
        for part in self._slices:
            m.d.comb += [part.threshold.eq(monitor.threshold), part.measure.eq(monitor.measure)]

    def _connect_registers(self, m: Module) -> None:
        """The bus, the broadcast of configuration writes, and the status that registers and driver see."""
        registers, own = self._registers, self.signature.members
        m.d.comb += [getattr(registers, name).eq(getattr(self, name)) for name in _BUS]
        m.d.comb += [getattr(self, name).eq(getattr(registers, name)) for name in (*_RESPONSE, "interrupt")]
        for part in self._listeners():
            m.d.comb += [part.config_valid.eq(registers.config_valid), part.config.eq(registers.config)]
        m.d.comb += [
            self.init_done.eq(self._tracker.init_done & self._trigger.init_done),
            registers.init_done.eq(self.init_done),
            registers.nmc_flags.eq(self.nmc_flags),
        ]
        for source, names in (
            (self._tracker, _TRACKER_STATUS),
            (self._trigger, _TRIGGER_STATUS),
            (self._monitor, _MONITOR_STATUS),
        ):
            for name in names:
                m.d.comb += getattr(registers, name).eq(getattr(source, name))
                if name in own:
                    m.d.comb += getattr(self, name).eq(getattr(source, name))
        for shown, context in zip(registers.context, self._trigger.context, strict=True):
            m.d.comb += shown.eq(context)
        self._connect_faults(m)

    def _listeners(self) -> list[Any]:
        """The parts that take configuration writes."""
        return [*self._slices, *self._matchers, self._tracker, self._trigger, self._monitor]

    def _connect_faults(self, m: Module) -> None:
        """Refused writes, counted, the first of them in full; errors in stored bits of any part."""
        registers = self._registers
        refused = [(getattr(part, f"{name}_valid"), getattr(part, name)) for part in self._slices for name in _REFUSED]
        m.d.comb += registers.violations.eq(sum(valid for valid, _ in refused))
        for valid, request in reversed(refused):
            with m.If(valid):
                m.d.comb += [registers.violation[name].eq(request[name]) for name in ("line", "context", "source")]
        parts: list[Any] = [*self._slices, *self._matchers, self._tracker, self._trigger]
        for name in ("corrected", "uncorrectable"):
            m.d.comb += getattr(registers, name).eq(Cat(getattr(part, name) for part in parts).any())

    def _connect_idle(self, m: Module) -> None:
        """A part says idle on the condition that nothing comes or goes and no input changes: between two parts, that
        no stream transfers, no pulse is given, and every level that one part acts on is what it was a cycle ago."""
        tracker, trigger = self._tracker, self._trigger
        parts: list[Any] = [*self._slices, *self._matchers, self._network, tracker, trigger, self._monitor]
        parts.append(self._registers)
        moving = [
            *(part.token.valid & part.token.ready for part in self._slices),
            *(bank.valid & bank.ready for bank in tracker.token),
            tracker.tile_done_valid,
            tracker.chunk_done_valid,
            tracker.poison_valid,
            trigger.load_valid,
            self._registers.config_valid,
            *(getattr(part, f"{name}_valid") for part in self._slices for name in _REFUSED),
        ]
        deadlines = [*(part.wake_at for part in self._slices), tracker.wake_at, trigger.wake_at]
        registers = self._registers
        levels = Cat(
            self._monitor.threshold, self._monitor.measure, self._monitor.comm_seen, tracker.abort_busy,
            registers.stuck.valid, registers.corrected, registers.uncorrectable,
            registers.unmatched, registers.over_count, registers.over_total,
            *(context.complete for context in registers.context),
        )  # fmt: skip
        levels_before = Signal(len(levels))
        m.d.sync += levels_before.eq(levels)
        m.d.comb += [
            self.idle.eq(Cat(part.idle for part in parts).all() & ~Cat(moving).any() & (levels == levels_before)),
            self.wake_at.eq(_earliest(m, deadlines)),  # no other part acts by itself
        ]


def _earliest(m: Module, times: list[Value]) -> Value:
    """The smallest of the times, by a tree."""
    while len(times) > 1:
        pairs = list(zip(times[::2], times[1::2], strict=False))
        left = times[2 * len(pairs) :]
        times = [Signal(TIME_BITS, name="earlier") for _ in pairs]
        m.d.comb += [time.eq(Mux(a < b, a, b)) for time, (a, b) in zip(times, pairs, strict=True)]
        times += left
    return times[0]
