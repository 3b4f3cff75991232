"""The tracker: counts the updates of every tile and chunk, and says once when one is complete."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import wiring

from .broadcast import control_pulses
from .choose import RoundRobin, index_of
from .chunk_counters import ChunkCounters
from .config import T3Config
from .layouts import NEVER
from .live_slots import LiveSlots
from .signatures import tracker_signature
from .tile_profile import TileProfile, profile_name
from .tracker_bank import TrackerBank


class Tracker(wiring.Component):
    """Counts tokens per wavefront tile in banks, and per chunk; gives each completion exactly once.

    Parameters
    ----------
    config : the hardware configuration.

    Members
    -------
    token : In(stream(Token)).array(banks) : bank (row XOR col) mod banks takes the tokens of a tile.
    load_valid, load : In : pulse; makes a chunk live.
    config_valid, config : In : configuration writes (PROFILE, CONTROL).
    tile_done_valid, tile_done : Out : pulse; a tile got as many lines as its threshold.
    chunk_done_valid, chunk_done : Out : pulse; a chunk got all its lines.
    init_done : Out(1) : the tables are written, tokens are taken.
    entries, peak_entries : Out(16) : tile entries in use now, and at most since the last disarm (a cycle later).
    overflowed : Out(7) : chunks with lines counted without a tile entry, since the last disarm.
    unmatched, over_count, over_total : Out(1) : sticky errors, cleared by a disarm.
    idle, wake_at : Out : rule 5 of docs/hardware.md; ``wake_at`` is ``NEVER``.

    Latency: 5 cycles from ``token`` to ``tile_done`` in an empty bank. Throughput: one token per bank and cycle, one
    event (finished tile, or token without an entry) per cycle. Reset: 0; ``init_done`` after sets / banks cycles.
    A disarm does the same and keeps the profile.
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
        return 5

    def elaborate(self, platform: Any) -> Module:
        """The profile stays outside the part that a disarm resets."""
        m, core = Module(), Module()
        control = control_pulses(m, self.config_valid, self.config)
        m.submodules.profile = profile = TileProfile(config=self._parameters)
        m.d.comb += [profile.config_valid.eq(self.config_valid), profile.config.eq(self.config)]
        m.submodules.core = ResetInserter(control.disarm)(core)

        core.submodules.slots = slots = LiveSlots(config=self._parameters)
        core.submodules.counters = counters = ChunkCounters(config=self._parameters)
        banks = [TrackerBank(config=self._parameters) for _ in self.token]
        clear_row = self._walker(core)
        for b, bank in enumerate(banks):
            core.submodules[f"bank_{b}"] = bank
            wiring.connect(core, wiring.flipped(self.token[b]), bank.token)
            core.d.comb += [
                slots.tile[b].eq(bank.tile),
                bank.match.eq(slots.match[b]),
                slots.read[b].eq(bank.read),
                bank.detail.eq(slots.detail[b]),
                profile.name[b].eq(profile_name(bank.tile)),
                profile.read[b].eq(bank.read),
                bank.lines.eq(profile.lines[b]),
                bank.clear.eq(~self.init_done),
                bank.clear_row.eq(clear_row),
            ]
        for part in (slots, counters):
            core.d.comb += [part.load_valid.eq(self.load_valid), part.load.eq(self.load)]
        self._count_events(core, banks, counters)
        self._report(core, banks, counters)
        return m

    def _walker(self, m: Module) -> Value:
        """Names one row per cycle after reset, for all banks; ``init_done`` follows the last one."""
        last = self._parameters.sets_per_bank - 1
        row = Signal(range(last + 1))
        with m.If(~self.init_done):
            m.d.sync += [row.eq(row + 1), self.init_done.eq(row == last)]
        return row

    def _count_events(self, m: Module, banks: list[TrackerBank], counters: ChunkCounters) -> None:
        """One event per cycle, the banks take turns."""
        m.submodules.turn = turn = RoundRobin(requesters=len(banks))
        m.d.comb += [
            turn.requests.eq(Cat(bank.event.valid for bank in banks)),
            turn.take.eq(1),
            counters.event_valid.eq(turn.requests.any()),
        ]
        m.d.comb += [bank.event.ready.eq(granted) for bank, granted in zip(banks, turn.grant, strict=True)]
        with m.Switch(index_of(turn.grant)):
            for b, bank in enumerate(banks):
                with m.Case(b):
                    m.d.comb += counters.event.eq(bank.event.payload)

    def _report(self, m: Module, banks: list[TrackerBank], counters: ChunkCounters) -> None:
        """Pulses, status, and ``idle``: nothing in the pipelines, no pulse to take back, the peak up to date."""
        for name in (
            "tile_done_valid", "tile_done", "chunk_done_valid", "chunk_done", "overflowed", "over_total",
        ):  # fmt: skip
            m.d.comb += getattr(self, name).eq(getattr(counters, name))
        busy = Cat(*(bank.busy for bank in banks), counters.busy).any()
        higher = self.entries > self.peak_entries
        m.d.comb += [self.idle.eq(self.init_done & ~busy & ~higher), self.wake_at.eq(NEVER)]
        m.d.sync += [
            self.entries.eq(self.entries + sum(bank.allocated for bank in banks) - sum(bank.freed for bank in banks)),
            self.peak_entries.eq(Mux(higher, self.entries, self.peak_entries)),
            self.unmatched.eq(self.unmatched | Cat(bank.unmatched for bank in banks).any()),
            self.over_count.eq(self.over_count | Cat(bank.over_count for bank in banks).any()),
        ]
