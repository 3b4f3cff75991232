"""A program for the linked parts: the register writes of a driver that arms one small output, and then free traffic."""

from typing import Any

from amaranth.hdl import Array, Const, Signal
from t3hdl.config import preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkKind, Dtype, Op
from t3hdl.interface.words import WORD_BYTES, pack

from ..prover.harness import Harness

BASE, ADDENDS, TILES, LINES = 4, 2, 2, 2
LIMIT = BASE + TILES * LINES
"""The output: lines [BASE, LIMIT), LINES per tile, each updated ADDENDS times, a tile's by one burst; a row of TILES
tiles, one block, one chunk."""


SMALLEST = preset(
    "small", slices=1, node_inputs=1, ranges=1, contexts=1, tracker_sets=1, tracker_ways=1, tracker_banks=1,
    row_index_bits=0, descriptors=2, chunk_window=2, blocks=1, wavefronts=1, tile_count_bits=4, chunk_count_bits=8,
    token_queue=2, event_queue=3, egress_ports=1,
)  # fmt: skip
"""The least hardware in which every part is there."""


def program() -> tuple[tuple[int, int], ...]:
    """Register writes (address, data) in their order: range, profile, descriptor, arm of context 0."""
    ranges = (
        (regs.Line, {"line": BASE}),
        (regs.Line, {"line": LIMIT}),
        (regs.RangeAttributes, {"valid": 1, "op": Op.ADD, "dtype": Dtype.FP16}),
    )
    descriptor: tuple[dict[str, Any], ...] = (
        {"row1": 1, "col1": TILES, "kind": ChunkKind.DMA, "op": Op.ADD},
        {"expected": ADDENDS * TILES * LINES, "addends": ADDENDS},
        {"base": BASE, "pitch": TILES * LINES},
        {"col_shift": 1},
        {"tiles_inner": TILES, "tiles_bottom": TILES, "tiles_right": TILES, "tiles_corner": TILES},
        {},
    )
    return (
        *((regs.RANGE + WORD_BYTES * i, pack(layout, **fields)) for i, (layout, fields) in enumerate(ranges)),
        (regs.PROFILE, LINES),
        *(
            (regs.DESCRIPTOR + WORD_BYTES * i, pack(layout, **fields))
            for i, (layout, fields) in enumerate(zip(regs.DESCRIPTOR_LAYOUTS, descriptor, strict=True))
        ),
        (regs.CONTROL, pack(regs.Control, arm=1, descriptors=1)),
    )


def run_program(harness: Harness, core: Any) -> Signal:
    """Drives the bus of ``core`` with the program; returns a bit that is 1 once the output is live.

    ``core`` has the ports of T3Core. Nothing else is driven. The bus takes a write every second cycle.
    """
    m, writes = harness.m, program()
    step, live = Signal(range(len(writes) + 1)), Signal()
    address, data = (Array(Const(write[i], width) for write in writes)[step] for i, width in enumerate((16, 64)))
    valid = Signal()
    m.d.comb += valid.eq((step != len(writes)) & core.init_done)
    for name, value in (("valid", valid), ("write", 1), ("privileged", 0), ("address", address), ("data", data)):
        harness.drive(getattr(core, f"bus_{name}"), value)
    m.d.sync += [step.eq(step + (valid & core.bus_ready)), live.eq(core.live == 1)]
    return live


def quiet(harness: Harness, core: Any) -> None:
    """Ports that have no part in it are 0; call it after :func:`run_program`."""
    for name in [*harness.inputs]:
        if name.startswith(("store", "route", "nmc", "update_done", "command_done", "occupancy", "now")):
            harness.drive(harness.inputs[name], 0)
