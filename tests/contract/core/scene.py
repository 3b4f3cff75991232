"""A small ring job on T3Core: GPU 0 of a ring of four, programmed over the bus.

Chunk 0 is mapped to GPU 3, chunks 1 and 3 are sent on by DMA, chunk 2 stays. Every tile of chunks 1 to 3 gets a local
store and an incoming update.
"""

from dataclasses import replace
from functools import cache

from t3hdl.config import T3Config, preset
from t3hdl.core import T3Core
from t3hdl.export.verilog import write_verilog
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import BURST_LINES, ChunkKind, Dtype, Op, channel_of
from t3hdl.interface.signatures import core_signature
from t3hdl.interface.words import WORD_BYTES, word_map
from t3sim.hardware.rtl import build
from t3sim.hardware.rtl.backend import CompiledPart

from tests.contract.backends import InstanceBackend
from tests.contract.bench import Bench, bench_of

CONFIG = preset("small")
TINY = replace(CONFIG, slices=1, node_inputs=1, ranges=1, tracker_banks=1, descriptors=4)
"""As much as the jobs below need: Amaranth's simulator takes few seconds for it."""
ROWS, COLS, WAVEFRONTS = 3, 7, 2
BASE, CONTEXT, EPOCH = 0x12340, 1, 2
TILE_LINES = 4
PROFILE = {  # (bottom, right, wf): lines; the corner tile has one wavefront
    (0, 0, 0): 4, (0, 0, 1): 4, (1, 0, 0): 3, (1, 0, 1): 2, (0, 1, 0): 2, (0, 1, 1): 1, (1, 1, 0): 2, (1, 1, 1): 0,
}  # fmt: skip
COLUMNS = ((0, 2), (2, 4), (4, 6), (6, 7))
KINDS = (ChunkKind.REMOTE, ChunkKind.DMA, ChunkKind.LOCAL, ChunkKind.DMA)
ADDENDS = 2
PEER = 3
PEER_BASE = 0x7_0000
Block = tuple[int, int, int]
"""Chunk, block row, block column: two tile rows high, one tile column wide."""


def lines_of(row: int, col: int, wf: int) -> range:
    """The lines of a wavefront tile."""
    first = BASE + ((row * COLS + col) * WAVEFRONTS + wf) * TILE_LINES
    return range(first, first + PROFILE[int(row == ROWS - 1), int(col == COLS - 1), wf])


def chunk_of(col: int) -> int:
    return next(chunk for chunk, (low, high) in enumerate(COLUMNS) if low <= col < high)


def tiles_of(chunk: int) -> list[tuple[int, int, int]]:
    return [(row, col, wf) for row in range(ROWS) for col in range(*COLUMNS[chunk]) for wf in range(WAVEFRONTS)]


def block_of(row: int, col: int) -> Block:
    chunk = chunk_of(col)
    return chunk, row >> 1, col - COLUMNS[chunk][0]


def access(line: int, tile: tuple[int, int, int], op: Op, **fields: int) -> dict[str, int]:
    """A tagged access of a tile."""
    row, col, wf = tile
    values = {
        "line": line, "op": op, "dtype": Dtype.FP16, "stream": 0, "context": CONTEXT, "source": 0, "tagged": 1,
        "wf": wf, "right": int(col == COLS - 1), "bottom": int(row == ROWS - 1), "row": row, "col": col,
        "epoch": EPOCH, "tag": line,
    }  # fmt: skip
    return values | fields


def accesses(chunk: int, op: Op) -> list[dict[str, int]]:
    return [access(line, tile, op) for tile in tiles_of(chunk) for line in lines_of(*tile)]


def bursts(chunk: int, op: Op, lines: int = BURST_LINES) -> list[dict[str, int]]:
    """The accesses of a chunk in bursts of ``lines`` lines at most: a tile's rows are in one aligned block each."""
    return [
        access(part[0], tile, op, length=len(part) - 1)
        for tile in tiles_of(chunk)
        for start in range(0, len(lines_of(*tile)), lines)
        if (part := lines_of(*tile)[start : start + lines])
    ]


