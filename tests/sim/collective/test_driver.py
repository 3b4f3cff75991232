"""The driver's register writes, read back field by field, and the outputs that the hardware cannot hold."""

from dataclasses import replace

import pytest
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkKind, Dtype, Op
from t3hdl.interface.words import pack, unpack
from t3sim.collective.arbitration import Arbitration, arbitration_of
from t3sim.collective.driver import EPOCH, Driver
from t3sim.inputs.geometry import Blocks, Chunk, Grid
from t3sim.inputs.machine.files import load_machine

BASE = 0x1_8000
GRID = Grid(m=200, n=136, tile_rows=32, tile_cols=32, wavefronts=2)


def driver(config: T3Config | None = None, grid: Grid = GRID, **overrides: object) -> Driver:
    machine = load_machine("toy", overrides)
    return Driver(config or preset("small"), machine.link.receive_lines, grid, BASE)


def arbitrated(compute_first: bool = True, **overrides: object) -> Arbitration:
    machine = load_machine("toy", overrides)
    return arbitration_of(
        machine.arbiter, compute_first=compute_first, backlog=9, patience=33, queue_lines=machine.hbm.queue_slots
    )


def test_a_job_whose_early_updates_find_no_room_is_not_armed():
    """Two chunks, one live at a time by their tile marks: what comes for the second one must fit the receive buffer."""
    program = driver(replace(preset("small"), tile_marks=16), **{"link.rx_buffer_kib": 1})
    for first in (0, 2):
        program.own(Chunk(0, 4, first, first + 2), 2, Blocks(0, 0, 1, 1))
    assert program.incoming == [128 * 4, 128 * 4]
    program.arm()
    program = driver(replace(preset("small"), tile_marks=8), **{"link.rx_buffer_kib": 1})
    for first in (0, 2):
        program.own(Chunk(0, 4, first, first + 2), 2, Blocks(0, 0, 1, 1))
    with pytest.raises(ValueError, match=r"2 chunks of this output are tracked, 1 are live at a time"):
        program.arm()
    assert regs.CONTROL not in dict(program.writes)


def test_pack_reads_back():
    values = {"row0": 1, "row1": 4095, "col0": 7, "col1": 4000, "kind": 2, "op": 5, "peer": 255}
    assert unpack(regs.DESCRIPTOR_LAYOUTS[0], pack(regs.DESCRIPTOR_LAYOUTS[0], **values)) == values
    assert pack(regs.Control) == 0


@pytest.mark.parametrize("value", [-1, 4096])
def test_pack_refuses_what_does_not_fit(value):
    with pytest.raises(ValueError, match=rf"^field row1 has 12 bits and takes 0 to 4095, not {value}$"):
        pack(regs.DESCRIPTOR_LAYOUTS[0], row1=value)


def test_range_and_profile():
    program = driver()
    program.map_output()
    writes = dict(program.writes)
    assert len(writes) == len(program.writes) == 3 + 4 * GRID.wavefronts
    assert (writes[regs.RANGE], writes[regs.RANGE_LIMIT]) == (BASE, BASE + 200 * 9)
    assert unpack(regs.RangeAttributes, writes[regs.RANGE_ATTRIBUTES]) == {
        "valid": 1,
        "context": 0,
        "epoch": EPOCH,
        "op": Op.ADD,
        "dtype": Dtype.FP16,
    }
    # 200 rows: the last tile row has 8 rows, all in wavefront 0. 136 columns: the last tile has 8 of them, 1 line.
    lines = {(0, 0): (32, 32), (0, 1): (16, 16), (1, 0): (16, 0), (1, 1): (8, 0)}
    for (bottom, right), counts in lines.items():
        for wf, count in enumerate(counts):
            assert writes[regs.PROFILE + 8 * (bottom * 32 + right * 16 + wf)] == count


def descriptor(program: Driver, number: int) -> dict[str, int]:
    first = regs.DESCRIPTOR + number * regs.DESCRIPTOR_STRIDE
    writes = dict(program.writes)
    fields: dict[str, int] = {}
    for i, layout in enumerate(regs.DESCRIPTOR_LAYOUTS):
        fields |= unpack(layout, writes[first + 8 * i])
    return fields


