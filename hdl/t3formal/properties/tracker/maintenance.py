"""The tracker's tables are walked through as the banks expect it, and as a sweep promises."""

from amaranth.hdl import Mux, Signal
from t3hdl.config import T3Config, preset
from t3hdl.tracker.maintenance import Maintenance

from ...prover.harness import Harness
from ...prover.proof import Proof


def _walks(config: T3Config) -> Harness:
    """One row is chosen: it is cleared before the first token, and swept before a request is over."""
    part = Maintenance(config=config)
    harness = Harness(part)
    m, rows = harness.m, config.sets_per_bank
    place = harness.chosen("row_of_interest", range(rows))
    requests = part.arm | part.abort | part.debug_read
    free = part.init_done & ~part.maintenance & ~part.abort_busy
    harness.assume("the tracker's requests come one at a time", ~requests | free)
    one = (part.arm + part.abort + part.debug_read) <= 1
    harness.assume("one action per CONTROL write", one)
    emptied = harness.past(part.maintenance & part.drained)
    harness.assume("an empty bank that is halted stays empty", part.drained | ~emptied)

    cleared, swept, looks, context = Signal(), Signal(), Signal(), Signal(4)
    with m.If(part.clear & (part.write_row == place)):
        m.d.sync += cleared.eq(1)
    with m.If(part.purge & (part.write_row == place)):
        m.d.sync += swept.eq(1)
    with m.If(requests):
        m.d.sync += [swept.eq(0), looks.eq(part.debug_read), context.eq(part.context)]
    harness.claim("every row is cleared before the first token", part.clear | cleared)
    harness.claim("cleared until init_done", part.clear == ~part.init_done)
    harness.claim("rows are cleared only after reset", ~part.clear | ~(part.read | part.purge))
    harness.claim("reset is over once", part.init_done | ~harness.past(part.init_done))
    sweeps = part.read | part.purge
    harness.claim("sweeps go through empty banks that are halted", ~sweeps | (part.maintenance & part.drained))
    read = harness.past(part.read) & (part.write_row == harness.past(part.read_row))
    harness.claim("a sweep writes the row that it has read", ~part.purge | read)
    over = harness.past(part.maintenance) & ~part.maintenance
    harness.claim("a sweep has written every row when it is over", ~over | harness.past(looks) | swept)
    harness.claim("a sweep is of the context that was named", ~part.purge | (part.purged == context))
    harness.claim("a debug read writes nothing", ~(part.purge & looks))
    _strengthen(harness, place, (cleared, swept, looks, context), rows)
    harness.cover("an abort is over", harness.past(part.abort_busy) & ~part.abort_busy)
    harness.cover("a debug read has its row", part.found)
    return harness


def _strengthen(harness: Harness, place: Signal, model: tuple[Signal, ...], rows: int) -> None:
    """What the walker's registers have to do with the rows that were written."""
    part, (cleared, swept, looks, context) = harness.dut, model
    row, written, sweeping, reads_entry = (
        harness.inside[name] for name in ("row", "written", "sweeping", "reads_entry")
    )
    harness.claim("the walker of reset has come so far", part.init_done | (cleared == (row > place)))
    harness.claim("reset's walker stays inside", part.init_done | ((row < rows) & ~sweeping & ~part.maintenance))
    harness.claim("it rests at the first row", ~part.init_done | sweeping | (row == 0))
    harness.claim("a walk is a request's", ~sweeping | (part.maintenance & part.drained))
    harness.claim(
        "a request is known", ~part.maintenance | ((reads_entry == looks) & (looks | (part.purged == context)))
    )
    harness.claim("a walk stays inside", ~sweeping | (row <= Mux(reads_entry, 1, rows)))
    done = ~sweeping | reads_entry | (swept == (row > place + 1))
    harness.claim("the sweep has come so far", done)
    before = (row == 0) | ((written == row - 1) & harness.past(part.read))
    harness.claim("the row before is the one to be written", ~sweeping | reads_entry | before)
    harness.claim("nothing is swept before the walk", ~part.maintenance | sweeping | ~swept)


PROOFS = (
    Proof(
        name="maintenance.walks",
        invariants=(4,),
        says="Every row is cleared after reset before it is used; a sweep reads and writes every row, while no token "
        "is under way.",
        harness=_walks,
        sizes={
            "2 rows": preset("small"),
            "1 row": preset("small", tracker_sets=1, tracker_banks=1, row_index_bits=0),
            "8 rows": preset("small", tracker_sets=8, tracker_banks=1, row_index_bits=2),
        },
        method="induction",
        depth=1,
        cover_depth=24,
    ),
)
