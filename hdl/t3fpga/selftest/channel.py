"""A memory channel of the self-test: block RAM behind an NMC unit, and what it saw."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from t3hdl.common.queues import InputQueue
from t3hdl.config import T3Config
from t3hdl.interface.layouts import INTERLEAVE_BITS, LINE_BYTES, MemoryRequest, local_line
from t3hdl.nmc.nmc import NmcUnit

from . import gemm, line_values
from .rounds import Seed, dtype_of
from .traffic import READ_BIT
from .update_counts import UPDATE_BITS, UpdateCounts


class Channel(wiring.Component):
    """Takes a slice's ``dram`` stream, with pauses, and performs it, bursts line by line.

    Members
    -------
    seed, open : In : that of the round; a line may be performed.
    dram : In(stream(MemoryRequest)) : from the slice. The data of a write are what its tag stands for.
    read_done, read_data : Out : pulse; the line of a read (an access whose tag has its highest bit set).
    flags : Out(5) : exceptions of the NMC unit.
    uncorrectable : Out(1) : pulse; the NMC unit had a wrong bit.
    busy : Out(1) : something is not performed yet.
    forget, block : In : zeroes the count of a DMA block (or shows it).
    updates : Out(6) : tracked updates of ``block`` that were taken, two cycles later.

    Latency: 1 from ``dram`` to the NMC unit. Throughput: one line per cycle.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "seed": In(Seed), "open": In(1), "dram": In(stream.Signature(MemoryRequest)),
            "read_done": Out(1), "read_data": Out(8 * LINE_BYTES), "flags": Out(5), "uncorrectable": Out(1),
            "busy": Out(1), "forget": In(1), "block": In(range(gemm.BLOCK_NUMBERS)), "updates": Out(UPDATE_BITS),
        })  # fmt: skip
        self._config = config

    def elaborate(self, platform: Any) -> Module:
        """Lines pass to the NMC unit with data; a burst moves with its last one. Reads are known by their tags.

        Without the queue `dram.ready` would follow the burst's length in the same cycle, back into the slice.
        """
        m = Module()
        m.submodules.nmc = nmc = NmcUnit(config=self._config)
        m.submodules.queue = queue = InputQueue(MemoryRequest)
        wiring.connect(m, wiring.flipped(self.dram), queue.i)
        request, dram = nmc.request.payload, queue.o.payload
        line, last = Signal(INTERLEAVE_BITS), Signal()  # of the burst
        with m.If(nmc.request.valid & nmc.request.ready):
            m.d.sync += line.eq(Mux(last, 0, line + 1))
        m.d.comb += [
            last.eq(line == dram.length),
            nmc.request.valid.eq(queue.o.valid & self.open),
            queue.o.ready.eq(nmc.request.ready & self.open & last),
            request.line.eq(Cat((dram.line + line)[:INTERLEAVE_BITS], dram.line[INTERLEAVE_BITS:])),
            *(request[name].eq(dram[name]) for name in ("op", "dtype", "tag")),
            request.mask.eq(Const(1).replicate(LINE_BYTES)),
            request.data.eq(line_values.line(self._config, dtype_of(self.seed, self._config), dram.tag[:16])),
            self.read_done.eq(nmc.done_valid & nmc.done_tag[READ_BIT]),
            self.read_data.eq(nmc.done_data),
            self.flags.eq(nmc.done_flags & nmc.done_valid.replicate(5)),
            self.uncorrectable.eq(nmc.uncorrectable),
            self.busy.eq(self.dram.valid | queue.o.valid | ~nmc.idle),
        ]
        m.submodules.counts = counts = UpdateCounts()
        m.d.comb += [
            counts.count.eq(self.dram.valid & self.dram.ready & self.dram.payload.tagged),
            counts.number.eq(gemm.block(self.dram.payload.line[: gemm.ADDRESS_BITS])),
            counts.forget.eq(self.forget),
            counts.asked.eq(self.block),
            self.updates.eq(counts.updates),
        ]
        self._store(m, nmc)
        return m

    def _store(self, m: Module, nmc: Any) -> None:
        """Block RAM with byte enables. The NMC unit never reads a line in the cycle that writes it."""
        depth = max(2, gemm.LINES // self._config.slices)
        m.submodules.lines = lines = Memory(shape=8 * LINE_BYTES, depth=depth, init=[], attrs={"ram_style": "block"})
        write, read = lines.write_port(granularity=8), lines.read_port()
        m.d.comb += [
            write.addr.eq(local_line(nmc.write_line, self._config.slices)),
            write.data.eq(nmc.write_data),
            write.en.eq(nmc.write_mask & nmc.write_valid.replicate(LINE_BYTES)),
            read.addr.eq(local_line(nmc.read_line, self._config.slices)),
            read.en.eq(nmc.read_valid),
            nmc.read_data.eq(read.data),
        ]
