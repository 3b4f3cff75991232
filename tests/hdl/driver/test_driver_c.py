"""The C driver against the compiled unit: a ring reduce-scatter of four GPUs, and what it says when things go wrong."""

import ctypes

import numpy as np
import pytest
from t3hdl.config import preset
from t3hdl.export.verilog import PARTS, write_verilog
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Dtype, Op
from t3hdl.interface.signatures import nmc_signature, unit_signature
from t3hdl.interface.words import word_map
from t3sim.hardware.abi import Instance
from t3sim.hardware.rtl import build as rtl_build
from t3sim.hardware.rtl.backend import CompiledPart

from tests.hdl.driver.c_driver import (
    EBUS,
    EEPOCH,
    EFAULT,
    EINVAL,
    ERANGE,
    ETIMEDOUT,
    EWINDOW,
    OK,
    READ,
    WRITE,
    Arbiter,
    Bus,
    Chunk,
    COutput,
    Device,
    Job,
    Stuck,
    Tile,
    compiled,
)
from tests.hdl.driver.ring_machine import Gpu, Output, Ring, lines_of

pytestmark = pytest.mark.long  # compiles a whole unit

CONFIG = preset("small")
GPUS = 4
POLLS = 10_000
OUTPUT = Output(base=0x4000, rows=10, lines=15, pitch=16, tile_rows=4, tile_lines=2, wavefront_rows=2)
COLUMNS = ((0, 2), (2, 4), (4, 6), (6, 8))
"""Tile columns of each chunk; a chunk has all three tile rows."""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="module")
def parts():
    """The compiled unit and NMC unit."""
    made = {}
    for name, signature in (("unit", unit_signature), ("nmc", nmc_signature)):
        words = word_map(signature(CONFIG))
        text = write_verilog(PARTS[name](CONFIG), f"t3_{name}")
        made[name] = CompiledPart(f"t3_{name}", words, rtl_build.library(f"t3_{name}", text, words))
    yield made
    for part in made.values():
        part.free()


@pytest.fixture
def ring(parts):
    def gpu(number):
        nmcs = [Instance(parts["nmc"].part_type) for _ in range(CONFIG.slices)]
        return Gpu(CONFIG, Instance(parts["unit"].part_type), nmcs, OUTPUT, seed=number)

    return Ring([gpu(number) for number in range(GPUS)])


class Host:
    """A driver's view of one GPU of the ring."""

    def __init__(self, library, ring, gpu):
        def read(_, address, value):
            response, value[0] = ring.read(gpu, address)
            return response

        def write(_, address, value):
            return ring.write(gpu, address, value)

        self.bus = Bus(READ(read), WRITE(write), None)
        self.device, self.job, self.library = Device(), Job(), library

    def call(self, name, *arguments):
        return getattr(self.library, f"t3_{name}")(*arguments)

    def open(self):
        return self.call("open", ctypes.byref(self.device), ctypes.byref(self.bus), ctypes.c_ulong(POLLS))

    def map_output(self, first=0, **changes):
        fields = {
            "base": OUTPUT.base * 32, "rows": OUTPUT.rows, "columns_bytes": OUTPUT.lines * 32,
            "pitch_bytes": OUTPUT.pitch * 32, "tile_rows": OUTPUT.tile_rows, "tile_bytes": OUTPUT.tile_lines * 32,
            "wavefront_rows": OUTPUT.wavefront_rows, "range": 0, "context": 1, "epoch": 0, "op": Op.ADD,
            "dtype": Dtype.FP16, **changes,
        }  # fmt: skip
        output = COutput(**{name: int(value) for name, value in fields.items()})
        return self.call("map_output", ctypes.byref(self.job), ctypes.byref(self.device), ctypes.byref(output), first)

    def job_call(self, name, *arguments):
        return self.call(name, ctypes.byref(self.job), *arguments)

    def polled(self, name, polls=POLLS):
        return self.job_call(name, ctypes.c_ulong(polls))


def chunk(number):
    return ctypes.byref(Chunk(0, 3, *COLUMNS[number]))


