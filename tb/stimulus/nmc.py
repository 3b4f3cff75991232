"""Random inputs for an NmcUnit."""

import random

from t3hdl.config import T3Config
from t3hdl.interface.layouts import LINE_BYTES, NmcRequest, Op
from t3hdl.interface.words import pack

from tb.lockstep import Lockstep
from tb.stimulus.base import Stimulus

SPECIAL = (
    (16, (0, 1, 0x3FF, 0x400, 0x401, 0x3C00, 0x7BFF, 0x7C00, 0x7E00, 0x7D01)),
    (16, (0, 1, 0x7F, 0x80, 0x81, 0x3F80, 0x7F7F, 0x7F80, 0x7FC0, 0x7FA1)),
    (32, (0, 1, 0x7FFFFF, 0x800000, 0x800001, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7FA00001)),
    (32, (0, 1, 0x7FFFFFFF, 0x7FFFFFFE)),
)
"""Width of FP16, BF16, FP32 and INT32, and values at their edges: zero, subnormal, smallest, one, largest, NaN."""


class Nmc(Stimulus):
    """Operations on few lines of a memory that answers one cycle after the read."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.memory: dict[int, int] = {}

    def line(self) -> int:
        """Elements of one data type, special ones among them."""
        bits, special = self.rng.choice(SPECIAL)
        elements = [
            self.rng.choice(special) ^ self.rng.getrandbits(1) << bits - 1
            if self.chance(0.4)
            else self.rng.getrandbits(bits)
            for _ in range(256 // bits)
        ]
        return sum(element << bits * i for i, element in enumerate(elements))

    def request(self) -> int:
        rng = self.rng
        hot = rng.choice((0, 1, 2, 3, 1 << 38))
        line = hot if self.chance(self.rate("hot")) else rng.getrandbits(39)
        return pack(
            NmcRequest,
            line=line,
            op=rng.choice((Op.ADD, Op.ADD, *range(8))),
            dtype=rng.randrange(4),
            mask=rng.choice(((1 << 32) - 1, rng.getrandbits(32))),
            tag=rng.getrandbits(32),
            data=self.line(),
        )

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