def programme(epoch: int = EPOCH) -> list[tuple[int, int]]:
    """Range, profile and descriptors as register writes."""
    attributes = {"valid": 1, "context": CONTEXT, "epoch": epoch, "op": Op.ADD, "dtype": Dtype.FP16}
    writes = [
        (regs.RANGE, BASE),
        (regs.RANGE_LIMIT, BASE + ROWS * COLS * WAVEFRONTS * TILE_LINES),
        (regs.RANGE_ATTRIBUTES, regs.RangeAttributes.const(attributes).as_bits()),
    ]
    writes += [
        (regs.PROFILE + 8 * (bottom * 32 + right * 16 + wf), lines) for (bottom, right, wf), lines in PROFILE.items()
    ]
    for chunk, ((col0, col1), kind) in enumerate(zip(COLUMNS, KINDS, strict=True)):
        words = (
            {"row0": 0, "row1": ROWS, "col0": col0, "col1": col1, "kind": kind, "op": Op.ADD, "peer": PEER},
            {"expected": ADDENDS * len(accesses(chunk, Op.ADD)), "addends": ADDENDS, "context": CONTEXT,
             "epoch": epoch, "dtype": Dtype.FP16},
            {"base": BASE, "pitch": COLS},
            {"peer_base": PEER_BASE, "row_shift": 1, "col_shift": 0, "row_blocks_log": 1},
            # the last chunk is one column wide, and its corner tile has a single wavefront
            {"tiles_inner": 4, "tiles_bottom": 2, "tiles_right": 4, "tiles_corner": 1 if chunk == 3 else 2},
            {"last_block_row": 1, "last_block_col": col1 - col0 - 1, "tile_rows": 4, "wavefront_rows": 2,
             "tile_lines": TILE_LINES, "last_rows": 2, "last_lines": 1, "bottom": 1, "right": int(col1 == COLS)},
        )  # fmt: skip
        for word, (layout, values) in enumerate(zip(regs.DESCRIPTOR_LAYOUTS, words, strict=True)):
            address = regs.DESCRIPTOR + chunk * regs.DESCRIPTOR_STRIDE + WORD_BYTES * word
            writes.append((address, layout.const(values).as_bits()))
    return writes


def request(bench: Bench, write: int, address: int, data: int = 0, *, error: int = 0) -> int:
    """One bus request that must be good, or with ``error`` an error; returns the data."""
    while not bench["bus_ready"]:
        bench.step()
    bench.step(bus_valid=1, bus_write=write, bus_address=address, bus_data=data)
    assert (bench["response_valid"], bench["response_error"]) == (1, error), hex(address)
    answer = bench["response_data"]
    bench.step(bus_valid=0)
    return answer


def control(bench: Bench, *, error: int = 0, **fields: int) -> None:
    """A write of CONTROL that must be good, or with ``error`` an error."""
    request(bench, 1, regs.CONTROL, regs.Control.const(fields).as_bits(), error=error)


def arm(bench: Bench, epoch: int = EPOCH, **arbiter: int) -> None:
    """Programs everything, arms, and waits until all chunks are live."""
    while not bench["init_done"]:
        bench.step()
    live = bench["live"]
    for address, data in programme(epoch):
        request(bench, 1, address, data)
    settings = {"mca": 0, "fixed": 0, "threshold": 127, "starvation": 64, "quantum": 8} | arbiter
    request(bench, 1, regs.ARBITER, regs.Arbiter.const(settings).as_bits())
    control(bench, arm=1, descriptors=len(KINDS), context=CONTEXT)
    bench.step(80)
    assert (bench["armed"], bench["live"] - live) == (1, len(KINDS))


def drams(bench: Bench) -> list[str]:
    """The streams to memory, one per slice."""
    return [name for name in bench.got if name.startswith("dram.")]


def send(bench: Bench, port: str, items: list[dict[str, int]]) -> None:
    """Each access to the slice of its channel."""
    for item in items:
        bench.send[f"{port}.{channel_of(item['line'], len(drams(bench)))}"].append(item)


def drain(bench: Bench) -> None:
    while any(bench.send.values()):
        bench.step()
    bench.step(150)


@cache
def _verilog(config: T3Config) -> str:
    return write_verilog(T3Core(config=config), "t3_core")


def compiled_core(config: T3Config) -> CompiledPart:
    """The core's Verilog, compiled in little time: no test runs it for long."""
    words = word_map(core_signature(config))
    path = build.library("t3_core", _verilog(config), words, optimise=0 if config == TINY else 1)
    return CompiledPart("t3_core", words, path)


def core(simulator: str, config: T3Config = CONFIG, *, seed: int = 1) -> Bench:
    """A core on a bench, in Amaranth's simulator ("amaranth") or compiled ("rtl"); there is no golden model of it."""
    if simulator == "amaranth":
        return bench_of("amaranth", "core", config, seed=seed)
    return Bench(InstanceBackend(compiled_core(config).part_type, core_signature(config)), seed=seed)


def fire_one_block(bench: Bench, epoch: int = EPOCH) -> None:
    """The corner block fires ``latency`` cycles after the last transfer, and not before."""
    arm(bench, epoch)
    items = [access(line, tile, Op.ADD, epoch=epoch) for tile in ((2, 2, 0), (2, 2, 1)) for line in lines_of(*tile)]
    send(bench, "comm_write", items)
    send(bench, "compute_write", items[:-1])
    drain(bench)
    assert not bench.got["command"] and bench["idle"]
    send(bench, "compute_write", items[-1:])
    bench.step(40)
    last = max(cycle for stream in drams(bench) for cycle, _ in bench.got[stream])
    (cycle, command) = bench.got["command"].pop()
    assert cycle == last + T3Core(config=TINY).latency
    assert (command["row"], command["col"], command["by_chunk"]) == (2, 2, 0)
