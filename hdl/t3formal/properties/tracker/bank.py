"""A tracker bank loses no update of a tile and counts none twice, whatever holds it back."""

from itertools import combinations
from typing import Any

from amaranth.hdl import Array, Cat, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import EventKind, Token
from t3hdl.tracker.bank import EventStage, MatchedToken, TrackerBank, row_layout
from t3hdl.tracker.entry_table import entry_layout, table_row, tag_of
from t3hdl.tracker.event_queue import Event

from ...prover.harness import Harness
from ...prover.proof import Proof

_BITS = 4
"""Width of the sums that are compared; what is shown modulo a power of two is shown for every number of updates."""
_KEY = ("context", "epoch", "row", "col", "wf")


class _Tile:
    """The chosen tile in a bank: where its updates are. ``held`` is their number in the table."""

    def __init__(self, harness: Harness, config: T3Config) -> None:
        self.harness, self.config, self.bank = harness, config, harness.dut
        inside = harness.inside
        self.key = Signal(Token)
        chosen = {name: harness.chosen(f"tile_{name}", len(self.key[name])) for name in _KEY}
        self.number = harness.chosen("number_of_bank", range(config.tracker_banks))
        low = (chosen["row"] ^ chosen["wf"] ^ self.number)[: config.bank_bits]
        chosen["col"] = Cat(low, chosen["col"][config.bank_bits :])
        harness.m.d.comb += [self.key[name].eq(value) for name, value in chosen.items()]
        self.place = Signal(range(max(config.sets_per_bank, 2)), name="tile_place")
        harness.m.d.comb += self.place.eq(table_row(config, self.key))
        self.m_stage = data.View(MatchedToken, inside["matched"])
        self.r_stage = data.View(row_layout(config), inside["row"])
        self.e_stage = data.View(EventStage, inside["event_stage"])
        tile_told = self.e_stage.valid & (self.e_stage.kind == EventKind.TILE)
        self.taken = inside[r"events\.level"] + tile_told  # places of the event queue
        self.update = self.r_stage.valid & (self.taken < config.event_queue)
        self.raises_event, self.event = inside["raises_event"], data.View(Event, inside["new_event"])
        self.kind = inside["new_kind"]
        columns = [inside.table(rf"way_{way}\.\w+\.rows") for way in range(config.tracker_ways)]
        self.ways = [data.View(entry_layout(config), column.stored(self.place)) for column in columns]
        self.seen = [inside[f"ways__{way}"] for way in range(config.tracker_ways)]
        self.hits = [way.valid & (way.tag.as_value() == tag_of(config, self.key)) for way in self.ways]
        self.held = sum(Mux(hit, way["count"], 0) for hit, way in zip(self.hits, self.ways, strict=True))

    def mine(self, token: Any) -> Value:
        """Whether a token is of the tile."""
        return Cat(token[name] == self.key[name] for name in _KEY).all()

    def own(self, token: Any) -> Value:
        """Whether a token is of the bank, as the tile is."""
        return ((token.row ^ token.col ^ token.wf) & (self.config.tracker_banks - 1)) == self.number

    def places(self) -> list[tuple[Value, Any]]:
        """Where tokens can be: whether one is there, and the token."""
        queue = [data.View(Token, self.harness.inside[rf"queue\.{name}"]) for name in ("o__payload", "spare")]
        valid = [self.harness.inside[r"queue\.o__valid"], self.harness.inside[r"queue\.full"]]
        stages = [(self.m_stage.valid, self.m_stage.token), (self.r_stage.valid, self.r_stage.token)]
        return [*zip(valid, queue, strict=True), *stages]

    def waiting(self) -> Value:
        """Updates of the tile in the input queue, M and R."""
        return sum(Mux(there & self.mine(token), token.n, 0) for there, token in self.places())


