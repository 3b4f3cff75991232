"""Drives a tracker by the words of its contract: loads, tokens, completions."""

from typing import Any

from stream_checks import run
from t3hdl.config import preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkDone, TileDone
from t3hdl.tracker.tracker import Tracker

# Lines of a wavefront tile in the tests, by (bottom, right): differ, so that a mix-up shows.
LINES = {(0, 0): 6, (1, 0): 4, (0, 1): 3, (1, 1): 2}


class Driver:
    """The bench of a tracker, with the pulses that it gave as (cycle, fields)."""

    def __init__(self, bench: Any) -> None:
        self.bench = bench
        self.banks = len(bench.send)
        self.tiles: list[tuple[int, dict[str, int]]] = []
        self.chunks: list[tuple[int, dict[str, int]]] = []
        self.poisoned: list[int] = []

    def __getitem__(self, name: str) -> int:
        return self.bench[name]

    async def step(self, count: int = 1, **inputs: Any) -> None:
        """``count`` cycles; a pulse among ``inputs`` lasts one cycle."""
        for k in range(count):
            for name, layout, log in (("tile_done", TileDone, self.tiles), ("chunk_done", ChunkDone, self.chunks)):
                if self.bench[f"{name}_valid"]:
                    value = layout.from_bits(self.bench[name])
                    log.append((self.bench.now, {field: value[field] for field in layout.members}))
            if self.bench["poison_valid"]:
                self.poisoned.append(self.bench["poison_slot"])
            await self.bench.step(**(inputs if k == 0 else dict.fromkeys((n for n in inputs if n[-6:] == "_valid"), 0)))

    async def start(self, lines: dict[tuple[int, int], int] | None = None, wavefronts: int = 2) -> None:
        """Waits for the walker, writes the profile."""
        while not self["init_done"]:
            await self.step()
        for (bottom, right), amount in (lines or LINES).items():
            for wf in range(wavefronts):
                address = regs.PROFILE + 8 * (bottom * 32 + right * 16 + wf)
                await self.step(config_valid=1, config={"address": address, "data": amount})
        await self.step(config_valid=0)

    async def load(self, **fields: int) -> None:
        """Makes a chunk live; by default it holds every tile of context 0."""
        chunk = {"row1": 4095, "col1": 4095, "addends": 1, "valid": 1, "expected": 999} | fields
        await self.step(load_valid=1, load=chunk)
        await self.step(load_valid=0)

    def send(self, **fields: int) -> None:
        """A token into its bank's queue."""
        token = {"n": 1} | fields
        self.bench.send[f"token.{(token.get('row', 0) ^ token.get('col', 0)) % self.banks}"].append(token)

    async def settle(self, limit: int = 2000) -> None:
        """Until every token is counted."""
        while any(self.bench.send.values()) or not self["idle"]:
            await self.step()
            limit -= 1
            assert limit, "the tracker does not settle"
        await self.step(2)  # the bench checks the idle promise

    async def control(self, **fields: int) -> None:
        """Writes CONTROL."""
        await self.write(regs.CONTROL, fields, regs.Control)

    async def write(self, address: int, fields: dict[str, int], layout: Any) -> None:
        """Writes a register; returns in the cycle after the pulse."""
        await self.step(config_valid=1, config={"address": address, "data": layout.const(fields).as_bits()})
        self.bench.ctx.set(self.bench.part.config_valid, 0)

    async def maintained(self, limit: int = 200) -> int:
        """Waits until maintenance is over; returns that cycle."""
        while self["maintenance"]:
            await self.step()
            limit -= 1
            assert limit, "the maintenance does not end"
        return int(self.bench.now)

    async def abort_over(self, limit: int = 1000) -> int:
        """Waits until an abort is over; returns that cycle."""
        while self["abort_busy"]:
            await self.step()
            limit -= 1
            assert limit, "the abort does not end"
        return int(self.bench.now)

    async def look(self, **place: int) -> dict[str, int]:
        """A debug read: the fields of DEBUG_DATA."""
        await self.write(regs.DEBUG_SELECT, place, regs.DebugSelect)
        await self.maintained()
        word = regs.DebugData.from_bits(self["debug_data"])
        return {name: word[name] for name in regs.DebugData.members if name != "reserved"}

    @property
    def errors(self) -> list[str]:
        """Sticky errors that are set."""
        return [name for name in ("unmatched", "over_count", "over_total") if self[name]]

    @property
    def done_tiles(self) -> list[tuple[int, ...]]:
        """(slot, row, col, wf) of every TileDone, in order."""
        return [tuple(tile.values()) for _, tile in self.tiles]


def check(scenario: Any, *, seed: int = 1, **overrides: int) -> None:
    """Runs ``scenario(driver)`` on a small tracker."""
    run(Tracker(config=preset("small", **overrides)), lambda bench: scenario(Driver(bench)), seed=seed)
