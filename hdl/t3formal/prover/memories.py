"""One row of a memory inside a part, for invariants that speak of it."""

from amaranth.hdl import Signal, Value

from .harness import Harness


def row_of(harness: Harness, table: str, row: Value, *, name: str, through: bool) -> tuple[Signal, Signal]:
    """What the row ``row`` of a memory holds, and whether it was written.

    It takes what is written there; that a read gives it is assumed: it is proven of memories alone.

    Parameters
    ----------
    table : the end of the memory's path, a regular expression.
    name : what the memory is called in the name of the assumption.
    through : whether the memory is written through; if not, a read in the cycle of its row's write means nothing.
    """
    memory = harness.inside.table(table)
    ((write, write_row, word),), (data,), ((read, read_row),) = memory.writes, memory.reads, memory.asks
    held, known = Signal(len(word), name="row_held"), Signal(name="row_known")
    writes, reads = write & (write_row == row), read & (read_row == row)
    with harness.m.If(writes):
        harness.m.d.sync += [held.eq(word), known.eq(1)]
    given = harness.past(reads if through else reads & ~writes) & known
    harness.assume(f"the memory of {name} gives what was written last", ~given | (data == held))
    return held, known
