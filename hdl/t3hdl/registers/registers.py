"""The register file that software sees: request and response port in, broadcast configuration writes out."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Array, Cat, Const, Fragment, Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from ..common.state_parity import under_state_parity
from ..config import T3Config
from ..interface import register_map as regs
from ..interface.layouts import NEVER, PROFILE_WAVEFRONTS, Dtype, Op
from ..interface.signatures import registers_signature
from ..interface.words import WORD_BYTES
from .abort_state import AbortState
from .addresses import BROADCAST, address_bits, bits_of, index_in, is_aligned, is_within
from .barred_epochs import BarredEpochs
from .events import EventRecord
from .locks import ConfigurationLocks


@dataclass(frozen=True)
class _Tables:
    """Whether the address of the request is a register of one of the tables."""

    range: Signal
    quota: Signal
    context: Signal
    profile: Signal
    descriptor: Signal


@dataclass(frozen=True)
class _Writes:
    """The write that is taken. ``good``: by address (of a table: its first), whether it is done, and writes there; at
    most one bit of all. ``hit_lock``: it is refused because the register is locked."""

    good: dict[int, Signal]
    hit_lock: Signal


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
    violations, violation, stale_updates, stale_update, nmc_flags : In : events of this cycle.
    pending : In : a bit per context; some slice has tracked accesses of it.
    corrected, uncorrectable : In(1) : some part had an error that was corrected, or was not. Inputs without a word
        here: what the part of that name shows.
    nmc_uncorrectable : In(1) : pulse; an NMC unit had a wrong bit.
    idle, wake_at : Out : rule 5 of docs/hardware/rules.md; ``wake_at`` is ``NEVER``.

    Latency: a request taken at t has its response, and its ``config`` pulse, at t+1. Throughput: one request
    per two cycles. ``response_error`` and ``response_data`` mean nothing while ``response_valid`` is 0. Reset:
    docs/hardware/registers.md, which also says which requests are errors.
    """

    def __init__(self, *, config: T3Config) -> None:
        self._config = config
        super().__init__(registers_signature(config))

    @property
    def latency(self) -> int:
        """Cycles from a request to its response and configuration write."""
        return 1

    def elaborate(self, platform: Any) -> Module | Fragment:
        """With ``protect`` a parity watches every register."""
        return under_state_parity(self._parts, platform, protect=self._config.protect)

    def _parts(self, damaged: Value) -> Module:
        """Decode, judge, answer; then what the good writes do."""
        m = Module()
        m.submodules.locks = locks = ConfigurationLocks(config=self._config)
        m.submodules.events = events = EventRecord(contexts=self._config.contexts)
        m.submodules.aborts = aborts = AbortState(contexts=self._config.contexts)
        m.submodules.epochs = epochs = BarredEpochs(contexts=self._config.contexts)
        taken, locked_write = Signal(), Signal()
        tables = self._decode_tables(m)
        lock = Signal(regs.Lock, name="lock")
        m.d.comb += taken.eq(self.bus_valid & self.bus_ready)
        m.d.comb += epochs.attributes.eq(self.bus_data)
        writes = self._check_write(m, taken, tables, locks, aborts, lock, epochs.barred)
        stored = self._stored_registers(m, writes, lock)
        readings = self._readable(stored, events, aborts, locked_write)
        read_value, readable = self._read(m, readings, tables, stored, aborts)

        m.d.comb += [
            self.bus_ready.eq(~self.response_valid),
            self.interrupt.eq((events.irq.as_value() & stored[regs.IRQ_ENABLE]).any()),
            self.idle.eq(aborts.settled & ~Cat(self.response_valid, events.busy, events.news, damaged).any()),
            self.wake_at.eq(NEVER),
        ]
        broadcast = Cat(good for address, good in writes.good.items() if address in BROADCAST).any()
        m.d.sync += [self.response_valid.eq(taken), self.config_valid.eq(broadcast)]
        with m.If(taken):
            m.d.sync += [
                self.response_error.eq(Mux(self.bus_write, ~Cat(writes.good.values()).any(), ~readable)),
                self.response_data.eq(Mux(self.bus_write, 0, read_value)),
                self.config.address.eq(self.bus_address & address_bits(self._config)),
                self.config.data.eq(self.bus_data),
            ]
        m.d.comb += events.damaged.eq(damaged | self.nmc_uncorrectable)
        self._follow(m, writes, locks, events, aborts)
        self._follow_epochs(m, writes, locks, epochs)
        m.d.sync += locked_write.eq((locked_write | writes.hit_lock) & ~events.clear_refusals)
        return m

    def _is(self, address: int) -> Value:
        return self.bus_address == address

    def _is_single(self) -> Value:
        """Whether the address may be that of a readable register of no table: these come first, 32 at most."""
        return is_aligned(self.bus_address) & (self.bus_address[bits_of(regs.RANGE) :] == 0)

    def _decode_tables(self, m: Module) -> _Tables:
        """Table addresses exist as far as this configuration reaches."""
        address, config = self.bus_address, self._config
        aligned = is_aligned(address)
        tables = _Tables(*(Signal(name=f"in_{name}") for name in _Tables.__dataclass_fields__))
        small = index_in(address, regs.QUOTA_STRIDE, regs.QUOTA_COUNT) < config.contexts
        wf = index_in(address, regs.PROFILE_STRIDE, PROFILE_WAVEFRONTS)
        m.d.comb += [
            tables.range.eq(
                aligned
                & is_within(address, regs.RANGE, regs.RANGE_COUNT * regs.RANGE_STRIDE)
                & (index_in(address, regs.RANGE_STRIDE, regs.RANGE_COUNT) < config.ranges)
                & (index_in(address, WORD_BYTES, regs.RANGE_STRIDE // WORD_BYTES) < regs.RANGE_WORDS)
            ),
            tables.quota.eq(aligned & is_within(address, regs.QUOTA, regs.QUOTA_COUNT * regs.QUOTA_STRIDE) & small),
            tables.context.eq(
                aligned & is_within(address, regs.CONTEXT, regs.CONTEXT_COUNT * regs.CONTEXT_STRIDE) & small
            ),
            tables.profile.eq(
                aligned
                & is_within(address, regs.PROFILE, regs.PROFILE_COUNT * regs.PROFILE_STRIDE)
                & (wf < config.wavefronts)
            ),
            tables.descriptor.eq(
                aligned
                & is_within(address, regs.DESCRIPTOR, regs.DESCRIPTOR_COUNT * regs.DESCRIPTOR_STRIDE)
                & (index_in(address, regs.DESCRIPTOR_STRIDE, regs.DESCRIPTOR_COUNT) < config.descriptors)
                & (index_in(address, WORD_BYTES, regs.DESCRIPTOR_STRIDE // WORD_BYTES) < regs.DESCRIPTOR_WORDS)
            ),
        ]
        return tables

    def _check_write(
        self,
        m: Module,
        taken: Value,
        tables: _Tables,
        locks: ConfigurationLocks,
        aborts: AbortState,
        lock: data.View,
        barred: Value,
    ) -> _Writes:
        """What the write on the bus may do.

        A register's enable waits for what may refuse this very register, and not for the rest, which is slower.
        """
        singles = (address for address, access in regs.ACCESS.items() if "w" in access)
        addressed = {address: self._is(address) for address in singles} | {
            regs.RANGE: tables.range,
            regs.QUOTA: tables.quota,
            regs.PROFILE: tables.profile,
            regs.DESCRIPTOR: tables.descriptor,
        }
        locked = {address: lock.configuration for address in (regs.ARBITER, regs.THRESHOLDS, regs.WATCHDOG)} | {
            regs.RANGE: lock.configuration | locks.range_locked,
            regs.QUOTA: lock.configuration | locks.quota_locked,
            regs.PROFILE: lock.configuration | locks.active.any(),
            regs.TILE_MARKS: lock.configuration | locks.active.any(),
            regs.DESCRIPTOR: lock.configuration | locks.descriptor_locked,
        }
        allowed, hit_lock = Signal(), Signal()
        busy = self.maintenance | self.abort_busy
        refused = locked | {
            regs.CONTROL: self._check_control(m, allowed, locks, aborts, busy),
            regs.RANGE: locked[regs.RANGE] | self._bad_range(m, barred),
            regs.DEBUG_SELECT: ~self.init_done | busy,
        }
        m.d.comb += [
            allowed.eq(taken & self.bus_write & (self.bus_privileged | ~lock.privileged)),
            hit_lock.eq(allowed & Cat(addressed[address] & refuses for address, refuses in locked.items()).any()),
            locks.active.eq(Cat(context.armed & ~context.complete for context in self.context)),
            locks.range_index.eq(self.bus_address[5:7]),
            locks.descriptor.eq(self.bus_address[6:12]),
            locks.context.eq(self.bus_address[3:7]),
        ]
        good = {address: Signal(name=f"good_{address:x}") for address in addressed}
        m.d.comb += [
            each.eq(allowed & addressed[address] & ~refused.get(address, Const(0))) for address, each in good.items()
        ]
        return _Writes(good=good, hit_lock=hit_lock)

    def _bad_range(self, m: Module, barred: Value) -> Value:
        """Whether the data are attributes of a range in use with an operation that is no update's, of a context that
        there is not, or with an epoch that is ``barred``."""
        new, bad = data.View(regs.RangeAttributes, self.bus_data[: regs.RangeAttributes.size]), Signal(name="bad_range")
        is_attributes = self.bus_address[3:5] == regs.RANGE_WORDS - 1
        update = (new.op >= Op.STORE) & (new.op <= Op.MAX)
        bad_use = new.valid & (~update | (new.context >= self._config.contexts))
        m.d.comb += bad.eq(is_attributes & (bad_use | barred))
        return bad

    def _check_control(
        self, m: Module, allowed: Value, locks: ConfigurationLocks, aborts: AbortState, busy: Value
    ) -> Value:
        """Whether a write of CONTROL is refused; and what it does otherwise."""
        control = locks.control
        actions = [control[name] for name in ("arm", "disarm", "abort", "quiesce", "resume")]
        single, bad_arm, bad_abort, bad_disarm = Signal(), Signal(), Signal(), Signal()
        in_use = locks.active | self.pending[: len(locks.active)] | aborts.aborting
        unfinished = Cat(context.outstanding.any() for context in self.context)
        acts = allowed & self._is(regs.CONTROL) & single
        m.d.comb += [
            control.eq(self.bus_data),
            single.eq(sum(actions, start=Value.cast(0)) <= 1),
            bad_abort.eq((control.context >= self._config.contexts) | ~self.init_done | busy),
            bad_arm.eq(bad_abort | self.quiesced | locks.bad_window | (in_use >> control.context)[0]),
            bad_disarm.eq(~control.forced & (busy | in_use.any() | unfinished.any())),
            locks.arm.eq(acts & control.arm & ~bad_arm),
            locks.abort.eq(acts & control.abort & ~bad_abort),
            locks.disarm.eq(acts & control.disarm & ~bad_disarm),  # need not wait for the windows
        ]
        return ~single | (control.arm & bad_arm) | (control.abort & bad_abort) | (control.disarm & bad_disarm)

    def _stored_registers(self, m: Module, writes: _Writes, lock: data.View) -> dict[int, Any]:
        """The registers that can be read back, and what a good write does to them."""
        stored = {
            regs.ARBITER: Signal(regs.Arbiter, name="arbiter", init=regs.RESET[regs.ARBITER]),
            regs.THRESHOLDS: Signal(regs.Thresholds, name="thresholds", init=regs.RESET[regs.THRESHOLDS]),
            regs.WATCHDOG: Signal(32, name="watchdog"),
            regs.TILE_MARKS: Signal(3, name="tile_marks"),
            regs.IRQ_ENABLE: Signal(regs.Interrupts.size, name="irq_enable"),
            regs.LOCK: lock,
        }
        for address, register in stored.items():
            with m.If(writes.good[address]):
                kept = register.as_value() if address == regs.LOCK else 0  # a lock opens by reset alone
                m.d.sync += register.eq(self.bus_data | kept)
        quotas = [
            Signal(regs.Quota, name=f"quota_{c}", init=regs.RESET[regs.QUOTA]) for c in range(self._config.contexts)
        ]
        for c, quota in enumerate(quotas):
            with m.If(writes.good[regs.QUOTA] & (self.bus_address[3:7] == c)):
                m.d.sync += quota.eq(self.bus_data)
        return stored | {regs.QUOTA: Array(quotas)}

    def _follow(
        self, m: Module, writes: _Writes, locks: ConfigurationLocks, events: EventRecord, aborts: AbortState
    ) -> None:
        """Good writes change locks and sticky bits; what other parts show becomes events."""
        good, data_in = writes.good, self.bus_data
        m.d.comb += [
            locks.set_owner.eq(good[regs.RANGE] & (self.bus_address[3:5] == regs.RANGE_WORDS - 1)),
            locks.owner.eq(data_in),
            events.clear_irq.eq(Mux(good[regs.IRQ_STATUS], data_in, 0)),
            events.clear_flags.eq(Mux(good[regs.NMC_FLAGS], data_in, 0)),
            events.clear_refusals.eq(locks.disarm),
            events.locked_write.eq(writes.hit_lock),
            events.watchdog.eq(self.stuck.valid),
            events.error.eq(Cat(self.unmatched, self.over_count, self.over_total, self.too_large)),
            events.tile_twice.eq(self.tile_twice.valid),
            events.complete.eq(Cat(context.complete for context in self.context)),
            *(
                getattr(events, name).eq(getattr(self, name))
                for name in (
                    "corrected",
                    "violations",
                    "violation",
                    "stale_updates",
                    "stale_update",
                    "nmc_flags",
                )
            ),
            events.uncorrectable.eq(self.uncorrectable | events.damage),
            events.aborting.eq(aborts.aborting),
            aborts.abort.eq(locks.abort),
            aborts.disarm.eq(locks.disarm),
            aborts.context.eq(locks.control.context),
            aborts.tables_busy.eq(self.maintenance | self.abort_busy),
            aborts.in_flight.eq(
                Cat(
                    pending | context.outstanding.any()
                    for pending, context in zip(self.pending, self.context, strict=False)
                )
            ),
        ]

    def _follow_epochs(self, m: Module, writes: _Writes, locks: ConfigurationLocks, epochs: BarredEpochs) -> None:
        """Which jobs begin, which are dropped, and which are complete."""
        for c, context in enumerate(self.context):
            named = locks.control.context == c
            dropped = (locks.abort & named) | (locks.disarm & locks.control.forced)
            m.d.comb += [
                epochs.armed[c].eq(locks.arm & named),
                epochs.dropped[c].eq(dropped & locks.active[c]),
                epochs.complete[c].eq(context.armed & context.complete),
            ]
        m.d.comb += epochs.set_range.eq(locks.set_owner)

    def _read(
        self, m: Module, values: dict[int, Any], tables: _Tables, stored: dict[int, Any], aborts: AbortState
    ) -> tuple[Value, Value]:
        """The value of the register at the bus address, and whether it can be read."""
        value, readable = Signal(64, name="read_value"), Signal()
        with m.If(self._is_single()), m.Switch(index_in(self.bus_address, WORD_BYTES, regs.RANGE // WORD_BYTES)):
            for address, register in values.items():
                with m.Case(address // WORD_BYTES):
                    m.d.comb += [readable.eq(1), value.eq(register)]
        index = index_in(self.bus_address, regs.QUOTA_STRIDE, regs.QUOTA_COUNT)
        with m.If(tables.quota):
            m.d.comb += [readable.eq(1), value.eq(stored[regs.QUOTA][index])]
        with m.If(tables.context), m.Switch(index):
            for c, context in enumerate(self.context):
                with m.Case(c):
                    m.d.comb += [readable.eq(1), value.eq(Cat(context, self.pending[c], aborts.aborting[c]))]
        return value, readable

    def _readable(
        self, stored: dict[int, Any], events: EventRecord, aborts: AbortState, locked_write: Value
    ) -> dict[int, Any]:
        """Registers at fixed addresses: address to value."""
        own = {
            "locked_write": locked_write, "violation": events.first_violation.valid,
            "stale_update": events.first_stale.valid, "tile_twice": self.tile_twice.valid,
            "abort_busy": self.abort_busy | aborts.aborting.any(),
            "uncorrectable": self.uncorrectable | events.damage,
        }  # fmt: skip

        def collect(layout: data.StructLayout) -> Value:
            return Cat(own[name] if name in own else getattr(self, name) for name in layout.members)

        settings = (regs.TILE_MARKS, regs.ARBITER, regs.THRESHOLDS, regs.WATCHDOG, regs.IRQ_ENABLE, regs.LOCK)
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
            regs.VIOLATION: events.first_violation,
            regs.VIOLATIONS: events.violation_count,
            regs.STALE_UPDATE: events.first_stale,
            regs.STALE_UPDATES: events.stale_count,
            regs.TILE_TWICE: self.tile_twice,
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
    tracker["tile_marks_log"] = config.tile_marks.bit_length() - 1
    return {name: getattr(config, name) for name in names} | tracker