def test_descriptors():
    program = driver()
    remote, dma, own = Chunk(0, 3, 0, 5), Chunk(3, 7, 0, 2), Chunk(3, 7, 2, 5)
    program.remote_map(remote, 2)
    program.dma_map(dma, 2, 2, Blocks(1, 0, 2, 2))
    program.own(own, 2, Blocks(1, 1, 2, 2))
    assert program.mapped == 3 and len(program.writes) == 3 * regs.DESCRIPTOR_WORDS
    got = descriptor(program, 0)
    assert (got["kind"], got["peer"], got["addends"], got["expected"]) == (ChunkKind.REMOTE, 2, 0, 0)
    assert (got["row0"], got["row1"], got["col0"], got["col1"], got["op"]) == (0, 3, 0, 5, Op.ADD)
    got = descriptor(program, 1)
    assert (got["kind"], got["peer"], got["addends"]) == (ChunkKind.DMA, 2, 2)
    # rows 96 to 199, columns 0 to 63: 104 x 4 lines, each twice
    assert got["expected"] == 2 * 104 * 4
    assert (got["base"], got["peer_base"], got["pitch"]) == (BASE, BASE, 9)
    assert (got["row_shift"], got["col_shift"], got["row_blocks_log"]) == (1, 0, 1)
    assert (got["last_block_row"], got["last_block_col"]) == (1, 1)
    # a block is two tile rows: four wavefront tiles, and three in the last block, whose last tile has one
    assert [got[f"tiles_{place}"] for place in ("inner", "bottom", "right", "corner")] == [4, 3, 4, 3]
    got = descriptor(program, 2)
    assert (got["kind"], got["peer"], got["expected"]) == (ChunkKind.LOCAL, 0, 2 * 104 * 5)
    # two tile columns in the first block, one in the last
    assert [got[f"tiles_{place}"] for place in ("inner", "bottom", "right", "corner")] == [8, 6, 4, 3]


@pytest.mark.parametrize("compute_first", [True, False])
@pytest.mark.parametrize(
    ("settings", "starvation", "quiet", "backlog", "limits"),
    [
        ({"arbiter.mca": "paper"}, 64, 0, 0, (127, 30, 10, 5)),
        ({"arbiter.mca": "paper", "hbm.queue_lines": 32}, 64, 0, 0, (127, 15, 5, 2)),
        ({}, 1000, 255, 9, (10, 10, 10, 255)),
        ({"hbm.queue_lines": 32, "arbiter.backlog_turns_percent": 25}, 1000, 255, 9, (5, 255, 255, 255)),
        ({"arbiter.backlog_turns_percent": 100, "arbiter.backlog_quiet_lines": 3}, 1000, 3, 9, (10, 10, 10, 10)),
        ({"arbiter.backlog_threshold": 127}, 1000, 255, 9, (127, 127, 127, 255)),
    ],
)
def test_arbiter_and_arm(compute_first, settings, starvation, quiet, backlog, limits):
    program = driver()
    program.remote_map(Chunk(0, 1, 0, 1), 1)
    program.set_arbiter(arbitrated(compute_first, **settings))
    program.arm()
    writes = dict(program.writes)
    arbiter = unpack(regs.Arbiter, writes[regs.ARBITER])
    waiting = {"starvation": starvation, "quantum": 16, "quiet": quiet}
    assert arbiter == {"mca": int(compute_first), "fixed": 0, "threshold": 127, **waiting}
    named = dict(zip(("under_25", "under_50", "under_75", "above"), limits, strict=True))
    late = {"backlog": backlog, "patience": 33 if backlog else 0}
    assert unpack(regs.Thresholds, writes[regs.THRESHOLDS]) == named | late
    control = unpack(regs.Control, writes[regs.CONTROL])
    assert {name: value for name, value in control.items() if value} == {"arm": 1, "descriptors": 1}
    assert program.writes[-1][0] == regs.CONTROL


