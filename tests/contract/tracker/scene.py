"""A tracker with clear tables and a written profile, driven by the words of its contract."""

from functools import reduce
from operator import xor
from typing import Any

from t3hdl.config import preset
from t3hdl.interface import register_map as regs

from tests.contract.backends import open_part
from tests.contract.bench import Bench

LINES = 6
"""Lines of a tile inside the matrix."""
EDGES = {(0, 0): LINES, (1, 0): 4, (0, 1): 3, (1, 1): 2}
"""Lines of a tile by (bottom, right): they differ, so that a mix-up shows."""
STICKY = ("unmatched", "over_count", "over_total")

# Sizes besides the preset "small": 4 sets of 2 ways in 2 banks, 4 slots, 8 descriptors, event queues of 3.
ONE_SET = {"tracker_sets": 1, "tracker_banks": 1, "row_index_bits": 0, "tracker_ways": 3}
MANY_SETS = {
    "tracker_sets": 64, "tracker_banks": 4, "row_index_bits": 3, "tracker_ways": 1, "event_queue": 12, "blocks": 64,
}  # fmt: skip
MANY_SLOTS = {"descriptors": 64, "chunk_window": 64, "chunk_count_bits": 8}
SHORT_QUEUES = {"event_queue": 3, "tracker_ways": 1}


class Scene(Bench):
    """Records every pulse up to the present cycle.

    ``tiles`` are (cycle, slot, row, col, wf), ``chunks`` (cycle, slot, overflowed), ``poisoned`` slots.
    """

    def __init__(self, backend: str, *, seed: int = 1, **overrides: Any) -> None:
        self.config = preset("small", **overrides)
        super().__init__(open_part(backend, "tracker", self.config), seed=seed)
        self.tiles: list[tuple[int, ...]] = []
        self.chunks: list[tuple[int, ...]] = []
        self.poisoned: list[int] = []
        self.until("init_done")
        for (bottom, right), lines in EDGES.items():
            for wf in range(self.config.wavefronts):
                self.profile(bottom, right, wf, lines)

    def step(self, count: int = 1, **inputs: Any) -> None:
        for _ in range(count):
            super().step(**inputs)
            inputs = {}
            for name, log in (("tile_done", self.tiles), ("chunk_done", self.chunks)):
                if self[f"{name}_valid"]:
                    log.append((self.now, *self.fields(name).values()))
            if self["poison_valid"]:
                self.poisoned.append(self["poison_slot"])

    def settle(self, limit: int = 2000) -> None:
        """Until all tokens are counted, and a cycle of the promised rest."""
        super().settle(limit)
        self.step()

    def profile(self, bottom: int, right: int, wf: int, lines: int) -> None:
        self.write(regs.PROFILE + 8 * (bottom * 32 + right * 16 + wf), lines)

    def quota(self, context: int, ways: int) -> None:
        self.write(regs.QUOTA + regs.QUOTA_STRIDE * context, {"ways": ways, "slots": 64, "credits": 255}, regs.Quota)

    def load(self, **fields: int) -> None:
        """Makes a chunk live: :func:`chunk`."""
        self.step(load=chunk(**fields))

    def offer(self, **fields: int) -> str:
        """A token for its bank; returns the stream."""
        token = {"n": 1} | fields
        tile = (token.get(name, 0) for name in ("row", "col", "wf"))
        stream = f"token.{reduce(xor, tile) % self.config.tracker_banks}"
        self.send[stream].append(token)
        return stream

    def deliver(self, **fields: int) -> None:
        """A token that transfers in this cycle."""
        stream = self.offer(**fields)
        assert self[f"{stream}.ready"] and len(self.send[stream]) == 1
        self.step()

    def count(self, **fields: int) -> None:
        """A token, until it is counted."""
        self.offer(**fields)
        self.settle()

    def fill_set(self, row: int = 0, bank: int = 0, **fields: int) -> None:
        """An entry in every way of a table row: tiles ``row`` and columns ``bank``, ``bank`` + 2, ..., row even."""
        for way in range(self.config.tracker_ways):
            self.deliver(row=row, col=bank + 2 * way, **fields)

    def crowd(self, *banks: int) -> None:
        """Row 0 of each bank's table is full of a chunk of context 1 that loses its slot, 0, by the next load."""
        self.load(context=1)
        for bank in banks:
            self.fill_set(bank=bank, context=1)
        self.settle()

    def ends(self, port: str, limit: int = 1000) -> int:
        """Cycles from now until the output is 0."""
        for cycles in range(limit):
            if not self[port]:
                return cycles
            self.step()
        raise AssertionError(f"{port} stays for {limit} cycles")

    def look(self, **place: int) -> dict[str, int]:
        """A debug read: the fields of DEBUG_DATA."""
        self.write(regs.DEBUG_SELECT, place, regs.DebugSelect)
        assert self.get("maintenance", "debug_data") == [1, 0]
        self.ends("maintenance")
        word = regs.DebugData.from_bits(self["debug_data"])
        return {name: word[name] for name in regs.DebugData.members if name != "reserved"}

    def get(self, *ports: str) -> list[int]:
        return [self[port] for port in ports]

    def outputs(self) -> list[int]:
        """All of them in this cycle."""
        return self.get(*self._outputs)

    @property
    def errors(self) -> list[str]:
        """Sticky errors that are set."""
        return [name for name in STICKY if self[name]]

    @property
    def done_tiles(self) -> list[tuple[int, ...]]:
        """(slot, row, col, wf) of every finished tile, in order."""
        return [tile[1:] for tile in self.tiles]

    @property
    def done_chunks(self) -> list[tuple[int, ...]]:
        """(slot, overflowed) of every finished chunk, in order."""
        return [chunk[1:] for chunk in self.chunks]


def chunk(**fields: int) -> dict[str, int]:
    """A load of slot 0; by default all tiles of context 0, one addend, and more lines than ever come."""
    return {"row1": 4095, "col1": 4095, "addends": 1, "expected": 0xFFFF, "valid": 1} | fields


def live(backend: str, **fields: int) -> Scene:
    """A scene with one live chunk."""
    scene = Scene(backend)
    scene.load(**fields)
    return scene
