"""The programme of a round, for each of the four GPUs: what software does with the unit, as words of a ROM.

The order is that of the C driver: map the output, its chunks, arm, wait, look at the status.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum

from amaranth.lib import data
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkKind, ContextStatus, profile_index
from t3hdl.interface.words import WORD_BYTES, mask_of, pack

from . import gemm
from .traffic import CONTEXT

STEPS = 64
"""Places for the steps of one GPU's programme."""
WATCHDOG_CYCLES = 8192
"""Far above the longest time without progress of a good round."""
_LOW = (1 << 32) - 1


class Kind(IntEnum):
    """What a step does."""

    END = 0
    WRITE = 1
    POLL = 2
    """Read again and again until the bits of the mask are as wanted."""
    EQUAL = 3
    """Read once; the bits of the mask must be as wanted."""
    RUN = 4
    """Start what the address names (:class:`Run`), and wait until it is over."""
    STUCK = 5
    """Read STUCK, for the report."""


class Patch(IntEnum):
    """What is put into a step's data: the round's operation, data type, epoch. For EQUAL, REPORT gives it out."""

    NONE = 0
    RANGE = 1
    PLACE = 2
    AMOUNT = 3
    REPORT = 1


class Parts(Enum):
    """What a programme is for."""

    UNIT = "unit"
    TRIGGER = "tracker and trigger"
    TRACKER = "tracker"


class Run(IntEnum):
    """What a RUN step starts."""

    ZERO = 0
    PLAY = 1
    CHECK = 2


Word = data.StructLayout({"kind": 3, "patch": 2, "address": 16, "data": 64})
"""A word of the ROM. ``data`` of POLL and EQUAL: the mask in the low half, the wanted value in the high half."""


@dataclass(frozen=True)
class Step:
    """One word of the ROM."""

    kind: Kind
    address: int = 0
    data: int = 0
    patch: Patch = Patch.NONE


def _write(address: int, value: int, patch: Patch = Patch.NONE) -> Step:
    return Step(Kind.WRITE, address, value, patch)


def _poll(address: int, mask: int, wanted: int) -> Step:
    return Step(Kind.POLL, address, wanted << 32 | mask)


def _equal(address: int, wanted: int, *, mask: int = _LOW, report: bool = False) -> Step:
    return Step(Kind.EQUAL, address, wanted << 32 | mask, Patch.REPORT if report else Patch.NONE)


def rom(config: T3Config, parts: Parts) -> list[dict[str, int]]:
    """The four programmes, ``STEPS`` words each."""
    words: list[dict[str, int]] = []
    for gpu in range(gemm.GPUS):
        steps = programme(config, gpu, parts)
        assert len(steps) <= STEPS
        words += [vars(step) for step in steps] + [vars(Step(Kind.END))] * (STEPS - len(steps))
    return words


def programme(config: T3Config, gpu: int, parts: Parts) -> list[Step]:
    """The steps of a round of one GPU."""
    complete = mask_of(ContextStatus, "complete")
    idle = mask_of(regs.Status, "maintenance", "abort_busy", "init_done")
    ready = _poll(regs.STATUS, idle, mask_of(regs.Status, "init_done"))
    live = pack(ContextStatus, armed=1, following=gemm.GPUS, end=gemm.GPUS)
    trigger = parts is not Parts.TRACKER
    return [
        _write(regs.CONTROL, pack(regs.Control, disarm=1, forced=1)),
        ready,
        Step(Kind.RUN, Run.ZERO),
        *(_map_output() + _share(gpu) if parts is Parts.UNIT else []),
        *_profile(config),
        _write(regs.QUOTA, pack(regs.Quota, ways=16, slots=64, credits=(2, 1, 4, 255)[gpu])),
        *(_chunks(config, gpu) if trigger else []),
        _write(regs.CONTROL, pack(regs.Control, arm=1, descriptors=gemm.GPUS, first=0, context=CONTEXT)),
        _poll(regs.CONTEXT, mask_of(ContextStatus, "armed", "following", "end"), live) if trigger else ready,
        Step(Kind.RUN, Run.PLAY),
        *([_poll(regs.CONTEXT, complete, complete)] if trigger else []),
        Step(Kind.RUN, Run.CHECK),
        *_status(config, gpu, parts),
        *([Step(Kind.STUCK, regs.STUCK)] if trigger else []),
        Step(Kind.END),
    ]


def _chunks(config: T3Config, gpu: int) -> list[Step]:
    """What the trigger must know: the chunks, and the watchdog's time."""
    return [
        _write(regs.WATCHDOG, WATCHDOG_CYCLES),
        *(step for number in range(gemm.GPUS) for step in _descriptor(config, gpu, number)),
    ]


