"""How long a token takes through a tracker bank."""

from amaranth.hdl import Mux, Signal, Value
from amaranth.lib import data
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import EventKind
from t3hdl.tracker.bank import EventStage, MatchedToken, TrackerBank, row_layout

from ...models.frames import Frames
from ...prover.harness import Harness
from ...prover.proof import Proof

_STEPS = 4
"""How often the pipeline moves until a token is counted that came into the second place of the input queue."""


def _waits(harness: Harness, config: T3Config) -> Signal:
    """For how many cycles a tile has waited for its bank's turn; fewer than there are turns."""
    bank, turns = harness.dut, config.drain_turns
    waited = Signal(range(turns + 1), name="waited")
    harness.m.d.sync += waited.eq(Mux(bank.event_valid & ~bank.event_taken, waited + 1, 0))
    in_turn = ~bank.event_valid | bank.event_taken | (waited + 1 < turns)
    harness.assume("a bank has its turn after the others", in_turn)
    harness.assume("only events that are there are taken", ~bank.event_taken | bank.event_valid)
    harness.claim("no event waits longer than the others take", waited < turns)
    return waited


def _in_time(config: T3Config) -> Harness:
    """Any one token is followed, unless a walk begins; then the tile that it completes."""
    bank, turns, depth = TrackerBank(config=config), config.drain_turns, config.event_queue
    harness = Harness(bank)
    m, inside, waited = harness.m, harness.inside, _waits(harness, config)
    row, matched = data.View(row_layout(config), inside["row"]), data.View(MatchedToken, inside["matched"])
    level, event_stage = inside[r"events\.level"], data.View(EventStage, inside["event_stage"])
    full, head = inside[r"queue\.full"], inside[r"queue\.o__valid"]
    tile_told = event_stage.valid & (event_stage.kind == EventKind.TILE)
    moves = ~row.valid | (level + tile_told < depth)
    walks = bank.halt | bank.walk.clear | bank.walk.purge | bank.walk.read
    # Steps that are left; cycles since the transfer; cycles for which nothing has moved.
    left, age, stalled = Signal(range(_STEPS + 1)), Signal(8), Signal(range(turns + 2))
    alone = Signal()  # the bank was empty when the token came
    m.d.sync += [age.eq(age + 1), stalled.eq(Mux(moves, 0, stalled + 1))]
    with m.If((left != 0) & moves):
        m.d.sync += left.eq(left - 1)
    follows = harness.free("follow") & bank.token.valid & bank.token.ready & ((left == 0) | (moves & (left == 1)))
    empty = bank.drained & ~head & ~event_stage.valid & (level == 0)
    with m.If(follows):
        m.d.sync += [left.eq(Mux(head & ~moves, _STEPS, _STEPS - 1)), age.eq(1), stalled.eq(0), alone.eq(empty)]
    with m.If(walks):
        m.d.sync += left.eq(0)

    limit = _STEPS * (turns + 1)
    harness.claim("a token is counted within 4 x (turns + 1) cycles", (left == 0) | (age <= limit))
    at_once = (age == 3) & moves
    harness.claim("a token that came into an empty bank is counted after 3 cycles", ~alone | (left != 1) | at_once)
    harness.claim("the token is where it should be", _place(left, full, head, matched.valid, row.valid))
    harness.claim("the pipeline stalls while an event waits", moves | (stalled <= waited))
    harness.claim("and moves when one has left", (left == 0) | (stalled <= turns))
    harness.claim("steps take their time", (left == 0) | (age <= 1 + (_STEPS - left) * (turns + 1) + stalled))
    nothing = (
        (left < _STEPS) & ~event_stage.valid & (level == 0) & ((left < 2) | ~row.valid) & ((left < 3) | ~matched.valid)
    )
    harness.claim("nothing is before the only token", ~alone | (left == 0) | (nothing & (age == _STEPS - left)))
    harness.claim("the queue fills from its head", ~full | head)
    harness.claim("no more events than there is room for", level + tile_told <= depth)
    tile = inside["raises_event"] & (inside["new_kind"] == EventKind.TILE)
    queued = harness.past((left == 1) & moves & tile)
    harness.claim("the event of the tile is in E", ~queued | tile_told)
    _event_in_time(harness, config, waited, level, queued)
    harness.cover("a token waits long", (left == 1) & (age == turns + 4))
    harness.cover("a token comes into an empty bank", alone & (left == 1))
    return harness


def _place(left: Value, full: Value, head: Value, matched: Value, row: Value) -> Value:
    """Whether something is in the place that belongs to the number of steps left."""
    there: Value = left <= _STEPS
    for steps, valid in ((4, full), (3, head), (2, matched), (1, row)):
        there = there & ((left != steps) | valid)
    return there


