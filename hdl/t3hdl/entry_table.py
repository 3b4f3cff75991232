"""The tile entries of one tracker bank, and the mark bits beside them."""

from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from .config import T3Config


def tag_layout(config: T3Config) -> data.StructLayout:
    """The part of a tile's key that its place in the table does not tell."""
    return data.StructLayout({
        "context": 4, "epoch": 2, "wf": 4,
        "row": 12 - config.row_index_bits, "col": 12 - config.column_index_bits,
    })  # fmt: skip


def tag_of(config: T3Config, token: Any) -> Value:
    """The tag of a token's tile, in the order of :func:`tag_layout`."""
    row, column = token.row[config.row_index_bits :], token.col[config.column_index_bits :]
    return Cat(token.context, token.epoch, token.wf, row, column)


def table_row(config: T3Config, token: Any) -> Value:
    """Row of the bank's table in which the token's tile is counted."""
    return Cat(token.col[: config.column_index_bits], token.row[config.bank_bits : config.row_index_bits])


class EntryTable(wiring.Component):
    """The tile entries of a bank and their mark bits: one row read, one row written per cycle.

    Every way is a memory of its own, because a token changes at most one entry of its row.

    Parameters
    ----------
    config : gives ways, sets per bank, descriptors and the widths.

    Members
    -------
    read, read_row : In : the row is at ``ways`` and ``marks`` from the next cycle on, until the next read.
    ways : Out(entry).array(tracker_ways) : valid, tag, count.
    marks : Out(descriptors)
    write_row : In : row of the writes below; a read in the same cycle sees them.
    write_ways, entry : In : one enable per way, and what is written.
    write_marks, new_marks : In : writes the mark bits.

    Latency: 1. Throughput: one read and one write per cycle. Reset: contents undefined, the owner writes every row.
    """

    def __init__(self, *, config: T3Config) -> None:
        entry = data.StructLayout({"valid": 1, "tag": tag_layout(config), "count": config.tile_count_bits})
        row = range(config.sets_per_bank)
        super().__init__({
            "read": In(1), "read_row": In(row),
            "ways": Out(entry).array(config.tracker_ways), "marks": Out(config.descriptors),
            "write_row": In(row),
            "write_ways": In(config.tracker_ways), "entry": In(entry),
            "write_marks": In(1), "new_marks": In(config.descriptors),
        })  # fmt: skip
        self._entry, self._parameters = entry, config

    def _memory(self, m: Module, name: str, shape: Any, enable: Value, value: Any) -> Any:
        """A memory of one column of the row; returns the read data."""
        m.submodules[name] = column = memory.Memory(shape=shape, depth=self._parameters.sets_per_bank, init=[])
        write = column.write_port()
        read = column.read_port(transparent_for=(write,))
        m.d.comb += [
            write.addr.eq(self.write_row), write.en.eq(enable), write.data.eq(value),
            read.addr.eq(self.read_row), read.en.eq(self.read),
        ]  # fmt: skip
        return read.data

    def elaborate(self, platform: Any) -> Module:
        """One memory per way, one for the marks."""
        m = Module()
        for w, way in enumerate(self.ways):
            m.d.comb += way.eq(self._memory(m, f"way_{w}", self._entry, self.write_ways[w], self.entry))
        marks = self._memory(m, "mark_bits", self._parameters.descriptors, self.write_marks, self.new_marks)
        m.d.comb += self.marks.eq(marks)
        return m
