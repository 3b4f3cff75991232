"""Random inputs for each kind of part: what a legal neighbour might do."""

import random

from lockstep import Lockstep
from stimulus import TILES, Stimulus, pack
from t3hdl import register_map as regs
from t3hdl.config import NO_LIMIT, T3Config
from t3hdl.layouts import LINE_BYTES, ChunkDone, ChunkKind, NmcRequest, Op, SlotLoad, TileDone, Token


class Slice(Stimulus):
    """Two streams, a DRAM queue that fills and drains, updates performed in any order."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.in_memory: list[int] = []

    def plan(self) -> None:
        self.range_writes()

    def drive_part(self) -> None:
        if "dram" in self.bench.moved:
            self.in_memory.append(self.bench.moved["dram"])
        for stream in ("compute_read", "compute_write", "comm_read", "comm_write"):
            self.offer(stream, self.request)
        for stream in ("dram", "token"):
            self.accept(stream)
        done = None
        if self.in_memory and self.chance(self.rate("done")):
            done = self.in_memory.pop(self.rng.randrange(min(4, len(self.in_memory))))
        self.pulse("update_done", done)
        if self.chance(0.1 * self.activity):
            self.bench.set("occupancy", self.rng.choice((0, 3, 39, 126, 127, self.rng.randrange(128))))
        if self.chance(0.01):
            self.bench.set("threshold", self.rng.choice((NO_LIMIT, 5, 0)))
            self.bench.set("measure", self.chance(0.5))


class Matcher(Stimulus):
    """Store rows against ranges and chunks."""

    def plan(self) -> None:
        self.range_writes()
        rng = self.rng
        for i in range(self.config.descriptors):
            row0, row1, col0, col1 = self.rectangle()
            self.descriptor_writes(i, (
                pack(regs.DESCRIPTOR_LAYOUTS[0], row0=row0, row1=row1, col0=col0, col1=col1, kind=rng.randrange(4),
                     op=rng.randrange(6), peer=rng.getrandbits(8)),
                pack(regs.DESCRIPTOR_LAYOUTS[1], context=int(self.chance(0.2)), expected=rng.getrandbits(32)),
                pack(regs.DESCRIPTOR_LAYOUTS[2], base=rng.getrandbits(39)),
                pack(regs.DESCRIPTOR_LAYOUTS[3], peer_base=rng.getrandbits(39)),
            ))  # fmt: skip

    def drive_part(self) -> None:
        self.offer("store", self.request)
        self.accept("route")


class Node(Stimulus):
    """Tokens of few tiles, with counts whose sums reach the limit."""

    def token(self) -> int:
        rng = self.rng
        return pack(
            Token,
            context=int(self.chance(0.1)), epoch=int(self.chance(0.1)), row=rng.randrange(TILES),
            col=rng.randrange(2), wf=int(self.chance(0.1)), bottom=self.chance(0.1),
            n=rng.choice((1, 1, 2, 511, 512, 1023)),
        )  # fmt: skip

    def drive_part(self) -> None:
        for port in self.bench.inputs:
            if port.endswith(".valid"):
                self.offer(port.removesuffix(".valid"), self.token)
            elif port.endswith(".ready"):
                self.accept(port.removesuffix(".ready"))


class Tracker(Stimulus):
    """Tokens and chunks with small thresholds: tiles complete, entries run out, counts pass their limits.

    From arm to arm, tiles are few or many, and may lie apart so far that all share one row of the table.
    """

    row_stride = col_stride = 1
    tiles = TILES

    def plan(self) -> None:
        self.tiles = self.rng.choice((1, 2, TILES))
        self.row_stride = self.rng.choice((1, 1 << self.config.row_index_bits))
        self.col_stride = self.rng.choice((1, 1 << self.config.column_index_bits))
        for edge in range(4):
            for wf in range(self.config.wavefronts):
                lines = self.rng.choice((0, 1, 2, 3, 4, 6, (1 << self.config.tile_count_bits) - 1))
                self.writes.append((regs.PROFILE + 8 * (16 * edge + wf), lines))

    def token(self, bank: int) -> int:
        rng, mask = self.rng, self.config.tracker_banks - 1
        row, col = rng.randrange(self.tiles) * self.row_stride, rng.randrange(self.tiles) * self.col_stride
        return pack(
            Token,
            context=int(self.chance(0.05)), epoch=int(self.chance(0.05)),
            row=row, col=(col & ~mask) | (row & mask) ^ bank,
            wf=rng.randrange(min(16, self.config.wavefronts + 1)), right=self.chance(0.1), bottom=self.chance(0.1),
            n=rng.choice((1, 1, 1, 2, 3, 1023)),
        )  # fmt: skip

    def load(self) -> int:
        rng = self.rng
        row0, row1, col0, col1 = self.rectangle() if self.chance(0.5) else (0, TILES, 0, TILES)
        return pack(
            SlotLoad,
            row0=row0 * self.row_stride, row1=row1 * self.row_stride,
            col0=col0 * self.col_stride, col1=col1 * self.col_stride, addends=rng.choice((1, 1, 2, 255)),
            slot=rng.randrange(min(64, self.config.chunk_window + 1)), valid=self.chance(0.9),
            expected=rng.choice((1, 5, 20, 60)), context=int(self.chance(0.05)), epoch=int(self.chance(0.05)),
            descriptor=rng.randrange(self.config.descriptors),
        )  # fmt: skip

    def drive_part(self) -> None:
        for bank in range(self.config.tracker_banks):
            self.offer(f"token.{bank}", lambda bank=bank: self.token(bank))
        loads = self.armed and self.chance(0.05 * self.activity)
        self.pulse("load", self.load() if loads else None)


class Trigger(Stimulus):
    """Chunks of few blocks; tiles and completions of the slots that were loaded, and some of others."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.bounds: dict[int, tuple[int, int, int, int]] = {}
        self.incomplete: set[int] = set()

    def plan(self) -> None:
        for i in range(self.config.descriptors):
            self.descriptor_writes(i, self.chunk())

    def chunk(self) -> tuple[int, ...]:
        """The words of a descriptor whose blocks have a place in the block table."""
        rng = self.rng
        row0, row1, col0, col1 = self.rectangle()
        row_shift, col_shift = rng.randrange(3), rng.randrange(3)
        while True:
            last_row, last_col = (row1 - row0 - 1) >> row_shift, (col1 - col0 - 1) >> col_shift
            if (last_col + 1) << last_row.bit_length() <= self.config.blocks:
                break
            row_shift, col_shift = min(3, row_shift + 1), min(3, col_shift + 1)
        kind = rng.choice((ChunkKind.DMA, ChunkKind.DMA, ChunkKind.DMA, *ChunkKind))
        tiles = {f"tiles_{place}": rng.choice((1, 2, 3)) for place in ("inner", "bottom", "right", "corner")}
        return (
            pack(regs.DESCRIPTOR_LAYOUTS[0], row0=row0, row1=row1, col0=col0, col1=col1, kind=kind,
                 op=rng.randrange(6), peer=rng.getrandbits(8)),
            pack(regs.DESCRIPTOR_LAYOUTS[1], expected=rng.getrandbits(32), addends=rng.getrandbits(8),
                 context=rng.getrandbits(4), epoch=rng.getrandbits(2), dtype=rng.getrandbits(2)),
            pack(regs.DESCRIPTOR_LAYOUTS[2], base=rng.getrandbits(39), pitch=rng.getrandbits(16)),
            pack(regs.DESCRIPTOR_LAYOUTS[3], peer_base=rng.getrandbits(39), row_shift=row_shift, col_shift=col_shift,
                 row_blocks_log=last_row.bit_length()),
            pack(regs.DESCRIPTOR_LAYOUTS[4], **tiles),
            pack(regs.DESCRIPTOR_LAYOUTS[5], last_block_row=last_row, last_block_col=last_col),
        )  # fmt: skip

    def slot(self) -> int | None:
        """A slot that was loaded; sometimes any slot, if it is one that was never loaded."""
        slot = self.rng.randrange(self.config.chunk_window)
        if self.chance(0.9) and self.bounds:
            slot = self.rng.choice(sorted(self.incomplete or self.bounds))
        return slot

    def drive_part(self) -> None:
        rng = self.rng
        if self.bench.get("load_valid"):
            load = self.bench.get("load")
            row0, row1, col0, col1 = ((load >> shift) & 0xFFF for shift in (0, 12, 24, 36))
            slot = (load >> SlotLoad["slot"].offset) & 63
            self.bounds[slot] = row0, row1, col0, col1
            self.incomplete.add(slot)
        tile = chunk = None
        if self.chance(self.rate("tiles") * self.activity):
            slot = self.slot()
            row0, row1, col0, col1 = self.bounds.get(slot, (0, 1, 0, 1))
            tile = pack(
                TileDone,
                slot=slot, row=rng.randrange(row0, row1), col=rng.randrange(col0, col1), wf=rng.randrange(16),
            )  # fmt: skip
        if self.chance(0.03 * self.activity):
            slot = self.slot()
            self.incomplete.discard(slot)
            chunk = pack(ChunkDone, slot=slot, overflowed=self.chance(0.6))
        self.pulse("tile_done", tile)
        self.pulse("chunk_done", chunk)
        self.accept("command")


