"""Self-testing designs whose hardware makes a mistake, chosen by an input more: ``mistake``, 0 for none."""

from amaranth.hdl import Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from t3fpga.selftest.selftest import SelfTest
from t3fpga.selftest.tracker.tracker_only_test import TrackerOnlyTest
from t3fpga.selftest.tracker.tracker_test import TrackerTest
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Op, TileDone


class Buggy(wiring.Component):
    """A design around which a later assignment wins: what one part says to another is changed."""

    def __init__(self, design):
        super().__init__({**design.signature.members, "mistake": In(4)})
        self.design = design

    def elaborate(self, platform):
        m = self.design.elaborate(platform)
        self.design._MustUse__used = True  # as Amaranth marks what it elaborates itself
        m.d.comb += self.design.button.eq(self.button)
        for name in ("running", "passed", "failed", "tx"):
            m.d.comb += getattr(self, name).eq(getattr(self.design, name))
        for number, (make, _) in enumerate(BUGS[type(self.design)].values(), 1):
            with m.If(self.mistake == number):
                make(m, self.design)
        return m


def _threshold(off):
    def make(m, design):
        config = design._registers.config
        with m.If((config.address >= regs.PROFILE) & (config.address < regs.DESCRIPTOR)):
            m.d.comb += design._tracker.config.data.eq(config.data + off)

    return make


def _tile_lost(m, design: TrackerTest):
    m.d.comb += design._trigger.tile_done_valid.eq(
        design._tracker.tile_done_valid & (design._tracker.tile_done.row[0] == 0)
    )


def _tile_twice(m, design: TrackerTest):
    again, before = Signal(), Signal(TileDone)
    m.d.sync += [again.eq(design._tracker.tile_done_valid), before.eq(design._tracker.tile_done)]
    with m.If(again & ~design._tracker.tile_done_valid):
        m.d.comb += [design._trigger.tile_done_valid.eq(1), design._trigger.tile_done.eq(before)]


def _update_twice(m, design):
    with m.If(design._tokens.address[:3] == 1):
        m.d.comb += design._tracker.token[0].payload.n.eq(2)


def _command(field, change):
    def make(m, design):
        given = design._trigger.command.payload if isinstance(design, TrackerTest) else design._unit.command.payload
        m.d.comb += design._commands.command.payload[field].eq(change(given[field]))

    return make


def _command_twice(m, design: TrackerTest):
    repeated = Signal()
    with m.If(design._commands.command.ready & ~repeated):
        m.d.comb += design._trigger.command.ready.eq(0)
        m.d.sync += repeated.eq(1)


def _command_dropped(m, design):
    """The trigger counts it, and hears that it is done; the checker never sees it."""
    source = design._trigger if isinstance(design, TrackerTest) else design._unit
    dropped, done = Signal(), Signal()
    m.d.comb += dropped.eq(source.command.valid & (source.command.payload.col != 0))
    m.d.sync += done.eq(dropped)
    with m.If(dropped):
        m.d.comb += [design._commands.command.valid.eq(0), source.command.ready.eq(1)]
    with m.If(done):
        m.d.comb += source.command_done_valid.eq(1)


TRACKER = {
    "threshold too low": (_threshold(-1), {"early", "status"}),
    "threshold too high": (_threshold(1), {"lost"}),
    # Its chunk is complete by its count, so no block waits, but commands are missing.
    "finished tile lost": (_tile_lost, {"lost", "timeout"}),
    # The trigger counts a tile once, and poisons its chunk: nothing of that is fired, early or late.
    "finished tile twice": (_tile_twice, {"timeout"}),
    # Some tiles come early; those that go past their threshold never do.
    "update counted twice": (_update_twice, {"early", "status", "lost"}),
    "command of another block": (_command("row", lambda row: row ^ 1), {"early", "twice"}),
    "command of another buffer": (_command("base", lambda base: base ^ 1), {"command"}),
    "command for another GPU": (_command("peer", lambda peer: peer + 1), {"command"}),
    "command with another operation": (_command("op", lambda op: op ^ 1), {"command"}),
    "command given twice": (_command_twice, {"twice"}),
    "command swallowed": (_command_dropped, {"missing"}),
}
"""What is done to tracker and trigger, and what the report may call it."""


def _tile_dropped(m, design: TrackerOnlyTest):
    # Of a chunk that three of the four GPUs track.
    done = design._tracker.tile_done
    with m.If((done.row[1:] == 1) & (done.col == 1)):
        m.d.comb += design._checker.tile_done_valid.eq(0)


