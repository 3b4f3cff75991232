"""A range matcher with one job: range 1, chunk 2, context 1."""

from typing import Any

from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkKind, Op
from t3hdl.interface.words import WORD_BYTES

from tests.contract.bench import bench_of

JOB, OTHER = 1, 0
"""Contexts."""
BASE, LIMIT = 0x10_0000_0000, 0x10_0000_1000  # above 32 bits
PEER_BASE = 0x7F_FFFF_F000
EPOCH = 0x81
ROW = {
    "line": BASE + 5, "op": Op.STORE, "context": JOB, "source": 2, "tagged": 1, "wf": 1, "row": 5, "col": 20,
    "epoch": EPOCH, "tag": 77,
}  # fmt: skip
"""An item inside the range and inside the chunk."""
STAYS = {"line": BASE + 5, "matched": 0, "remote": 0, "descriptor": 0, "op": Op.STORE, "peer": 0}
"""Its route if it does not match."""
LEAVES = {"line": PEER_BASE + 5, "matched": 1, "remote": 1, "descriptor": 2, "op": Op.ADD, "peer": 102}
"""Its route to the peer."""


class Matcher:
    """A matcher on a bench, by default of the preset "small"."""

    def __init__(self, backend: str, config: T3Config | None = None, *, seed: int = 1, **overrides: Any) -> None:
        self.bench = bench_of(backend, "matcher", config, seed=seed, **overrides)

    def set_range(
        self, number: int, base: int = BASE, limit: int = LIMIT, *, context: int = JOB, valid: int = 1
    ) -> None:
        """Writes a range."""
        address = regs.RANGE + number * regs.RANGE_STRIDE
        self.bench.write(address, base)
        self.bench.write(address + 8, limit)
        attributes = {"valid": valid, "context": context, "epoch": EPOCH, "op": Op.MAX}
        self.bench.write(address + 16, attributes, regs.RangeAttributes)

    def set_chunk(self, number: int, kind: ChunkKind = ChunkKind.REMOTE, **fields: int) -> None:
        """Writes the first four words of a descriptor: rows 4 to 7, columns 16 to 31."""
        values = {
            "row0": 4, "row1": 8, "col0": 16, "col1": 32, "kind": kind, "op": Op.ADD, "peer": 100 + number,
            "context": JOB, "expected": 1, "base": 1, "peer_base": PEER_BASE,
        } | fields  # fmt: skip
        for word, layout in enumerate(regs.DESCRIPTOR_LAYOUTS[:4]):
            named = {name: value for name, value in values.items() if name in layout.members}
            self.bench.write(self.word(number, word), named, layout)

    @staticmethod
    def word(number: int, word: int) -> int:
        """The address of a word of a descriptor."""
        return regs.DESCRIPTOR + number * regs.DESCRIPTOR_STRIDE + WORD_BYTES * word

    def arm(self, descriptors: int = 8, *, first: int = 0, context: int = JOB) -> None:
        """Opens the window of a context."""
        self.bench.control(arm=1, descriptors=descriptors, first=first, context=context)

    def abort(self, context: int = JOB) -> None:
        """Ends the window and the ranges of a context."""
        self.bench.control(abort=1, context=context)

    def set_up(self, **chunk: int) -> "Matcher":
        """Range 1, chunk 2, armed."""
        self.set_range(1)
        self.set_chunk(2, **chunk)
        self.arm()
        return self

    def send(self, *items: dict[str, int]) -> None:
        """More items that wait at ``store``."""
        self.bench.send["store"].extend(items)

    @property
    def routes(self) -> list[dict[str, int]]:
        """What has left."""
        return [route for _, route in self.bench.got["route"]]

    def route(self, **fields: int) -> dict[str, int]:
        """Where an item goes that differs from ROW in these fields; it takes four cycles."""
        before = len(self.routes)
        self.send(ROW | fields)
        self.bench.step(4)
        assert len(self.routes) == before + 1
        return self.routes[-1]
