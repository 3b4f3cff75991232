"""The tile entries of one tracker bank, and the mark bits beside them."""

from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.ram import Ram
from ..config import T3Config
from ..interface.layouts import EPOCH_BITS, tracker_bank


def tag_layout(config: T3Config) -> data.StructLayout:
    """The part of a tile's key that the set index does not imply."""
    return data.StructLayout({
        "context": 4, "epoch": EPOCH_BITS, "wf": 4,
        "row": 12 - config.row_index_bits, "col": 12 - config.column_index_bits,
    })  # fmt: skip


def entry_layout(config: T3Config) -> data.StructLayout:
    """A tile entry as it is stored."""
    return data.StructLayout({"valid": 1, "tag": tag_layout(config), "count": config.tile_count_bits})


def tag_of(config: T3Config, token: Any) -> Value:
    """The tag of a token's tile, in the order of :func:`tag_layout`."""
    row, column = token.row[config.row_index_bits :], token.col[config.column_index_bits :]
    return Cat(token.context, token.epoch, token.wf, row, column)


def table_row(config: T3Config, token: Any) -> Value:
    """Row of the bank's table in which the token's tile is counted."""
    return Cat(token.col[: config.column_index_bits], token.row[config.bank_bits : config.row_index_bits])


def tile_of(config: T3Config, tag: Any, bank: int, table_row: Value) -> tuple[Value, Value]:
    """Row and column of the tile whose entry with this tag is in that row of the table of ``bank``."""
    column_index, upper = table_row[: config.column_index_bits], table_row[config.column_index_bits :]
    row_index = upper[: config.row_index_bits - config.bank_bits]
    # The low bits of row XOR column XOR wavefront are the number of the bank.
    low = tracker_bank(bank, column_index, tag.wf, config.tracker_banks)
    return Cat(low[: config.bank_bits], row_index, tag.row), Cat(column_index, tag.col)


class EntryTable(wiring.Component):
    """The tile entries of a bank and their mark bits: one row read, one row written per cycle.

    Every way is a memory of its own, because a token changes at most one entry of its row.

    Parameters
    ----------
    config : gives ways, sets per bank, descriptors, the widths, and ``protect``.

    Members
    -------
    read, read_row : In : the row is at ``ways`` and ``marks`` from the next cycle on, until the next read.
    ways : Out(entry).array(tracker_ways) : valid, tag, count.
    marks : Out(descriptors)
    corrected : Out(1) : a bit of the row was corrected.
    bad_ways, bad_marks : Out : words of the row that could not be corrected.
    write_row : In : row of the writes below; a read in the same cycle sees them.
    write_ways, entries : In : one enable per way, and what is written there.
    write_marks, new_marks : In : writes the mark bits.

    Latency: 1. Throughput: one read and one write per cycle. Reset: contents undefined, the owner writes every row.
    """

    def __init__(self, *, config: T3Config) -> None:
        entry = entry_layout(config)
        row = range(config.sets_per_bank)
        super().__init__({
            "read": In(1), "read_row": In(row),
            "ways": Out(entry).array(config.tracker_ways), "marks": Out(config.descriptors),
            "corrected": Out(1), "bad_ways": Out(config.tracker_ways), "bad_marks": Out(1),
            "write_row": In(row),
            "write_ways": In(config.tracker_ways), "entries": In(entry).array(config.tracker_ways),
            "write_marks": In(1), "new_marks": In(config.descriptors),
        })  # fmt: skip
        self._parameters = config

    def _column(self, m: Module, name: str, enable: Value, value: Any) -> Ram:
        """A memory of one column of the row."""
        depth, protect = self._parameters.sets_per_bank, self._parameters.protect
        m.submodules[name] = column = Ram(value.shape(), depth=depth, write_through=True, protect=protect)
        m.d.comb += [
            column.write.eq(enable),
            column.write_row.eq(self.write_row),
            column.write_data.eq(value),
            column.read.eq(self.read),
            column.read_row.eq(self.read_row),
        ]
        return column

    def elaborate(self, platform: Any) -> Module:
        """One memory per way, one for the marks."""
        m = Module()
        columns = [self._column(m, f"way_{w}", self.write_ways[w], entry) for w, entry in enumerate(self.entries)]
        marks = self._column(m, "mark_bits", self.write_marks, self.new_marks)
        m.d.comb += [way.eq(column.data) for way, column in zip(self.ways, columns, strict=True)]
        m.d.comb += [
            self.marks.eq(marks.data),
            self.corrected.eq(Cat(column.corrected for column in (*columns, marks)).any()),
            self.bad_ways.eq(Cat(column.uncorrectable for column in columns)),
            self.bad_marks.eq(marks.uncorrectable),
        ]
        return m