def program(host, gpu):
    """What the collective calls on GPU ``gpu``: chunk c starts at GPU c + 1 and ends at GPU c."""
    peer, base = (gpu + 1) % GPUS, OUTPUT.base * 32
    assert host.job_call("remote_map", chunk((gpu - 1) % GPUS), peer, base) == OK
    for distance in (2, 3):
        assert host.job_call("dma_map", chunk((gpu - distance) % GPUS), peer, base, 2, 1, 0) == OK
    assert host.job_call("local_map", chunk(gpu), 2) == OK


def partial_outputs(seed):
    """FP16 partial results of every GPU, and their sums in the order of the ring, chunk by chunk."""
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(GPUS, OUTPUT.rows, OUTPUT.pitch * 16)).astype(np.float16)
    sums = np.zeros_like(values[0])
    for number, (low, high) in enumerate(COLUMNS):
        columns = slice(low * OUTPUT.tile_lines * 16, min(high * OUTPUT.tile_lines, OUTPUT.lines) * 16)
        for distance in range(1, GPUS + 1):
            sums[:, columns] += values[(number + distance) % GPUS][:, columns]
    return values, sums


def test_ring_reduce_scatter(library, ring):
    """Every GPU ends with the sum of its chunk, bit by bit; twice, with another epoch and without a disarm."""
    hosts = [Host(library, ring, gpu) for gpu in range(GPUS)]
    for host in hosts:
        assert host.open() == OK
    for run in range(2):
        values, sums = partial_outputs(seed=run)
        for gpu in ring.gpus:
            gpu.memory.clear()
        for number, host in enumerate(hosts):
            assert host.map_output(epoch=run) == OK
            program(host, number)
        for host in hosts:
            assert host.polled("arm") == OK
        for number, gpu in enumerate(ring.gpus):
            stored = dict(enumerate(lines_of(values[number])))
            rows, cols = OUTPUT.tiles
            for tile in range(cols):
                for row in range(rows):
                    gpu.store(row, (tile + 2 * number) % cols, stored, epoch=run)
        for host in hosts:
            assert host.polled("wait") == OK
        for number, gpu in enumerate(ring.gpus):
            expected = lines_of(sums)
            low, high = (edge * OUTPUT.tile_lines for edge in COLUMNS[number])
            for row in range(OUTPUT.rows):
                for line in range(low, min(high, OUTPUT.lines)):
                    offset = row * OUTPUT.pitch + line
                    assert gpu.memory[OUTPUT.base + offset] == expected[offset], (run, number, row, line)


def test_refusals(library, ring):
    """Each kind of mistake has its own answer, and a sentence."""
    host = Host(library, ring, 0)
    assert host.open() == OK
    assert host.map_output(base=OUTPUT.base * 32 + 8) == EINVAL
    assert host.map_output(base=OUTPUT.base * 32 + 128) == EINVAL, "bursts are of 256-byte blocks"
    assert host.map_output(op=Op.READ) == EINVAL
    assert host.map_output(context=CONFIG.contexts) == ERANGE
    assert host.map_output(range=CONFIG.ranges) == ERANGE
    assert host.map_output(wavefront_rows=1) == ERANGE  # four wavefronts, the unit has two
    assert host.map_output(base=1 << 45) == EINVAL  # 44 bits of address
    assert host.map_output(first=CONFIG.descriptors) == ERANGE
    assert host.map_output() == OK
    assert host.job_call("local_map", ctypes.byref(Chunk(0, 4, 0, 1)), 2) == EINVAL
    assert host.job_call("local_map", ctypes.byref(Chunk(2, 1, 0, 1)), 2) == EINVAL
    assert host.job_call("local_map", chunk(0), 0) == EINVAL  # no update ever
    assert host.job_call("local_map", chunk(0), 255) == ERANGE  # a tile of 4 lines takes more than its counter holds
    assert host.job_call("dma_map", chunk(0), 1, 0, 2, 40, 0) == EINVAL
    assert host.job_call("dma_map", chunk(0), 1, 0, 2, 0, 0) == ERANGE  # 4 x 2 blocks by number, the unit has four
    program(host, 0)
    assert host.polled("arm") == OK
    assert host.polled("arm") == EBUS  # it is armed
    assert host.map_output() == EEPOCH
    assert host.map_output(epoch=1) == EBUS  # its range is locked
    assert host.polled("wait", polls=3) == ETIMEDOUT
    assert host.polled("abort") == OK
    for _ in range(CONFIG.descriptors - 4):
        assert host.job_call("local_map", chunk(0), 1) == OK
    assert host.job_call("local_map", chunk(0), 1) == ERANGE
    sentences = {library.t3_strerror(error) for error in range(0, -10, -1)}
    assert len(sentences) == 10