def _walks(harness: Harness, tile: _Tile) -> tuple[Value, Value]:
    """How the owner of the table walks through it; returns whether the tile's row is cleared, and all are."""
    bank, walk = harness.dut, harness.dut.walk
    cleared, ended = Signal(), Signal()
    with harness.m.If(walk.clear & (bank.write_row == tile.place)):
        harness.m.d.sync += cleared.eq(1)
    with harness.m.If(~walk.clear):
        harness.m.d.sync += ended.eq(1)
    harness.assume("every row is cleared before the first token", walk.clear | cleared)
    harness.assume("rows are cleared only after reset", ~walk.clear | ~(ended | walk.read | walk.purge))
    sweeps = walk.read | walk.purge
    harness.assume("sweeps go through empty banks that are halted", ~sweeps | (bank.halt & bank.drained))
    read = harness.past(walk.read) & (bank.write_row == harness.past(bank.read_row))
    harness.assume("a sweep writes the row that it has read", ~walk.purge | read)
    queued = harness.inside[r"queue\.o__valid"]
    harness.claim("nothing is there while rows are cleared", ended | (bank.drained & ~queued & (tile.taken == 0)))
    unused = ~Cat(way.valid for way in tile.ways).any()
    harness.claim("a row that was cleared has no entries until the first token", ended | ~cleared | unused)
    return cleared, ended


def _conserves(config: T3Config) -> Harness:
    """One tile is chosen. Its updates are in the pipeline, in its entry, or reported as TILE, OVERFLOW or error."""
    bank = TrackerBank(config=config)
    harness = Harness(bank)
    m, tile = harness.m, _Tile(harness, config)
    token = bank.token.payload
    harness.assume("tokens go to their bank", ~bank.token.valid | tile.own(token))
    harness.assume("a token counts something", ~bank.token.valid | (token.n != 0))
    harness.assume("only events that are there are taken", ~bank.event_taken | bank.event_valid)
    harness.assume("nothing is damaged", ~(bank.detail.uncorrectable | bank.lines.uncorrectable))
    cleared, ended = _walks(harness, tile)
    row = tile.r_stage
    now = tile.update & tile.mine(row.token)
    told, came, gone, broken = Signal(_BITS), Signal(_BITS), Signal(_BITS), Signal()
    m.d.comb += told.eq(Mux(tile.raises_event, tile.event.lines, 0))
    counts = now & row.hit
    sweeps = bank.walk.purge & (bank.write_row == tile.place) & (bank.walk.context == tile.key.context)
    with m.If(bank.token.valid & bank.token.ready & tile.mine(token)):
        m.d.sync += came.eq(came + token.n)
    with m.If(now):
        m.d.sync += gone.eq(gone + Mux(row.hit, told, row.token.n))
    with m.If(sweeps):
        m.d.sync += gone.eq(gone + tile.held)
    with m.If(counts & bank.over_count):
        m.d.sync += broken.eq(1)
    sum_ = (tile.waiting() + tile.held + gone)[:_BITS]
    harness.claim("updates are in the pipeline, in the entry, or reported", ~cleared | broken | (came == sum_))
    harness.claim("no update before rows are cleared", ended | ((came == 0) & (gone == 0)))
    harness.claim("a sweep leaves no entry of its context", ~harness.past(sweeps) | ~Cat(tile.hits).any())
    _counts_right(harness, tile, counts)
    _strengthen(harness, tile, cleared)
    harness.cover("an entry grows by two tokens in a row", counts & harness.past(counts) & (tile.held != 0))
    harness.cover(
        "a stalled token completes its tile", counts & tile.raises_event & harness.past(row.valid & ~tile.update)
    )
    harness.cover("an overflow", counts & tile.raises_event & (tile.kind == EventKind.OVERFLOW))
    harness.cover("a sweep frees the entry", sweeps & (tile.held != 0))
    return harness


