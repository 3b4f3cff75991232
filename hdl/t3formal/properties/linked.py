"""A DMA read returns every update that was counted: shown once, from reset, for one slice and one bank, no further.

For every run and size it should follow from the parts, by an argument that no tool checks: a slice counts what the DRAM
queue has taken, token queue and network neither lose nor invent counts, the tracker completes a tile at its threshold,
the trigger fires a block after its tiles or its chunk. So the updates are in the DRAM queue before the command, and the
read, which comes after the command, is behind them; the memory does not reorder accesses to one line. Here all parts do
it once, linked.
"""

from amaranth.hdl import Mux, Signal, Value
from t3hdl.config import T3Config
from t3hdl.core import T3Core
from t3hdl.interface.layouts import MemoryRequest, Op

from ..models.program import ADDENDS, BASE, LINES, SMALLEST, TILES, quiet, run_program
from ..prover.harness import Harness
from ..prover.proof import Proof


def _writes(harness: Harness, core: T3Core, live: Signal) -> None:
    """Each tile gets one local and one incoming update of all its lines, in any order, at any time."""
    m = harness.m
    for name in ("compute_write", "comm_write"):
        port, done = getattr(core, name)[0], Signal(TILES, name=f"{name}_done")
        kept, waits = Signal(name=f"{name}_kept"), Signal(name=f"{name}_waits")
        request, tile = Signal(MemoryRequest, name=f"{name}_request"), Signal(name=f"{name}_tile")
        m.d.comb += [
            tile.eq(Mux(waits, kept, harness.free(f"{name}_which"))),
            request.line.eq(BASE + LINES * tile),
            request.length.eq(LINES - 1),
            request.col.eq(tile),
            request.tagged.eq(1),
            request.op.eq(Op.ADD),
        ]
        valid = waits | (harness.free(f"{name}_wish") & live & ~done.bit_select(tile, 1))
        m.d.sync += [kept.eq(tile), waits.eq(port.valid & ~port.ready)]
        with m.If(port.valid):
            m.d.sync += done.eq(done | (1 << tile))
        harness.drive(port.payload, request)
        harness.drive(port.valid, valid)


def _reads(harness: Harness, core: T3Core, live: Signal, commanded: Signal, line: Value) -> None:
    """After the command, the DMA engine reads the line; the GPU reads elsewhere now and then."""
    m, request, waits = harness.m, Signal(MemoryRequest, name="dma_request"), Signal(name="gpu_waits")
    m.d.comb += request.line.eq(line)
    harness.drive(core.comm_read[0].payload, request)
    harness.drive(core.comm_read[0].valid, commanded)
    harness.drive(core.compute_read[0].payload, 0)
    harness.drive(core.compute_read[0].valid, waits | (harness.free("gpu_wish") & live))
    m.d.sync += waits.eq(core.compute_read[0].valid & ~core.compute_read[0].ready)


def _read_after_count(config: T3Config) -> Harness:
    """One line of the output is chosen. The model of the memory is how many updates of it the DRAM queue has taken."""
    core = T3Core(config=config)
    harness = Harness(core)
    m, dram, command = harness.m, core.dram[0], core.command
    live = run_program(harness, core)
    quiet(harness, core)
    line, commanded, by_chunk, accepted = Signal(3), Signal(), Signal(), Signal(2)
    m.d.comb += line.eq(BASE + harness.chosen("line_of_interest", 2))
    with m.If(command.valid & command.ready):
        m.d.sync += [commanded.eq(1), by_chunk.eq(command.payload.by_chunk)]
    _writes(harness, core, live)
    _reads(harness, core, live, commanded, line)
    here, reads = Signal(), Signal()
    m.d.comb += [
        here.eq(
            dram.valid & dram.ready & (dram.payload.line <= line) & (line <= dram.payload.line + dram.payload.length)
        ),
        reads.eq(here & (dram.payload.op == Op.READ)),
    ]
    m.d.sync += accepted.eq(accepted + (here & dram.payload.tagged))
    harness.claim("a DMA read of the block finds all its updates in the DRAM queue", ~reads | (accepted == ADDENDS))
    harness.claim("no command before the last of them", ~command.valid | (accepted == ADDENDS))
    harness.cover("a read of a block that was fired by the count of its chunk", reads & by_chunk)
    harness.cover("a read of a block that was fired by the counts of its tiles", reads & ~by_chunk)
    return harness


PROOFS = (
    Proof(
        name="linked.read-after-count",
        invariants=(9,),
        says="Bounded, and for one slice and one bank alone: after a command a DMA read finds every counted update of "
        "its line before it in the DRAM queue, from reset through one complete fire, by tiles and by the chunk, up to "
        "the read.",
        harness=_read_after_count,
        sizes={"smallest": SMALLEST},
        method="bounded",
        depth=68,
        quick=False,
        limit_s=1200,
    ),
)