def _event_in_time(harness: Harness, config: T3Config, waited: Value, level: Value, begins: Value) -> None:
    """The event of a finished tile leaves in its turn."""
    m, bank, turns, depth = harness.m, harness.dut, config.drain_turns, config.event_queue
    there, place, age = Signal(), Signal(range(depth)), Signal(8)
    m.d.sync += age.eq(age + 1)
    with m.If(bank.event_taken):
        m.d.sync += place.eq(place - 1)
        with m.If(place == 0):
            m.d.sync += there.eq(0)
    with m.If(begins & ~there):
        m.d.sync += [there.eq(1), place.eq(level - bank.event_taken), age.eq(1)]
    harness.claim("a tile leaves the event queue within event_queue x turns cycles", ~there | (age <= depth * turns))
    harness.claim("events before it take their time", ~there | (age <= 1 + (depth - 1 - place) * turns + waited))
    harness.claim("the event is where it should be", ~there | (place < level))
    harness.cover("a tile waits for its turn behind another", there & (place == 0) & (age == turns + 1))


def _keeps_moving(config: T3Config) -> Harness:
    """Frames of as many cycles as there are turns, from any cycle on."""
    bank = TrackerBank(config=config)
    harness = Harness(bank)
    m, inside, waited = harness.m, harness.inside, _waits(harness, config)
    row, matched = data.View(row_layout(config), inside["row"]), data.View(MatchedToken, inside["matched"])
    level, event_stage = inside[r"events\.level"], data.View(EventStage, inside["event_stage"])
    frames = Frames(m, harness.free("begin"), config.drain_turns)
    left = bank.event_taken | ~bank.event_valid
    left_before, has_left = frames.seen("event_left", left)
    harness.claim("in every frame an event leaves, unless there is none", ~frames.ends | has_left)
    harness.claim("an event that has not left has waited", left_before | (waited >= frames.phase))
    tile_told = event_stage.valid & (event_stage.kind == EventKind.TILE)
    moves = ~row.valid | (level + tile_told < config.event_queue)
    harness.claim("in the cycle after that the pipeline moves", ~harness.past(left) | moves)
    harness.claim("no more events than there is room for", level + tile_told <= config.event_queue)
    harness.claim("the queue fills from its head", ~inside[r"queue\.full"] | inside[r"queue\.o__valid"])
    takes = harness.past(moves & ~bank.halt)
    harness.claim("and in the next one a token may come", ~takes | bank.walk.clear | bank.token.ready)
    halted, moved = Signal(), Signal(range(3))
    m.d.sync += [halted.eq(bank.halt), moved.eq(Mux(bank.halt, moved + (moves & (moved != 2)), 0))]
    harness.claim("a bank that is halted has no token after two moves", ~halted | (moved != 2) | bank.drained)
    harness.claim("and none in M after one", ~halted | (moved == 0) | ~matched.valid)
    harness.claim("moves count from the halt on", halted | (moved == 0))
    harness.cover("a bank is empty after a halt", halted & (moved == 2) & harness.past(row.valid))
    harness.cover("an event waits for the last cycle of a frame", frames.ends & ~left_before & bank.event_taken)
    return harness


_SMALL = {"tracker_ways": 1, "event_queue": 3, "descriptors": 2, "chunk_window": 2, "tile_count_bits": 4}

PROOFS = (
    Proof(
        name="tracker-bank.in-time",
        invariants=(2,),
        says="Unless a walk begins, a token is counted within 4 x (tracker_banks + 2) cycles (3 in an empty bank), and "
        "the tile that it completes is told within event_queue x (tracker_banks + 1) + 1 cycles more.",
        harness=_in_time,
        sizes={
            "2 banks": preset("small", **_SMALL),
            "1 bank": preset("small", **_SMALL, tracker_banks=1),
            "2 banks, 4 events": preset("small", **{**_SMALL, "event_queue": 4}, blocks=8),
        },
        method="induction",
        depth=1,
        cover_depth=16,
    ),
    Proof(
        name="tracker-bank.keeps-moving",
        invariants=(3,),
        says="A lemma of drain_cycles: in every tracker_banks + 1 cycles, whenever they begin, a bank's pipeline moves "
        "once at least, a cycle later at most, and takes a token if it is not halted; when it is, two moves empty it.",
        harness=_keeps_moving,
        sizes={
            "2 banks": preset("small", **_SMALL),
            "1 bank": preset("small", **_SMALL, tracker_banks=1),
            "4 banks": preset("small", **_SMALL, tracker_banks=4, tracker_sets=16, row_index_bits=2, blocks=16),
            "8 banks": preset("small", **_SMALL, tracker_banks=8, tracker_sets=64, row_index_bits=3, blocks=64),
        },
        method="induction",
        depth=1,
        cover_depth=24,
    ),
)