def test_more_chunks_than_can_be_live_need_room_for_early_updates(library, ring):
    """Five chunks of 12 lines, of which four are live at a time, or three by a quota: the others' updates must fit."""
    host = Host(library, ring, 0)
    assert host.open() == OK
    assert CONFIG.chunk_window == 4

    def mapped(chunks, epoch):
        assert host.map_output(epoch=epoch) == OK
        assert host.job_call("remote_map", ctypes.byref(Chunk(0, 3, 7, 8)), 1, OUTPUT.base * 32) == OK
        for column in range(chunks):
            assert host.job_call("local_map", ctypes.byref(Chunk(0, 3, column, column + 1)), 2) == OK

    def room(lines):
        host.call("set_early_room", ctypes.byref(host.device), ctypes.c_uint64(lines))

    of_a_chunk = 2 * OUTPUT.rows * OUTPUT.tile_lines
    mapped(5, epoch=0)
    room(of_a_chunk - 1)
    assert host.polled("arm") == EWINDOW
    assert not ring.gpus[0].unit.get("armed")
    room(of_a_chunk)
    assert host.polled("arm") == OK
    assert host.polled("abort") == OK
    room(0)
    mapped(4, epoch=1)
    assert host.polled("arm") == OK
    assert host.polled("abort") == OK
    assert host.call("set_quota", ctypes.byref(host.device), 1, 2, 3, 255) == OK
    mapped(4, epoch=2)
    assert host.polled("arm") == EWINDOW


def test_a_missing_tile_is_named(library, ring):
    """The watchdog names the block, with how much of it is there; an abort frees the job, and the next one runs."""
    host, gpu, stuck = Host(library, ring, 0), ring.gpus[0], Stuck()
    assert host.open() == OK
    assert host.map_output() == OK
    assert host.job_call("dma_map", chunk(1), 1, OUTPUT.base * 32, 1, 1, 0) == OK
    assert host.call("set_watchdog", ctypes.byref(host.device), 300) == OK
    assert host.polled("arm") == OK
    stored = dict.fromkeys(range(OUTPUT.rows * OUTPUT.pitch), 0)
    for row, col in ((0, 2), (2, 2), (1, 3), (2, 3)):
        gpu.store(row, col, stored)
    assert host.polled("wait", polls=200) == ETIMEDOUT
    assert host.call("stuck", ctypes.byref(host.device), ctypes.byref(stuck)) == 1
    assert (stuck.descriptor, stuck.context, stuck.expected, stuck.seen) == (0, 1, 4, 2)
    assert stuck.block == 0
    assert host.polled("abort") == OK
    before = gpu.unit.get("armed")
    assert host.map_output() == EEPOCH, "late updates of the aborted job would count"
    assert gpu.unit.get("armed") == before
    assert host.map_output(context=0) == OK, "another context's job may have it"
    fresh = Host(library, ring, 0)
    assert fresh.open() == OK
    assert fresh.map_output() == EBUS, "a driver that does not know of the job is refused by the unit"
    assert host.map_output(epoch=1) == OK
    assert host.job_call("local_map", chunk(1), 1) == OK
    assert host.polled("arm") == OK
    for row in range(3):
        for col in (2, 3):
            gpu.store(row, col, stored, epoch=1)
    assert host.polled("wait") == OK
    assert host.map_output(epoch=1) == OK, "nothing of a complete job is under way"