def test_the_largest_chunk_says_how_the_tile_marks_are_shared():
    config = replace(preset("small"), tile_marks=64)  # 16 for each of 4 chunks
    for rows, cols, halvings in ((4, 4, 0), (3, 4, 0), (5, 2, 0), (5, 3, 1), (8, 4, 1), (8, 5, 2), (1, 64, 2)):
        program = driver(config, Grid(m=8 * 32, n=64 * 32, tile_rows=32, tile_cols=32, wavefronts=2))
        program.remote_map(Chunk(0, 8, 0, 64), 1)
        program.own(Chunk(0, 1, 0, 1), 1, Blocks(3, 6, 1, 1))
        program.dma_map(Chunk(0, rows, 0, cols), 1, 1, Blocks(3, 6, 1, 1))
        program.arm()
        assert dict(program.writes)[regs.TILE_MARKS] == halvings, (rows, cols)


def test_too_many_tiles_for_the_marks():
    large = Grid(m=8 * 32, n=64 * 32, tile_rows=32, tile_cols=32, wavefronts=2)
    program = driver(replace(preset("small"), tile_marks=64), large)
    with pytest.raises(
        ValueError,
        match=r"^a chunk of this output has 5 x 9 workgroup tiles, which take 128 tile marks, but the hardware has 64: "
        r"set hardware.tile_marks to at least 128, or use a larger TP$",
    ):
        program.own(Chunk(0, 5, 0, 9), 1, Blocks(3, 6, 1, 1))


def test_thresholds_scale_with_the_queue():
    settings = {"arbiter.mca": "paper", "hbm.queue": "split", "hbm.read_lines": 8, "hbm.write_lines": 8}
    assert {"backlog": 0, "patience": 0} | arbitrated(**settings).thresholds == {
        "under_25": 127,
        "under_50": 7,
        "under_75": 2,
        "above": 1,
        "backlog": 0,
        "patience": 0,
    }


def test_too_many_chunks():
    program = driver()
    for _ in range(8):
        program.remote_map(Chunk(0, 1, 0, 1), 1)
    with pytest.raises(
        ValueError,
        match=r"^the T3 hardware has 8 descriptors, one per chunk, but the output has more chunks: use at most TP 8 "
        r"or set hardware.descriptors$",
    ):
        program.remote_map(Chunk(0, 1, 0, 1), 1)
    assert program.mapped == 8


def test_chunk_counter_too_small():
    chunk, lines = Chunk(0, 7, 0, 5), 2 * 1800
    fits = driver(replace(preset("small"), chunk_count_bits=12))
    fits.own(chunk, 2, Blocks(3, 3, 1, 1))
    assert descriptor(fits, 0)["expected"] == lines
    with pytest.raises(
        ValueError,
        match=r"^a chunk of this output takes 3600 updates, but the hardware's chunk_count_bits counts to 2047: set "
        r"hardware.chunk_count_bits to at least 12$",
    ):
        driver(replace(preset("small"), chunk_count_bits=11)).own(chunk, 2, Blocks(3, 3, 1, 1))


def test_tile_counter_too_small():
    driver(replace(preset("small"), tile_count_bits=7)).own(Chunk(0, 1, 0, 1), 2, Blocks(0, 0, 1, 1))
    with pytest.raises(
        ValueError,
        match=r"^a wavefront tile of this output takes 64 updates, but the hardware's tile_count_bits counts to 63: "
        r"set hardware.tile_count_bits to at least 7$",
    ):
        driver(replace(preset("small"), tile_count_bits=6)).own(Chunk(0, 1, 0, 1), 2, Blocks(0, 0, 1, 1))


def test_pitch_too_wide_for_the_hardware():
    wide = Grid(m=32, n=16 * (1 << 16), tile_rows=32, tile_cols=32, wavefronts=2)
    with pytest.raises(ValueError, match=r"^field pitch has 16 bits and takes 0 to 65535, not 65536$"):
        driver(grid=wide).remote_map(Chunk(0, 1, 0, 1), 1)
