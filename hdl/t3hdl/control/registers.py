"""The register file that software sees: request and response port in, broadcast configuration writes out."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from ..config import T3Config
from ..layouts import NEVER, Dtype
from ..signatures import registers_signature
from . import register_map as regs
from .register_events import EventRecord
from .register_locks import ConfigurationLocks


@dataclass(frozen=True)
class _Tables:
    """Whether the address of the request is a register of one of the tables."""

    range: Signal
    quota: Signal
    context: Signal
    profile: Signal
    descriptor: Signal


class ControlRegisters(wiring.Component):
    """Decodes the bus, answers every request one cycle later, broadcasts good writes as ``config`` pulses.

    Parameters
    ----------
    config : the hardware configuration; says which table entries exist, and what CAPABILITY reads.

    Members
    -------
    bus_*, response_* : a request is taken when ``bus_valid`` and ``bus_ready``; its response is a pulse.
    config_valid, config : Out : pulse; a configuration write that every part decodes for itself.
    interrupt : Out(1) : an enabled bit of IRQ_STATUS is set.
    violations, violation, nmc_flags : In : events of this cycle. The other inputs: what other parts show.
    idle, wake_at : Out : rule 5 of docs/hardware.md; ``wake_at`` is ``NEVER``.

    Latency: a request taken at t has its response, and its ``config`` pulse, at t+1. Throughput: one request
    per two cycles. ``response_error`` and ``response_data`` mean nothing while ``response_valid`` is 0. Reset:
    docs/hardware.md, "ControlRegisters", which also says which requests are errors.
    """

    def __init__(self, *, config: T3Config) -> None:
        self._config = config
        super().__init__(registers_signature(config))

    @property
    def latency(self) -> int:
        """Cycles from a request to its response and configuration write."""
        return 1

    def elaborate(self, platform: Any) -> Module:
        """Decode, judge, answer; then what the good writes do."""
        m = Module()
        m.submodules.locks = locks = ConfigurationLocks(config=self._config)
        m.submodules.events = events = EventRecord(contexts=self._config.contexts)
        taken, good, locked, write = Signal(), Signal(), Signal(), Signal()
        tables = self._decode_tables(m)
        stored = self._stored_registers(m, write, tables)
        locked_write = Signal()

        m.d.comb += [
            self.bus_ready.eq(~self.response_valid),
            taken.eq(self.bus_valid & self.bus_ready),
            write.eq(taken & self.bus_write & good),
            self.interrupt.eq((events.irq.as_value() & stored[regs.IRQ_ENABLE]).any()),
            self.idle.eq(~self.response_valid & ~events.busy),
            self.wake_at.eq(NEVER),
        ]
        read_value, readable = self._read(m, self._readable(stored, events, locked_write), tables, stored)
        writable, refused = self._judge(m, tables, locks, locked, stored[regs.LOCK])
        m.d.comb += good.eq(Mux(self.bus_write, writable & ~refused & ~locked, readable))

        m.d.sync += [self.response_valid.eq(taken), self.config_valid.eq(write & self._broadcast(tables))]
        with m.If(taken):
            m.d.sync += [
                self.response_error.eq(~good),
                self.response_data.eq(Mux(self.bus_write | ~good, 0, read_value)),
                self.config.address.eq(self.bus_address),
                self.config.data.eq(self.bus_data),
            ]
        hit_lock = taken & self.bus_write & writable & ~refused & locked
        self._follow(m, write, locks, events, hit_lock, tables)
        m.d.sync += locked_write.eq((locked_write | hit_lock) & ~events.clear_violations)
        return m

    def _is_one_of(self, *addresses: int) -> Value:
        return Cat(self.bus_address == each for each in addresses).any()

    def _decode_tables(self, m: Module) -> _Tables:
        """Table addresses exist as far as this configuration reaches."""
        address, config = self.bus_address, self._config
        aligned = address[:3] == 0
        tables = _Tables(*(Signal(name=f"in_{name}") for name in _Tables.__dataclass_fields__))
        small = address[3:7] < config.contexts
        m.d.comb += [
            tables.range.eq(
                aligned
                & (address[7:] == regs.RANGE >> 7)
                & (address[5:7] < config.ranges)  # four ranges at most, RANGE_STRIDE bytes each
                & (address[3:5] < regs.RANGE_WORDS)
            ),
            tables.quota.eq(aligned & (address[7:] == regs.QUOTA >> 7) & small),
            tables.context.eq(aligned & (address[7:] == regs.CONTEXT >> 7) & small),
            tables.profile.eq(aligned & (address[9:] == regs.PROFILE >> 9) & (address[3:7] < config.wavefronts)),
            tables.descriptor.eq(
                aligned
                & (address[12:] == regs.DESCRIPTOR >> 12)
                & (address[6:12] < config.descriptors)
                & (address[3:6] < regs.DESCRIPTOR_WORDS)
            ),
        ]
        return tables

    def _judge(
        self, m: Module, tables: _Tables, locks: ConfigurationLocks, locked: Signal, lock: data.View
    ) -> tuple[Value, Value]:
        """Whether the register takes writes, and whether this one is refused; sets ``locked``."""
        control = locks.control
        busy = self.maintenance | self.abort_busy
        actions = [control[name] for name in ("arm", "disarm", "abort", "quiesce", "resume")]
        bad_context = control.context >= self._config.contexts
        bad_arm = bad_context | ~self.init_done | busy | self.quiesced | locks.bad_window
        armed_already = Array([*locks.active, *(0 for _ in range(16 - len(locks.active)))])[control.context]
        bad_control = (
            (sum(actions, start=Value.cast(0)) > 1)
            | (control.arm & (bad_arm | armed_already))
            | (control.abort & (bad_context | ~self.init_done | busy))
        )
        m.d.comb += [
            control.eq(self.bus_data),
            locks.active.eq(Cat(context.armed & ~context.complete for context in self.context)),
            locks.range_index.eq(self.bus_address[5:7]),
            locks.descriptor.eq(self.bus_address[6:12]),
            locks.context.eq(self.bus_address[3:7]),
        ]
        settings = self._is_one_of(regs.ARBITER, regs.THRESHOLDS, regs.WATCHDOG)
        table = tables.range | tables.quota | tables.profile | tables.descriptor
        m.d.comb += locked.eq(
            (lock.configuration & (settings | table))
            | (tables.range & locks.range_locked)
            | (tables.quota & locks.quota_locked)
            | (tables.profile & locks.active.any())
            | (tables.descriptor & locks.descriptor_locked)
        )
        refused = (
            (lock.privileged & ~self.bus_privileged)
            | (self._is_one_of(regs.CONTROL) & bad_control)
            | (self._is_one_of(regs.DEBUG_SELECT) & (~self.init_done | busy))
        )
        single = self._is_one_of(*(address for address, access in regs.ACCESS.items() if "w" in access))
        return single | table, refused

    def _broadcast(self, tables: _Tables) -> Value:
        """Whether a write goes to the parts (IRQ_*, LOCK and NMC_FLAGS stay here)."""
        single = (regs.CONTROL, regs.ARBITER, regs.THRESHOLDS, regs.WATCHDOG, regs.DEBUG_SELECT)
        return tables.range | tables.quota | tables.profile | tables.descriptor | self._is_one_of(*single)

    def _stored_registers(self, m: Module, write: Value, tables: _Tables) -> dict[int, Any]:
        """The registers that can be read back, and what a good write does to them."""
        stored = {
            regs.ARBITER: Signal(regs.Arbiter, name="arbiter", init=regs.RESET[regs.ARBITER]),
            regs.THRESHOLDS: Signal(regs.Thresholds, name="thresholds", init=regs.RESET[regs.THRESHOLDS]),
            regs.WATCHDOG: Signal(32, name="watchdog"),
            regs.IRQ_ENABLE: Signal(regs.Interrupts.size, name="irq_enable"),
            regs.LOCK: Signal(regs.Lock, name="lock"),
        }
        for address, register in stored.items():
            with m.If(write & self._is_one_of(address)):
                kept = register.as_value() if address == regs.LOCK else 0  # a lock opens by reset alone
                m.d.sync += register.eq(self.bus_data | kept)
        quotas = [
            Signal(regs.Quota, name=f"quota_{c}", init=regs.RESET[regs.QUOTA]) for c in range(self._config.contexts)
        ]
        for c, quota in enumerate(quotas):
            with m.If(write & tables.quota & (self.bus_address[3:7] == c)):
                m.d.sync += quota.eq(self.bus_data)
        return stored | {regs.QUOTA: Array(quotas)}

    def _follow(
        self, m: Module, write: Value, locks: ConfigurationLocks, events: EventRecord, hit_lock: Value, tables: _Tables
    ) -> None:
        """Good writes change locks and sticky bits; what other parts show becomes events."""
        control, data_in = write & self._is_one_of(regs.CONTROL), self.bus_data
        m.d.comb += [
            *(getattr(locks, name).eq(control & locks.control[name]) for name in ("arm", "abort", "disarm")),
            locks.set_owner.eq(write & tables.range & (self.bus_address[3:5] == regs.RANGE_WORDS - 1)),
            locks.owner.eq(data_in),
            events.clear_irq.eq(Mux(write & self._is_one_of(regs.IRQ_STATUS), data_in, 0)),
            events.clear_flags.eq(Mux(write & self._is_one_of(regs.NMC_FLAGS), data_in, 0)),
            events.clear_violations.eq(locks.disarm),
            events.locked_write.eq(hit_lock),
            events.watchdog.eq(self.stuck.valid),
            events.error.eq(Cat(self.unmatched, self.over_count, self.over_total)),
            events.complete.eq(Cat(context.complete for context in self.context)),
            *(getattr(events, name).eq(getattr(self, name))
              for name in ("corrected", "uncorrectable", "abort_busy", "violations", "violation", "nmc_flags")),
        ]  # fmt: skip

    def _read(self, m: Module, values: dict[int, Any], tables: _Tables, stored: dict[int, Any]) -> tuple[Value, Value]:
        """The value of the register at the bus address, and whether it can be read."""
        value, readable = Signal(64, name="read_value"), Signal()
        with m.Switch(self.bus_address):
            for address, register in values.items():
                with m.Case(address):
                    m.d.comb += [readable.eq(1), value.eq(register)]
        index = self.bus_address[3:7]
        with m.If(tables.quota):
            m.d.comb += [readable.eq(1), value.eq(stored[regs.QUOTA][index])]
        with m.If(tables.context), m.Switch(index):
            for c, context in enumerate(self.context):
                with m.Case(c):
                    m.d.comb += [readable.eq(1), value.eq(context)]
        return value, readable

    def _readable(self, stored: dict[int, Any], events: EventRecord, locked_write: Value) -> dict[int, Any]:
        """Registers at fixed addresses: address to value."""
        own = {"locked_write": locked_write, "violation": events.first.valid}

        def collect(layout: data.StructLayout) -> Value:
            return Cat(own[name] if name in own else getattr(self, name) for name in layout.members)

        settings = (regs.ARBITER, regs.THRESHOLDS, regs.WATCHDOG, regs.IRQ_ENABLE, regs.LOCK)
        return {
            regs.ID: regs.ID_VALUE,
            regs.VERSION: regs.Version.const(regs.HARDWARE_VERSION),
            regs.CAPABILITY: regs.Capability.const(_capability(self._config)),
            regs.CAPABILITY_TRACKER: regs.CapabilityTracker.const(_capability_tracker(self._config)),
            regs.STATUS: collect(regs.Status),
            regs.ERRORS: collect(regs.Errors),
            **{address: stored[address] for address in settings},
            regs.THRESHOLD: Cat(self.threshold, self.chosen),
            regs.IRQ_STATUS: events.irq,
            regs.NMC_FLAGS: events.flags,
            regs.VIOLATION: events.first,
            regs.VIOLATIONS: events.count,
            regs.PEAK_ENTRIES: self.peak_entries, regs.OVERFLOWED: self.overflowed, regs.STUCK: self.stuck,
            regs.DEBUG_DATA: self.debug_data, regs.UPDATES: self.updates, regs.TILES: self.tiles,
            regs.TRIGGERS: self.triggers, regs.COMMAND_STALL: self.command_stall,
            regs.PEAK_READY: self.peak_ready, regs.DONE_MASK: self.done_mask, regs.POISONED: self.poisoned,
        }  # fmt: skip


def _capability(config: T3Config) -> dict[str, int]:
    """The fields of CAPABILITY."""
    names = ("slices", "ranges", "contexts", "descriptors", "chunk_window", "blocks", "wavefronts", "egress_ports")
    dtypes = sum(1 << Dtype[name.upper()] for name in config.dtypes)
    flags = {"dtypes": dtypes, "protect": int(config.protect), "performed": int(config.count_on == "performed")}
    return {name: getattr(config, name) for name in names} | flags


def _capability_tracker(config: T3Config) -> dict[str, int]:
    """The fields of CAPABILITY_TRACKER."""
    names = ("row_index_bits", "tile_count_bits", "chunk_count_bits", "token_queue", "event_queue", "nmc_latency")
    tracker = {"sets": config.tracker_sets, "ways": config.tracker_ways, "banks": config.tracker_banks}
    return {name: getattr(config, name) for name in names} | tracker