@pytest.mark.parametrize("again", [2, None])
def test_a_line_that_comes_twice_is_an_error_and_its_tile_is_named(library, ring, again):
    """One of tile (1, 2), repeated behind the tile number ``again``, when its tile is complete, or not at all."""
    host, gpu, tile = Host(library, ring, 0), ring.gpus[0], Tile()
    assert host.open() == OK
    assert host.map_output() == OK
    for number in (1, 2):
        assert host.job_call("local_map", chunk(number), 1) == OK
    assert host.polled("arm") == OK
    stored = dict.fromkeys(range(OUTPUT.rows * OUTPUT.pitch), 0)
    places = [(1, 2), (0, 2), (2, 2), (0, 3), (1, 3), (2, 3)]
    for number, (row, col) in enumerate(places):
        gpu.store(row, col, stored)
        if number == again:
            gpu.store(1, 2, stored, rows=slice(1))
    gpu.store(0, 4, stored, rows=slice(1))  # of the other chunk: no tile that is left
    assert host.polled("wait", polls=300) == (ETIMEDOUT if again is None else EFAULT)
    assert host.job_call("left_tile", ctypes.byref(tile), ctypes.c_ulong(300)) == ETIMEDOUT
    for row, col in ((0, 4), (1, 4), (2, 4), (0, 5), (1, 5), (2, 5)):
        gpu.store(row, col, stored, rows=slice(int((row, col) == (0, 4)), None))
    assert host.polled("wait") == (OK if again is None else EFAULT)
    found = host.job_call("left_tile", ctypes.byref(tile), ctypes.c_ulong(POLLS))
    assert found == (0 if again is None else 1)
    if again is not None:
        assert (tile.row, tile.col, tile.wf, tile.updates) == (1, 2, 0, OUTPUT.tile_lines)
        assert regs.Errors.from_bits(ring.read(0, regs.ERRORS)[1]).over_total == 1


def test_jobs_of_two_contexts_share_one_geometry(library, ring):
    """A second job may be mapped and armed while the first one runs, if its tiles have the same shape."""
    one, other = Host(library, ring, 0), Host(library, ring, 0)
    assert one.open() == OK
    other.device = one.device
    assert one.map_output(context=0) == OK
    assert one.job_call("local_map", chunk(0), 1) == OK
    assert one.polled("arm") == OK
    elsewhere = {"range": 1, "base": OUTPUT.base * 64, "first": 1}
    assert other.map_output(tile_rows=2, **elsewhere) == EBUS  # the profile is in use
    assert other.map_output(**elsewhere) == OK
    assert other.job_call("local_map", chunk(1), 1) == OK
    assert other.polled("arm") == OK
    for host in (one, other):
        assert host.polled("abort") == OK
    assert one.map_output(context=0, epoch=1) == OK
    assert one.job_call("local_map", chunk(0), 1) == OK
    assert other.map_output(tile_rows=2, epoch=1, **elsewhere) == OK
    assert one.polled("arm") == ERANGE


def test_settings_read_back(library, ring):
    """Arbiter, interrupts and lock are as asked for; what does not fit is refused."""
    host = Host(library, ring, 0)
    assert host.open() == OK
    device = ctypes.byref(host.device)
    arbiter = Arbiter(1, 0, (ctypes.c_uint * 4)(127, 20, 10, 255), 3, 500, 100, 4, 200)
    assert host.call("set_arbiter", device, ctypes.byref(arbiter)) == OK
    assert ring.read(0, regs.THRESHOLDS)[1] == 127 | 20 << 8 | 10 << 16 | 255 << 24 | 3 << 32 | 500 << 48
    shown = regs.Arbiter.from_bits(ring.read(0, regs.ARBITER)[1])
    assert (shown.mca, shown.fixed, shown.starvation, shown.quantum, shown.quiet) == (1, 0, 100, 4, 200)
    arbiter.thresholds[1] = 128
    assert host.call("set_arbiter", device, ctypes.byref(arbiter)) == EINVAL
    arbiter.thresholds[1] = 127
    for field, least in (("quantum", 256), ("quiet", 256), ("patience", 65536), ("backlog", 65536)):
        setattr(arbiter, field, least)
        assert host.call("set_arbiter", device, ctypes.byref(arbiter)) == EINVAL
        setattr(arbiter, field, 4)
    locked_write, happened = 1 << 7, ctypes.c_uint64()
    assert host.call("enable_interrupts", device, ctypes.c_uint64(locked_write)) == OK
    assert host.call("lock", device, ctypes.c_uint64(1)) == OK
    assert host.call("set_watchdog", device, 5) == EBUS
    assert ring.gpus[0].unit.get("interrupt") == 1
    assert host.call("take_interrupts", device, ctypes.byref(happened)) == OK
    assert happened.value == locked_write and ring.gpus[0].unit.get("interrupt") == 0
