"""The memory that every table of the hardware is made of: one write port, one read port."""

from typing import Any

from amaranth.hdl import Const, MemoryData, MemoryInstance, Module, Shape, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .secded import check_bits, decode, encode


class _Array(wiring.Component):
    """The bare memory; see :class:`Ram`."""

    def __init__(self, content: MemoryData, *, latency: int, through: bool) -> None:
        super().__init__({
            "write": In(1), "write_row": In(range(content.depth)), "write_data": In(content.shape),
            "read": In(1), "read_row": In(range(content.depth)), "data": Out(content.shape),
        })  # fmt: skip
        self._content, self._latency, self._through = content, latency, through

    def elaborate(self, platform: Any) -> Module:
        """The ports of the memory are those of the module."""
        m = Module()
        m.submodules.rows = rows = MemoryInstance(data=self._content)
        write = rows.write_port(domain="sync", addr=self.write_row, data=self.write_data, en=self.write)
        rows.read_port(
            domain="sync" if self._latency else "comb",
            addr=self.read_row,
            data=self.data,
            en=self.read if self._latency else Const(1),
            transparent_for=[write] if self._through else [],
        )
        return m


class Ram(wiring.Component):
    """A table: one row written and one row read per cycle, with SECDED inside if it is protected.

    The bare memory is a module of its own in the Verilog, which an integrator may replace by a macro: ``..__ram_<kind>_
    <depth>x<width>`` with the ports ``clk``, ``rst`` (unused), ``write``, ``write_row``, ``write_data``, ``read`` (not
    for latency 0), ``read_row`` and ``data``. Kind is ``comb`` (latency 0), ``sync`` (latency 1) or ``through``.

    Parameters
    ----------
    shape : shape of a row.
    depth : rows.
    latency : cycles from ``read`` to ``data``, 0 or 1.
    write_through : with latency 1, whether a read sees a write to its row in the same cycle; without, such a read
        means nothing. With latency 0 a read never sees a write of its own cycle.
    protect : keep check bits beside every row, and correct what is read. What is stored stays wrong until the row is
        written again.

    Members
    -------
    write, write_row, write_data : In : writes a row.
    read, read_row : In : reads a row. With latency 0 ``data`` follows ``read_row`` whether ``read`` or not, and
        ``read`` says that it is used.
    data : Out(shape) : the row; with latency 1 from the next cycle on, until the next ``read``.
    corrected, uncorrectable : Out(1) : of ``data``, while it is valid: a bit was corrected; ``data`` means
        nothing. 0 while nothing was read since reset (with latency 0: while not ``read``), and without ``protect``.

    Latency: ``latency``. Throughput: one read and one write per cycle. Reset: contents undefined, so a row must be
    written before it is read.

    Raises
    ------
    ValueError
        if the latency is neither 0 nor 1, or a memory of latency 0 is to be written through.
    """

    def __init__(
        self, shape: Any, *, depth: int, latency: int = 1, write_through: bool = False, protect: bool = False
    ) -> None:
        if latency not in (0, 1):
            raise ValueError(f"latency of a memory must be 0 or 1, not {latency}")
        if write_through and not latency:
            raise ValueError("write_through needs a memory of latency 1, not 0")
        super().__init__({
            "write": In(1), "write_row": In(range(depth)), "write_data": In(shape),
            "read": In(1), "read_row": In(range(depth)), "data": Out(shape),
            "corrected": Out(1), "uncorrectable": Out(1),
        })  # fmt: skip
        self._width, self._latency, self._protect = Shape.cast(shape).width, latency, protect
        self._through = write_through
        width = self._width + (check_bits(self._width) if protect else 0)
        self.content = MemoryData(shape=width, depth=depth, init=[])

    @property
    def latency(self) -> int:
        """Cycles from ``read`` to ``data``."""
        return self._latency

    def elaborate(self, platform: Any) -> Module:
        """The bare memory, between encoder and decoder if protected."""
        m = Module()
        kind = "through" if self._through else "sync" if self._latency else "comb"
        array = _Array(self.content, latency=self._latency, through=self._through)
        m.submodules[f"ram_{kind}_{self.content.depth}x{self.content.shape}"] = array
        # Flattened: the check bits cover the whole row, not its fields.
        source, sink = Signal(self._width), Signal(self._width)
        inputs = {name: getattr(self, name) for name in ("write", "write_row", "read", "read_row")}
        inputs["write_data"] = encode(source) if self._protect else source
        # The operator keeps a port one bus in the Verilog, of whatever wires and constants its value is made.
        m.d.comb += [getattr(array, name).eq(value ^ 0) for name, value in inputs.items()]
        m.d.comb += [source.eq(self.write_data), self.data.eq(sink)]
        if self._protect:
            self._check(m, array.data, sink)
        else:
            m.d.comb += sink.eq(array.data)
        return m

    def _check(self, m: Module, stored: Value, sink: Signal) -> None:
        """Corrects the read data; the error flags are valid after the first read."""
        decoded = decode(m, stored, self._width)
        known = Signal()
        if self._latency:
            with m.If(self.read):
                m.d.sync += known.eq(1)
        else:
            m.d.comb += known.eq(self.read)
        m.d.comb += [
            sink.eq(decoded.word),
            self.corrected.eq(known & decoded.corrected),
            self.uncorrectable.eq(known & decoded.uncorrectable),
        ]
