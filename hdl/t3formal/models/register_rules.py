"""Which requests the registers must refuse, straight from docs/hardware: one named rule after another."""

from collections.abc import Iterable
from dataclasses import dataclass

from amaranth.hdl import Cat, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import EPOCH_BITS, Op
from t3hdl.registers.registers import ControlRegisters

from ..prover.harness import Harness

_ACTIONS = ("arm", "disarm", "abort", "quiesce", "resume")
_FIRST_RULES = ("an address that takes no writes", "an unprivileged write under LOCK.privileged")
"""Who breaks these does not set ``locked_write``."""
_SETTINGS = (regs.TILE_MARKS, regs.ARBITER, regs.THRESHOLDS, regs.WATCHDOG)


Barred = data.StructLayout({"some": 1, "first": EPOCH_BITS, "last": EPOCH_BITS})
"""The epochs from ``first`` up to ``last``, past 255 at 0, if there are some."""


def is_barred(epoch: Value, barred: data.View) -> Value:
    """Whether the epoch is one of these."""
    from_first, to_last = epoch >= barred.first, epoch <= barred.last
    return barred.some & Mux(barred.first <= barred.last, from_first & to_last, from_first | to_last)


def wider(barred: data.View, epoch: Value) -> data.View:
    """These epochs with another one, and those on the way to it: downwards from the first, if that is shorter than
    upwards from the last."""
    up, down = (epoch - barred.last)[:EPOCH_BITS], (barred.first - epoch)[:EPOCH_BITS]
    alone, downwards = ~barred.some, down < up
    first = Mux(alone | downwards, epoch, barred.first)
    return data.View(Barred, Cat(1, first, Mux(~alone & downwards, barred.last, epoch)))


@dataclass(frozen=True)
class Tables:
    """The addresses of the tables' registers, as far as a configuration has them."""

    ranges: tuple[int, ...]
    quotas: tuple[int, ...]
    contexts: tuple[int, ...]
    profile: tuple[int, ...]
    descriptors: tuple[int, ...]


def tables(config: T3Config) -> Tables:
    """The addresses that exist in this configuration."""
    return Tables(
        ranges=_words(regs.RANGE, regs.RANGE_STRIDE, config.ranges, regs.RANGE_WORDS),
        quotas=_words(regs.QUOTA, 8, config.contexts, 1),
        contexts=_words(regs.CONTEXT, 8, config.contexts, 1),
        profile=tuple(regs.PROFILE + 8 * (16 * edges + wf) for edges in range(4) for wf in range(config.wavefronts)),
        descriptors=_words(regs.DESCRIPTOR, regs.DESCRIPTOR_STRIDE, config.descriptors, regs.DESCRIPTOR_WORDS),
    )


def _words(base: int, stride: int, number: int, words: int) -> tuple[int, ...]:
    return tuple(base + stride * i + 8 * w for i in range(number) for w in range(words))


