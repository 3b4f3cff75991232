"""Random inputs for an NmcUnit."""

import random

from lockstep import Lockstep
from stimulus import Stimulus, pack
from t3hdl.config import T3Config
from t3hdl.layouts import LINE_BYTES, NmcRequest, Op


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