def _counts_right(harness: Harness, tile: _Tile, counts: Value) -> None:
    """What a token of the tile does, and what one without a chunk does."""
    bank, row = harness.dut, tile.r_stage
    total = tile.held + row.token.n
    overflow = tile.raises_event & (tile.kind == EventKind.OVERFLOW)
    done = tile.raises_event & (tile.kind == EventKind.TILE)
    right = (tile.event.lines == row.threshold) & (row.threshold != 0)
    harness.claim("a tile is done exactly at its threshold", ~counts | overflow | (done == (total == row.threshold)))
    harness.claim("it is reported with its threshold, which is not 0", ~(counts & done) | right)
    found = Cat(tile.hits).any()
    alone = ~found & (tile.event.lines == row.token.n)
    harness.claim("only a tile without an entry overflows, with the token's updates", ~(counts & overflow) | alone)
    too_many = total > row.threshold
    harness.claim(
        "a count above the threshold is an error, and no event", ~counts | overflow | (bank.over_count == too_many)
    )
    same_context = [way.valid & (way.tag.context == tile.key.context) for way in tile.ways]
    quota = Array(bank.quotas)[tile.key.context]
    harness.claim("an entry begins within the quota", ~(counts & bank.allocated) | (sum(same_context) < quota))
    harness.claim("an event is of the token's slot", ~tile.raises_event | (tile.event.slot == row.slot))
    changes = tile.raises_event | bank.allocated | bank.freed.any() | bank.over_count | bank.counts
    writes = harness.inside["write_ways"].any() | harness.inside["write_marks"].any()
    unmatched = row.valid & ~row.hit
    harness.claim("a token without a chunk changes nothing", ~unmatched | ~(changes | writes))
    harness.claim("it is an error unless it was dropped", bank.unmatched == (tile.update & ~row.hit & ~row.dropped))
    told, new = tile.e_stage, Cat(tile.kind, tile.event.as_value())
    same = Cat(told.kind, told.event.as_value()) == harness.past(new)
    harness.claim("E has the event of R", (told.valid == harness.past(tile.raises_event)) & (~told.valid | same))


def _strengthen(harness: Harness, tile: _Tile, cleared: Value) -> None:
    """What the induction needs: the row that was read is the row that is stored, tokens are of this bank."""
    bank, config = harness.dut, tile.config
    for i, j in combinations(range(config.tracker_ways), 2):
        harness.claim(f"ways {i} and {j} are not both of the tile", ~cleared | ~(tile.hits[i] & tile.hits[j]))
    pairs = zip(tile.seen, tile.ways, strict=True)
    fresh = Cat(seen == way.as_value() for seen, way in pairs).all()
    here = tile.r_stage.valid & (table_row(config, tile.r_stage.token) == tile.place)
    harness.claim("nothing in R is damaged", ~tile.r_stage.damaged)
    harness.claim("R has the row as it is stored", ~here | fresh)
    swept = harness.past(bank.walk.read) & (harness.past(bank.read_row) == tile.place)
    harness.claim("a sweep has the row as it is stored", ~swept | fresh)
    full, valid = harness.inside[r"queue\.full"], harness.inside[r"queue\.o__valid"]
    harness.claim("the queue fills from its head", ~full | valid)
    harness.claim("no more events than there is room for", tile.taken <= config.event_queue)
    legal = Cat(~there | (tile.own(token) & (token.n != 0)) for there, token in tile.places()).all()
    harness.claim("tokens are of this bank and count something", legal)


_ONE = {
    "tracker_banks": 1, "tracker_sets": 2, "row_index_bits": 1, "event_queue": 3, "descriptors": 2, "chunk_window": 2,
    "tile_count_bits": 4,
}  # fmt: skip


def _stays_empty(config: T3Config) -> Harness:
    """On its own, without assumptions: sweeps rest on it, and what else is shown of a bank rests on sweeps."""
    harness = Harness(TrackerBank(config=config))
    bank = harness.dut
    empty = bank.drained | ~harness.past(bank.drained & bank.halt)
    harness.claim("an empty bank that is halted stays empty", empty)
    harness.cover("a bank that is halted becomes empty", harness.past(~bank.drained) & bank.halt & bank.drained)
    return harness


PROOFS = (
    Proof(
        name="tracker-bank.stays-empty",
        invariants=(),
        says="A bank in which no token is under way takes none while it is halted.",
        harness=_stays_empty,
        sizes={"1 way": preset("small", **_ONE, tracker_ways=1)},
        method="induction",
        depth=1,
        cover_depth=8,
    ),
    Proof(
        name="tracker-bank.conserves",
        invariants=(1, 3, 4),
        says="Every update is counted once: in its tile's entry, as finished tile, as overflow, or as error.",
        harness=_conserves,
        sizes={
            "1 way": preset("small", **_ONE, tracker_ways=1),
            "2 ways": preset("small", **_ONE, tracker_ways=2),
            "2 ways, bank of 2": preset("small", **{**_ONE, "tracker_banks": 2, "tracker_sets": 4}, tracker_ways=2),
        },
        method="induction",
        depth=1,
        cover_depth=12,
    ),
)