class RegisterRules:
    """The rules for the request on the bus of ``registers``, and what they have to remember of earlier ones.

    Attributes
    ----------
    writes, reads : the rules by name; each a bit that is 1 if the request on the bus breaks it.
    refused, locked : whether a request is an error; whether it is one that sets ``locked_write``.
    broadcast : whether it is a write for the parts.
    windows : per context the descriptors of its last arm, as a mask.
    owners : per range a mask with the bit of the context that it was given to, 0 if to none.
    epochs, job_epochs : per context the epoch of its last range in use; that of its last job.
    barred : per context the epochs that no range may have: those of jobs that were aborted, or dropped by a disarm, and
        those between them (see :func:`wider`), until another one is complete.
    aborting : the contexts that are being aborted. An abort begins when it is taken, and is over after a cycle in which
        nothing of the context is in flight, and no abort was taken in the one before, which nobody would know of yet.
    nothing_in_flight : per context, whether an abort of it may be over.
    """

    def __init__(self, harness: Harness, registers: ControlRegisters, config: T3Config) -> None:
        self._registers, self._config, self._tables, self._m = registers, config, tables(config), harness.m
        self._control = Signal(regs.Control)
        self.windows = [Signal(config.descriptors, name=f"window_model_{c}") for c in range(config.contexts)]
        self.owners = [Signal(16, name=f"owner_model_{i}") for i in range(config.ranges)]
        self.epochs = [Signal(EPOCH_BITS, name=f"epoch_model_{c}") for c in range(config.contexts)]
        self.job_epochs = [Signal(EPOCH_BITS, name=f"job_epoch_model_{c}") for c in range(config.contexts)]
        self.barred = [Signal(Barred, name=f"barred_model_{c}") for c in range(config.contexts)]
        self.lock = Signal(regs.Lock, name="lock_model")
        self.aborting, self.begun = Signal(config.contexts, name="aborting_model"), Signal(name="abort_begun")
        self._attributes = Signal(regs.RangeAttributes, name="new_attributes")
        harness.m.d.comb += [self._control.eq(registers.bus_data), self._attributes.eq(registers.bus_data)]
        self._active = [context.armed & ~context.complete for context in registers.context]
        self._unfinished = [context.outstanding != 0 for context in registers.context]
        tables_busy = registers.maintenance | registers.abort_busy | self.begun
        self.nothing_in_flight = [
            ~tables_busy & ~registers.pending[c] & ~unfinished for c, unfinished in enumerate(self._unfinished)
        ]
        self.locked = self._name(harness, "locked", self._locked())
        self.writes = {
            "an address that takes no writes": ~self._at(self._writable()),
            "an unprivileged write under LOCK.privileged": self.lock.privileged & ~registers.bus_privileged,
            **{name: self._at([regs.CONTROL]) & broken for name, broken in self._control_rules().items()},
            "a range in use with an operation of no update, or a context that does not exist": self._bad_range(),
            "a range in use with the epoch of a job of its context that did not end": self._barred_epoch(),
            "DEBUG_SELECT when the tracker is busy": self._at([regs.DEBUG_SELECT]) & self._busy(),
            "a locked register": self.locked,
        }
        self.reads = {"an address that gives no reads": ~self._at(self._readable())}
        bad_write, bad_read = (Cat(value for value in rules.values()).any() for rules in (self.writes, self.reads))
        self.refused = self._name(harness, "refused", Mux(registers.bus_write, bad_write, bad_read))
        self.hits_lock = self._name(
            harness,
            "hits_lock",
            registers.bus_write & self.locked & ~Cat(self.writes[name] for name in _FIRST_RULES).any(),
        )
        self.broadcast = registers.bus_write & self._at(
            [regs.CONTROL, regs.DEBUG_SELECT, *_SETTINGS, *self._locked_tables()]
        )
        self._remember(harness)

    def _name(self, harness: Harness, name: str, value: Value) -> Signal:
        signal = Signal(name=f"rule_{name}")
        harness.m.d.comb += signal.eq(value)
        return signal

    def _at(self, addresses: Iterable[int]) -> Value:
        return Cat(self._registers.bus_address == address for address in addresses).any()

    def _locked_tables(self) -> tuple[int, ...]:
        t = self._tables
        return t.ranges + t.quotas + t.profile + t.descriptors

    def _writable(self) -> tuple[int, ...]:
        return tuple(address for address, how in regs.ACCESS.items() if "w" in how) + self._locked_tables()

    def _readable(self) -> tuple[int, ...]:
        single = (address for address, how in regs.ACCESS.items() if how != "w")
        return (*single, *self._tables.quotas, *self._tables.contexts)

    def _busy(self) -> Value:
        registers = self._registers
        return ~registers.init_done | registers.maintenance | registers.abort_busy

    def _range_in_use(self) -> Value:
        """Whether attributes are written with ``valid``."""
        return self._at(self._tables.ranges[regs.RANGE_WORDS - 1 :: regs.RANGE_WORDS]) & self._attributes.valid

    def _bad_range(self) -> Value:
        """Attributes of a range in use that no range may have."""
        new = self._attributes
        update = Cat(new.op == op for op in (Op.STORE, Op.ADD, Op.MIN, Op.MAX)).any()
        return self._range_in_use() & (~update | (new.context >= self._config.contexts))

    def _barred_epoch(self) -> Value:
        """Attributes of a range in use that its context may not have now."""
        new = self._attributes
        of_context = ((new.context == c) & is_barred(new.epoch, barred) for c, barred in enumerate(self.barred))
        return self._range_in_use() & Cat(of_context).any()

    def _wanted(self) -> Value:
        """The descriptors that an arm asks for, as a mask of those that exist."""
        first, after = self._control.first, self._control.first + self._control.descriptors
        return Cat((first <= d) & (after > d) for d in range(self._config.descriptors))

    def _control_rules(self) -> dict[str, Value]:
        registers, control, config, wanted = self._registers, self._control, self._config, self._wanted()
        mine = [control.context == c for c in range(config.contexts)]
        pending = [registers.pending[c] for c in range(config.contexts)]

        def named(of_contexts: Iterable[Value]) -> Value:
            return Cat(me & each for me, each in zip(mine, of_contexts, strict=True)).any()

        in_use = (*self._active, *pending, *self.aborting, *self._unfinished)
        under_way = registers.maintenance | registers.abort_busy | Cat(in_use).any()
        taken = Cat(
            active & ~me & (window & wanted).any()
            for me, active, window in zip(mine, self._active, self.windows, strict=True)
        ).any()
        return {
            "two actions in one write": sum((control[name] for name in _ACTIONS), start=Value.cast(0)) > 1,
            "arm or abort of a context that does not exist": (control.arm | control.abort) & ~Cat(mine).any(),
            "arm or abort when the tracker is busy": (control.arm | control.abort) & self._busy(),
            "arm of an active context": control.arm & named(self._active),
            "arm of a pending context": control.arm & named(pending),
            "arm of a context that is being aborted": control.arm & named(self.aborting),
            "disarm without force while something is under way": control.disarm & ~control.forced & under_way,
            "arm while quiesced": control.arm & registers.quiesced,
            "arm of no descriptors": control.arm & (control.descriptors == 0),
            "arm of descriptors that do not exist": control.arm
            & (control.first + control.descriptors > config.descriptors),
            "arm of descriptors of another active context": control.arm & taken,
        }

    def _locked(self) -> Value:
        t, active = self._tables, self._active
        ranges = [
            self._at(t.ranges[i * regs.RANGE_WORDS : (i + 1) * regs.RANGE_WORDS]) & (owner & Cat(active)).any()
            for i, owner in enumerate(self.owners)
        ]
        quotas = [self._at([address]) & is_active for address, is_active in zip(t.quotas, active, strict=True)]
        words = regs.DESCRIPTOR_WORDS
        descriptors = [
            self._at(t.descriptors[d * words : (d + 1) * words])
            & Cat(window[d] & is_active for window, is_active in zip(self.windows, active, strict=True)).any()
            for d in range(self._config.descriptors)
        ]
        everything = self._at((*_SETTINGS, *self._locked_tables()))
        of_all = self._at((regs.TILE_MARKS, *t.profile)) & Cat(active).any()
        return Cat(self.lock.configuration & everything, of_all, *ranges, *quotas, *descriptors).any()

    def _remember(self, harness: Harness) -> None:
        """What good writes change."""
        registers, control, data = self._registers, self._control, self._registers.bus_data
        good = Signal(name="rule_good_write")
        harness.m.d.comb += good.eq(registers.bus_valid & registers.bus_ready & registers.bus_write & ~self.refused)
        m, attributes = harness.m, self._attributes
        acts = good & self._at([regs.CONTROL])
        for c, window in enumerate(self.windows):
            with m.If(acts & control.disarm):
                m.d.sync += window.eq(0)
            with m.Elif(acts & control.arm & (control.context == c)):
                m.d.sync += window.eq(self._wanted())
        for address, owner in zip(
            self._tables.ranges[regs.RANGE_WORDS - 1 :: regs.RANGE_WORDS], self.owners, strict=True
        ):
            with m.If(good & self._at([address])):
                m.d.sync += owner.eq(Mux(attributes.valid, 1 << attributes.context, 0))
            with m.If(acts & control.abort):
                m.d.sync += owner.eq(owner & ~(1 << control.context))
            with m.If(acts & control.disarm & control.forced):
                m.d.sync += owner.eq(0)
        for c, context in enumerate(registers.context):
            drops = (control.abort & (control.context == c)) | (control.disarm & control.forced)
            with m.If(good & self._range_in_use() & (attributes.context == c)):
                m.d.sync += self.epochs[c].eq(attributes.epoch)
            with m.If(acts & control.arm & (control.context == c)):
                m.d.sync += self.job_epochs[c].eq(self.epochs[c])
            with m.If(context.armed & context.complete):
                m.d.sync += self.barred[c].some.eq(0)
            with m.Elif(acts & drops & context.armed & ~is_barred(self.job_epochs[c], self.barred[c])):
                m.d.sync += self.barred[c].as_value().eq(wider(self.barred[c], self.job_epochs[c]).as_value())
        with m.If(good & self._at([regs.LOCK])):
            m.d.sync += self.lock.eq(self.lock.as_value() | data)
        m.d.sync += self.begun.eq(acts & control.abort)
        for c, over in enumerate(self.nothing_in_flight):
            with m.If(acts & control.disarm):
                m.d.sync += self.aborting[c].eq(0)
            with m.Elif(acts & control.abort & (control.context == c)):
                m.d.sync += self.aborting[c].eq(1)
            with m.Elif(over):
                m.d.sync += self.aborting[c].eq(0)