def _tile_repeated(m, design: TrackerOnlyTest):
    again, before = Signal(), Signal(TileDone)
    m.d.sync += [again.eq(design._tracker.tile_done_valid), before.eq(design._tracker.tile_done)]
    with m.If(again & ~design._tracker.tile_done_valid):
        m.d.comb += [design._checker.tile_done_valid.eq(1), design._checker.tile_done.eq(before)]


def _tile_field(field):
    def make(m, design: TrackerOnlyTest):
        m.d.comb += design._checker.tile_done[field].eq(design._tracker.tile_done[field] ^ 1)

    return make


def _chunk_dropped(m, design: TrackerOnlyTest):
    with m.If(design._tracker.chunk_done.slot == 1):
        m.d.comb += design._checker.chunk_done_valid.eq(0)


def _chunk_early(m, design: TrackerOnlyTest):
    # By a tile: if the last one is smaller, the chunk never gets exactly what it waits for.
    m.d.comb += design._tracker.load.expected.eq(design._loader.load.expected - 8)


def _chunk_overflowed(m, design: TrackerOnlyTest):
    m.d.comb += design._checker.chunk_done.overflowed.eq(1)


ONLY = {
    "threshold too low": (_threshold(-1), {"early", "status"}),
    "threshold too high": (_threshold(1), {"missing"}),
    "update counted twice": (_update_twice, {"early", "status", "missing"}),
    "finished tile lost": (_tile_dropped, {"missing"}),
    "finished tile twice": (_tile_repeated, {"twice"}),
    "tile of another row": (_tile_field("row"), {"early", "twice", "missing"}),
    "tile of another slot": (_tile_field("slot"), {"slot"}),
    "finished chunk lost": (_chunk_dropped, {"missing"}),
    "finished chunk too early": (_chunk_early, {"early", "missing"}),
    "chunk that overflowed": (_chunk_overflowed, {"slot"}),
}
"""What is done to the tracker alone, and what the report may call it."""


def _not_added(m, design: SelfTest):
    with m.If(design._unit.dram[0].payload.tagged):
        m.d.comb += design._channels[0].dram.payload.op.eq(Op.STORE)


def _other_line(m, design: SelfTest):
    # Updates alone: if reads went astray in the same way, nothing would be wrong.
    request = design._unit.dram[0].payload
    misrouted = request.tagged & (request.line[3:6] == 5)
    m.d.comb += design._channels[0].dram.payload.line.eq(request.line ^ misrouted)


def _not_tracked(m, design: SelfTest):
    with m.If(design._unit.dram[0].payload.line[:8] == 0x42):
        m.d.comb += design._channels[0].dram.payload.tagged.eq(0)


def _bit_wrong(m, design: SelfTest):
    m.d.comb += design._reader.read_data[0].eq(design._channels[0].read_data ^ (1 << 77))


def _route(field):
    def make(m, design: SelfTest):
        given = design._unit.route[0].payload[field]
        m.d.comb += design._local.route.payload[field].eq(given ^ 1)

    return make


def _route_bits_lost(m, design: SelfTest):
    route = design._unit.route[0].payload
    with m.If(route.remote):
        m.d.comb += design._local.route.payload.line.eq(route.line & ~0b111)


def _bus(m, design: SelfTest):
    m.d.comb += design._sequencer.response_error.eq(1)


def _never_taken(m, design: SelfTest):
    m.d.comb += [design._unit.command.ready.eq(0), design._commands.command.valid.eq(0)]


def _flags(m, design: SelfTest):
    with m.If(design._channels[0].read_done):
        m.d.sync += design._unit.nmc_flags.eq(1)


UNIT = {
    "update stored": (_not_added, {"memory"}),
    "update of another line": (_other_line, {"memory", "early"}),
    "command before an update": (_not_tracked, {"early"}),
    "bit of a line inverted": (_bit_wrong, {"memory"}),
    "store to another GPU": (_route("peer"), {"route"}),
    "store with another operation": (_route("op"), {"route"}),
    "store to another line of another GPU": (_route_bits_lost, {"route"}),
    "bus error": (_bus, {"bus"}),
    "command never taken": (_never_taken, {"timeout"}),
    "exception of the arithmetic": (_flags, {"status"}),
    "command for another line": (_command("peer_base", lambda base: base ^ 1), {"command"}),
    "command swallowed": (_command_dropped, {"missing"}),
}
"""What is done to the unit and its memory, and what the report may call it."""

BUGS = {TrackerOnlyTest: ONLY, TrackerTest: TRACKER, SelfTest: UNIT}
"""By design."""
