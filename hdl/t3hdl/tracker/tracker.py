"""The tracker: counts the updates of every tile and chunk, and reports each completion once."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Fragment, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import wiring

from ..common.broadcast import ControlPulses, control_pulses, written
from ..common.choose import chosen, popcount, sum_of
from ..common.state_parity import under_state_parity
from ..config import T3Config
from ..interface import register_map as regs
from ..interface.layouts import EventKind
from ..interface.signatures import tracker_signature
from .bank import TrackerBank
from .chunk_counters import ChunkCounters, counted_layout
from .entry_table import tile_of
from .event_queue import Event
from .event_turns import EventTurns
from .faults import TrackerFaults
from .live_slots import LiveSlots
from .maintenance import Maintenance
from .open_tiles import OpenTiles
from .tile_profile import TileProfile, profile_name
from .way_quotas import WayQuotas


class Tracker(wiring.Component):
    """Counts tokens per wavefront tile in banks, and per chunk; gives each completion exactly once.

    Parameters
    ----------
    config : the hardware configuration.

    Members
    -------
    token : In(stream(Token)).array(banks) : bank (row XOR col XOR wf) mod banks takes the tokens of a tile.
    load_valid, load : In : pulse; makes a chunk live.
    now : In : timestamp.
    config_valid, config : In : configuration writes (PROFILE, QUOTA, CONTROL, DEBUG_SELECT).
    tile_done_valid, tile_done : Out : pulse; a tile got as many lines as its threshold.
    chunk_done_valid, chunk_done : Out : pulse; a chunk got all its lines.
    init_done : Out(1) : the tables are written, tokens are taken.
    entries, peak_entries : Out(16) : tile entries in use a cycle ago; at most since the last disarm (a cycle later).
    overflowed : Out(7) : chunks with lines counted without a tile entry, since the last disarm.
    unmatched, over_count, over_total : Out(1) : sticky errors, cleared by a disarm.
    maintenance : Out(1) : an arm, an abort or a debug read goes through the tables; no token is counted.
    abort_busy : Out(1) : tokens of the aborted context are being dropped.
    debug_data : Out(64) : :data:`~t3hdl.interface.register_map.DebugData`, the entry that DEBUG_SELECT named.
    updates, tiles : Out : updates counted, tiles completed, since the last disarm.
    poison_valid, poison_slot : Out : pulse; the count of this slot can no longer be trusted.
    corrected, uncorrectable : Out(1) : sticky; an error was corrected, was uncorrectable. Cleared by a disarm.
    idle, wake_at : Out : rule 5 of docs/hardware/rules.md; ``wake_at`` is the end of an abort.

    Latency: 7 cycles from ``token`` to ``tile_done`` in an empty bank. Throughput: one token per bank and cycle; one
    event per cycle, which is a finished tile, or all lines without an entry of a chunk, added up while they wait.
    Reset: 0; ``init_done`` after sets / banks cycles. A disarm does the same and keeps profile and quotas.

    A count with an uncorrectable error is dropped: the tile and the chunk complete late or never. A wrong
    bit in a register that has only a part in a parity poisons every slot.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__(tracker_signature(config))
        self._parameters = config

    @property
    def parameters(self) -> T3Config:
        """The hardware configuration (``config`` is the port of the configuration writes)."""
        return self._parameters

    @property
    def latency(self) -> int:
        """Cycles from the token that completes a tile to ``tile_done`` in an empty bank."""
        return 7

    def elaborate(self, platform: Any) -> Module | Fragment:
        """With ``protect`` a parity watches the registers that have no check bits of their own."""
        return under_state_parity(self._parts, platform, protect=self._parameters.protect)

    def _parts(self, damaged: Value) -> Module:
        """Profile and quotas stay outside the part that a disarm resets."""
        m, core = Module(), Module()
        config = self._parameters
        control = control_pulses(m, self.config_valid, self.config)
        m.submodules.profile = profile = TileProfile(config=config)
        m.submodules.quotas = quotas = WayQuotas(config=config)
        for part in (profile, quotas):
            m.d.comb += [part.config_valid.eq(self.config_valid), part.config.eq(self.config)]
        m.submodules.core = ResetInserter(control.disarm)(core)

        core.submodules.slots = slots = LiveSlots(config=config)
        core.submodules.counters = counters = ChunkCounters(config=config)
        core.submodules.maintenance = maintenance = Maintenance(config=config)
        banks = [TrackerBank(config=config) for _ in self.token]
        for b, bank in enumerate(banks):
            core.submodules[f"bank_{b}"] = bank
            wiring.connect(core, wiring.flipped(self.token[b]), bank.token)
            core.d.comb += [
                slots.tile[b].eq(bank.tile),
                bank.match.eq(slots.match[b]),
                slots.slot[b].eq(bank.slot),
                bank.detail.eq(slots.detail[b]),
                profile.name[b].eq(profile_name(bank.tile)),
                profile.read[b].eq(bank.read),
                bank.lines.eq(profile.found[b]),
                *(quota.eq(ways) for quota, ways in zip(bank.quotas, quotas.ways, strict=True)),
            ]
        removes = control.arm | control.abort
        for part, load_valid in ((slots, self.load_valid), (counters, slots.loads)):
            core.d.comb += [part.load_valid.eq(load_valid), part.load.eq(self.load)]
        done = Signal(config.chunk_window, name="done_slots")
        core.d.comb += done.eq(Mux(counters.chunk_done_valid, 1 << counters.chunk_done.slot, 0))
        for bank in banks:
            core.d.comb += [
                bank.live.eq(slots.live),
                bank.ends.eq(slots.ends),
                bank.complete.eq(counters.complete_slots),
                bank.done.eq(done),
            ]
        core.submodules.open_tiles = open_tiles = OpenTiles(config=config)
        core.d.comb += [
            open_tiles.opens.eq(Cat(bank.opens for bank in banks)),
            open_tiles.closes.eq(Cat(bank.closes for bank in banks)),
            *(slot.eq(bank.slot_in_e) for slot, bank in zip(open_tiles.slot, banks, strict=True)),
            open_tiles.load_valid.eq(slots.loads),
            open_tiles.load_slot.eq(self.load.slot),
            open_tiles.done.eq(done & slots.live),
            open_tiles.complete.eq(counters.complete_slots),
            counters.excess.eq(open_tiles.excess | Cat(bank.excess for bank in banks).any()),
            slots.retire.eq(removes),
            slots.retired.eq(control.context),
            slots.finish.eq(counters.chunk_done_valid),
            slots.finished.eq(counters.chunk_done.slot),
        ]
        self._maintain(core, control, maintenance, banks)
        drained = self._count_events(core, banks, slots, counters)
        damage = profile.damaged | quotas.damaged
        fault_pending = self._faults(core, banks, slots, counters, damage, damaged) if config.protect else Const(0)
        # `open_tiles.busy` makes no difference here, but a port that nothing uses is dropped, and the clock gates of
        # the simulation need it.
        self._report(core, banks, counters, maintenance, drained | fault_pending | open_tiles.busy)
        return m

    def _maintain(self, m: Module, control: ControlPulses, walker: Maintenance, banks: list[TrackerBank]) -> None:
        """Sweeps and debug reads; dropping of tokens that are in flight after an abort."""
        debug_read = written(self.config_valid, self.config, regs.DEBUG_SELECT)
        walker.take(m, control)
        m.d.comb += [
            walker.debug_read.eq(debug_read),
            walker.select.eq(self.config.data),
            walker.drained.eq(Cat(bank.drained for bank in banks).all()),
            walker.now.eq(self.now),
            *(getattr(self, name).eq(getattr(walker, name)) for name in ("init_done", "maintenance", "abort_busy")),
            self.wake_at.eq(walker.abort_until),
        ]
        for bank in banks:
            m.d.comb += [
                bank.halt.eq(walker.maintenance),
                bank.dropping.eq(control.abort | walker.abort_busy),
                bank.dropped.eq(Mux(control.abort, control.context, walker.purged)),
                *(bank.walk[name].eq(getattr(walker, name)) for name in ("clear", "purge", "read")),
                bank.walk.context.eq(walker.purged),
                bank.read_row.eq(walker.read_row),
                bank.write_row.eq(walker.write_row),
                bank.cleared_marks.eq(walker.marks),
                bank.way.eq(walker.selected_entry.way),
            ]
        debug = Signal(regs.DebugData)
        rows = self._parameters.sets_per_bank
        with m.If(debug_read):
            m.d.sync += debug.eq(0)
        with m.Elif(walker.found):
            m.d.sync += debug.ready.eq(1)
            with m.Switch(walker.selected_entry.bank & (len(banks) - 1)):
                for b, bank in enumerate(banks):
                    tag = bank.entry.tag
                    row, col = tile_of(self._parameters, tag, b, walker.selected_entry.row)
                    with m.Case(b), m.If(bank.entry.valid & (walker.selected_entry.row < rows)):
                        m.d.sync += [
                            debug.valid.eq(1),
                            debug.row.eq(row),
                            debug.col.eq(col),
                            debug.count.eq(bank.entry.count),
                            *(debug[name].eq(tag[name]) for name in ("context", "epoch", "wf")),
                        ]
        m.d.comb += self.debug_data.eq(debug)

    def _count_events(self, m: Module, banks: list[TrackerBank], slots: LiveSlots, counters: ChunkCounters) -> Value:
        """One finished tile, or the pending lines of one slot, per cycle; counted in the next cycle. Returns whether
        something waits to be counted."""
        m.submodules.turns = turns = EventTurns(config=self._parameters)
        event, valid = Signal(counted_layout(self._parameters), name="drained_event"), Signal(name="drained_valid")
        damaged, tile, total = Signal(name="drained_damaged"), Signal(Event, name="tile"), Signal.like(event.lines)
        pending = reduce(or_, (bank.pending for bank in banks))
        m.d.comb += [
            turns.events.eq(Cat(bank.event_valid for bank in banks)),
            turns.pending.eq(pending),
            turns.ends.eq(slots.ends),
            *(bank.event_taken.eq(taken) for bank, taken in zip(banks, turns.taken, strict=True)),
            tile.eq(chosen(turns.taken, [bank.event for bank in banks])),
            total.eq(sum_of([bank.total for bank in banks])),
            counters.event_valid.eq(valid),
            counters.event.eq(event),
            counters.event_damaged.eq(damaged),
        ]
        for bank in banks:
            m.d.comb += [bank.collect.eq(turns.collect), bank.collected.eq(turns.slot)]
        m.d.sync += valid.eq(turns.taken.any() | turns.collect)
        with m.If(turns.taken.any() | turns.collect):
            m.d.sync += [
                *(event[name].eq(tile[name]) for name in ("row", "col", "wf")),
                event.kind.eq(Mux(turns.collect, EventKind.OVERFLOW, EventKind.TILE)),
                event.slot.eq(Mux(turns.collect, turns.slot, tile.slot)),
                event.lines.eq(Mux(turns.collect, total, tile.lines)),
                damaged.eq(Cat(bank.total_damaged for bank in banks).any()),
            ]
        return valid | turns.waiting | pending.any()

    def _faults(
        self, m: Module, banks: list[TrackerBank], slots: LiveSlots, counters: ChunkCounters, damage: Value, lost: Value
    ) -> Value:
        """Collects what ``protect`` finds; returns whether that changes something in the next cycle."""
        m.submodules.faults = faults = TrackerFaults(config=self._parameters)
        parts: list[Any] = [*banks, counters]
        for slot_error, part in zip(faults.slot_error, parts, strict=True):
            m.d.comb += [slot_error.valid.eq(part.poison), slot_error.slot.eq(part.poison_slot)]
        m.d.comb += [
            faults.damaged.eq(slots.damaged | counters.damaged),
            faults.lost.eq(lost),
            faults.corrected.eq(Cat(part.corrected for part in parts).any()),
            faults.uncorrectable.eq(damage | Cat(part.uncorrectable for part in parts).any()),
            faults.loading.eq(Mux(counters.load_valid, 1 << self.load.slot, 0)),
            self.corrected.eq(faults.corrected_sticky),
            self.uncorrectable.eq(faults.uncorrectable_sticky),
            self.poison_valid.eq(faults.poison_valid),
            self.poison_slot.eq(faults.poison_slot),
        ]
        return faults.busy

    def _report(
        self, m: Module, banks: list[TrackerBank], counters: ChunkCounters, walker: Maintenance, pending: Value
    ) -> None:
        """Pulses, status, and ``idle``: nothing in the pipelines, no pulse to take back, the peak up to date."""
        for name in (
            "tile_done_valid", "tile_done", "chunk_done_valid", "chunk_done", "tiles", "overflowed", "over_total",
        ):  # fmt: skip
            m.d.comb += getattr(self, name).eq(getattr(counters, name))
        begun = Signal(len(banks), name="begun")
        ended = Signal(len(banks) * self._parameters.tracker_ways, name="ended")
        busy = Cat(*(bank.busy for bank in banks), counters.busy, pending, begun, ended).any()
        higher = self.entries > self.peak_entries
        m.d.comb += self.idle.eq(walker.init_done & ~walker.maintenance & ~busy & ~higher)
        m.d.sync += [
            begun.eq(Cat(bank.allocated for bank in banks)),
            ended.eq(Cat(bank.freed for bank in banks)),
            self.entries.eq(self.entries + popcount(begun) - popcount(ended)),
            self.peak_entries.eq(Mux(higher, self.entries, self.peak_entries)),
            self.unmatched.eq(self.unmatched | Cat(bank.unmatched for bank in banks).any()),
            self.over_count.eq(self.over_count | Cat(bank.over_count for bank in banks).any()),
            self.updates.eq(sum_of([self.updates, *(Mux(bank.counts, bank.amount, 0) for bank in banks)])),
        ]