class Monitor(Stimulus):
    """Slices that were busy for a random part of the first stage."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.served = [0] * config.slices

    def drive_part(self) -> None:
        self.bench.set("tile_done_valid", self.chance(0.02))
        if self.chance(0.05):
            self.bench.set("comm_seen", self.chance(0.2))
        if self.bench.get("measure"):
            share = self.rng.choice((0, 1, 2, 3, 4))  # eighths of the cycles; a grant is two bus cycles
            self.served = [self.rng.randrange(6 * share + 1) for _ in self.served]
        if not self.bench.get("measure"):
            self.bench.set("served", self.served[self.bench.get("select") % self.config.slices])


class Registers(Stimulus):
    """Bus requests to every kind of address, while the status changes."""

    def address(self) -> int:
        rng = self.rng
        named = rng.choice((regs.ID, regs.CONTROL, regs.CONTROL, regs.STATUS, regs.ARBITER, regs.THRESHOLDS,
                            regs.PEAK_ENTRIES, regs.OVERFLOWED, regs.THRESHOLD))  # fmt: skip
        table = rng.choice((regs.RANGE + 8 * rng.randrange(20), regs.PROFILE + 8 * rng.randrange(70),
                            regs.DESCRIPTOR + 8 * rng.randrange(8 * 65)))  # fmt: skip
        return rng.choice((named, named, table, table, rng.getrandbits(16), named + rng.randrange(8)))

    def drive_part(self) -> None:
        rng, bench = self.rng, self.bench
        if not bench.driven("bus_valid") or self.answered:
            requests = self.chance(self.rate("bus"))
            bench.set("bus_valid", requests)
            if requests:
                arm, disarm = (pack(regs.Control, arm=1, descriptors=rng.randrange(70)), pack(regs.Control, disarm=1))
                bench.set("bus_write", self.chance(0.6))
                bench.set("bus_address", self.address())
                bench.set("bus_data", rng.choice((rng.getrandbits(64), arm, disarm)))
        self.answered = bool(bench.driven("bus_valid") and bench.get("bus_ready"))
        if self.chance(0.05):
            port = rng.choice([name for name in bench.inputs if not name.startswith("bus_")])
            bench.set(port, rng.getrandbits(bench.inputs[port][1]))

    answered = False


class Nmc(Stimulus):
    """Operations on few lines of a memory that answers one cycle after the read."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.memory: dict[int, int] = {}

    def line(self) -> int:
        """Sixteen FP16 numbers, special ones among them."""
        special = (0, 0x8000, 1, 0x83FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x7D01)
        lanes = [self.rng.choice(special) if self.chance(0.4) else self.rng.getrandbits(16) for _ in range(16)]
        return sum(lane << 16 * i for i, lane in enumerate(lanes))

    def request(self) -> int:
        rng = self.rng
        return pack(
            NmcRequest,
            line=rng.choice((0, 1, 2, 3, 1 << 38, rng.getrandbits(39))), op=rng.choice((Op.ADD, Op.ADD, *range(8))),
            dtype=int(self.chance(0.1)), mask=rng.choice(((1 << 32) - 1, rng.getrandbits(32))),
            tag=rng.getrandbits(32), data=self.line(),
        )  # fmt: skip

    def drive_part(self) -> None:
        bench = self.bench
        if self.reading is not None:  # read_valid one cycle ago
            bench.set("read_data", self.memory.setdefault(self.reading, self.line()))
        self.reading = bench.get("read_line") if bench.get("read_valid") else None
        if bench.get("write_valid"):
            line, mask = bench.get("write_line"), bench.get("write_mask")
            bits = sum(0xFF << 8 * byte for byte in range(LINE_BYTES) if mask >> byte & 1)
            self.memory[line] = self.memory[line] & ~bits | bench.get("write_data") & bits
        self.offer("request", self.request)

    reading: int | None = None


STIMULI = {
    "slice": Slice, "matcher": Matcher, "leaf": Node, "root": Node, "tracker": Tracker, "trigger": Trigger,
    "monitor": Monitor, "registers": Registers, "nmc": Nmc,
}  # fmt: skip
"""The stimulus of each part of a :class:`~t3sim.abi.Hardware`, by the part's name."""