def _map_output() -> list[Step]:
    """Range 0, without a match while its bounds change; ``op``, ``dtype`` and ``epoch`` are the round's."""
    attributes = regs.RANGE_ATTRIBUTES
    return [
        _write(attributes, 0),
        _write(regs.RANGE_BASE, gemm.BASE),
        _write(regs.RANGE_LIMIT, gemm.BASE + gemm.ROWS * gemm.PITCH),
        _write(attributes, pack(regs.RangeAttributes, valid=1, context=CONTEXT), Patch.RANGE),
    ]


def _share(gpu: int) -> list[Step]:
    """Another arbiter for each GPU: turns, a fixed limit, the monitor's choice, turns; and what must be forgotten."""
    arbiters = ({"mca": 0}, {"mca": 1, "fixed": 1, "threshold": 10}, {"mca": 1, "fixed": 0}, {"mca": 0})
    return [
        _write(regs.ARBITER, pack(regs.Arbiter, **arbiters[gpu], starvation=40, quantum=3)),
        _write(regs.IRQ_STATUS, 0x3FF),
        _write(regs.NMC_FLAGS, 0x1F),
    ]


def _profile(config: T3Config) -> list[Step]:
    return [
        _write(regs.PROFILE + regs.PROFILE_STRIDE * profile_index(bottom, right, wavefront), lines)
        for (bottom, right, wavefront), lines in sorted(gemm.tile_lines(config).items())
    ]


def _descriptor(config: T3Config, gpu: int, number: int) -> list[Step]:
    """Chunk ``number`` in the order of the ring, counted out line by line."""
    addresses = [a for a in range(gemm.LINES) if gemm.in_output(a) and gemm.position(a, gpu) == number]
    blocks: dict[int, int] = {}
    for each in {gemm.block(address) for address in addresses}:
        blocks[each & 3] = len(gemm.tiles([a for a in addresses if gemm.block(a) == each], config))
    row0, kind = min(map(gemm.tile_row, addresses)), gemm.KINDS[number]
    words = (
        {"row0": row0, "row1": row0 + gemm.CHUNK_TILE_ROWS, "col0": 0, "col1": gemm.TILE_COLUMNS, "kind": kind,
         "peer": 0 if kind == ChunkKind.LOCAL else (gpu - 1) % gemm.GPUS},
        {"expected": gemm.ADDENDS * len(addresses), "addends": gemm.ADDENDS, "context": CONTEXT},
        {"base": gemm.BASE, "pitch": gemm.PITCH},
        {"peer_base": gemm.PEER_BASE, "row_shift": gemm.BLOCK_ROW_SHIFT, "col_shift": gemm.BLOCK_COL_SHIFT,
         "row_blocks_log": 1},
        {"tiles_inner": blocks[0], "tiles_right": blocks[1], "tiles_bottom": blocks[2], "tiles_corner": blocks[3]},
        {"last_block_row": 1, "last_block_col": 1, **gemm.tile_sizes(row0 + gemm.CHUNK_TILE_ROWS, config)},
    )  # fmt: skip
    first, patches = regs.DESCRIPTOR + number * regs.DESCRIPTOR_STRIDE, {0: Patch.PLACE, 1: Patch.AMOUNT}
    return [
        _write(first + WORD_BYTES * index, pack(layout, **fields), patches.get(index, Patch.NONE))
        for index, (layout, fields) in enumerate(zip(regs.DESCRIPTOR_LAYOUTS, words, strict=True))
    ]


def _status(config: T3Config, gpu: int, parts: Parts) -> list[Step]:
    """What must be counted. Without room in the tracker fewer tiles are counted apart: they are not compared then.

    A tracker alone has finished chunks in the place of triggers (see TrackerRegisters).
    """
    addresses = gemm.tracked(gpu)
    tiles, tiles_mask = len(gemm.tiles(addresses, config)), _LOW if gemm.never_overflows(config) else 0
    commands = sum(kind == ChunkKind.DMA for kind in gemm.KINDS) * 4
    chunks = [number for number, kind in enumerate(gemm.KINDS) if kind != ChunkKind.REMOTE]
    unit, trigger = parts is Parts.UNIT, parts is not Parts.TRACKER
    return [
        _equal(regs.UPDATES, gemm.ADDENDS * len(addresses), report=True),
        _equal(regs.TILES, tiles, mask=tiles_mask, report=True),
        _equal(regs.TRIGGERS, commands if trigger else len(chunks), report=True),
        _equal(regs.ERRORS, mask_of(regs.Errors, "violation") if unit else 0),
        *([_equal(regs.DONE_MASK, sum(1 << number for number in chunks))] if trigger else []),
        *([_equal(regs.VIOLATIONS, 1), _equal(regs.NMC_FLAGS, 0)] if unit else []),
    ]
