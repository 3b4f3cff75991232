"""The T3 hardware of one GPU behind its bus: all parts, connected by direct wires."""

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import wiring

from .common.broadcast import control_pulses
from .common.linked import Parts, connect, from_inside, moving
from .config import T3Config
from .interface.connections import links
from .interface.layouts import TIME_BITS
from .interface.parts import TABLE
from .interface.signatures import core_signature
from .token_network.network import TokenNetwork


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
    update_done : In : pulse of each channel; the memory has performed all of a ``dram`` request (count_on = performed).
    occupancy : In : lines in each channel's DRAM queue.
    now : In : cycles of this clock, for the starvation limit, patience, the watchdog, aborts and the measurement.
    compute_refused, comm_refused : Out : pulses of each slice; a violation, given back.
    compute_stale, comm_stale : Out : pulses of each slice; an update of no live epoch, given back.
    store : In(stream(MemoryRequest)).array(egress_ports) : a burst of a row of a wavefront tile, by its first line.
    route : Out(stream(Route)).array(egress_ports) : where it goes, in the order of ``store``.
    command : Out(stream(DmaCommand)) : blocks for the DMA engine.
    command_done : In : pulse; a command of this context is done (its credit comes back).
    nmc_flags : In : exception flags that NMC units raised in this cycle.
    nmc_uncorrectable : In(1) : pulse; an NMC unit has found a wrong bit of its own.
    bus_*, response_* : the register file.
    interrupt : Out(1) : an enabled bit of IRQ_STATUS is set.
    init_done, armed, live, chunks_done, done_mask, quiet : Out : as in STATUS and DONE_MASK, for logic beside the unit.
    context : Out(ContextStatus).array(contexts) : as in CONTEXT, without ``pending`` and ``aborting``.
    entries : Out(16) : tile entries in use a cycle ago.
    threshold, chosen : Out : the monitor's threshold for communication, 127 (no limit) before it has chosen.
    idle, wake_at : Out : rule 5 of docs/hardware/rules.md, for the unit as a whole.

    Latency: ``latency`` cycles from an update's transfer on ``dram`` to the command that it triggers. Throughput: one
    request per slice and cycle. Reset: ``init_done`` when the tracker has written its tables.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__(core_signature(config))
        self._parameters = config
        made = {
            name: [part.make(config) for _ in range(part.count(config))]
            for name, part in TABLE.items()
            if part.within == "core"
        }
        self._slices, self._matchers = made["slice"], made["matcher"]
        self._tracker, self._trigger, self._monitor, self._registers = (
            made[name][0] for name in ("tracker", "trigger", "monitor", "registers")
        )
        self._network, inputs = TokenNetwork(config=config), config.node_inputs
        self._parts: Parts = {
            "core": [from_inside(self)],
            # Of the network, which has the inputs of all leaves and the outputs of all roots.
            "leaf": [
                SimpleNamespace(
                    token_in=self._network.token_in[inputs * number : inputs * (number + 1)],
                    corrected=self._network.corrected[number],
                    uncorrectable=self._network.uncorrectable[number],
                )
                for number in range(config.nodes)
            ],
            "root": [
                SimpleNamespace(
                    token_out=self._network.token_out[number :: config.roots],
                    corrected=self._network.corrected[config.nodes + number],
                    uncorrectable=self._network.uncorrectable[config.nodes + number],
                )
                for number in range(config.roots)
            ],
            **made,
        }
        self._links = [link for link in links(config) if link.sources[0].part != "leaf"]

    @property
    def latency(self) -> int:
        """Cycles from the last counted transfer on ``dram`` to its command, everything empty (count_on = accepted)."""
        parts = self._slices[0].token_latency, self._network.latency, self._tracker.latency, self._trigger.latency
        return sum(parts)

    def elaborate(self, platform: Any) -> Module:
        """Wires, and what connections combine."""
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

        connect(m, self._links, self._parts)
        self._connect_idle(m)
        return m

    def _connect_idle(self, m: Module) -> None:
        """A part says idle on the condition that nothing comes or goes and no input changes: between two parts, that
        no stream transfers, no pulse is given, and every level that one part acts on is what it was a cycle ago."""
        tracker, trigger = self._tracker, self._trigger
        parts: list[Any] = [*self._slices, *self._matchers, self._network, tracker, trigger, self._monitor]
        parts.append(self._registers)
        transfers = moving([link for link in self._links if link.inside], self._parts)
        deadlines = [part.wake_at for part in (*self._slices, tracker, trigger, self._monitor)]
        registers = self._registers
        levels = Cat(
            self._monitor.threshold, self._monitor.measure, self._monitor.behind, self._monitor.comm_seen,
            trigger.backlog, tracker.abort_busy, registers.pending,
            registers.stuck.valid, registers.corrected, registers.uncorrectable,
            registers.unmatched, registers.over_count, registers.over_total, registers.too_large,
            registers.tile_twice.valid,
            *(context.complete for context in registers.context),
            registers.maintenance, *(context.outstanding.any() for context in registers.context),  # an abort may end
        )  # fmt: skip
        levels_before = Signal(len(levels))
        m.d.sync += levels_before.eq(levels)
        m.d.comb += [
            self.idle.eq(Cat(part.idle for part in parts).all() & ~Cat(transfers).any() & (levels == levels_before)),
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
