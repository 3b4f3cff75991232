"""A golden Tracker in a set scene: walkers done, profile written, pulses recorded."""

from golden_bench import Bench, pack, unpack
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map
from t3hdl.interface.layouts import ChunkDone, ConfigWrite, SlotLoad, TileDone, Token
from t3hdl.interface.signatures import tracker_signature
from t3sim.hardware.golden.tracker import tracker

LINES = 6
"""Lines of a wavefront tile in the profile of :class:`Scene`."""
STICKY = ("unmatched", "over_count", "over_total")


class Scene:
    """A tracker with walkers done and a flat profile; records every pulse as (cycle, fields)."""

    def __init__(self, config: T3Config | None = None) -> None:
        self.config = config or preset("small")
        self.bench = Bench(tracker, tracker_signature(self.config), tracker.init_state(self.config))
        self.tiles: list[tuple[int, int, int, int, int]] = []
        self.chunks: list[tuple[int, int, int]] = []
        self.tick(self.config.sets_per_bank)
        for edge in range(4):
            for wf in range(self.config.wavefronts):
                self.profile(edge >> 1, edge & 1, wf, LINES)

    def tick(self, cycles: int = 1, **ports: int) -> None:
        for _ in range(cycles):
            self.bench.tick(**ports)
            ports = {}
            tile, chunk = self.bench.item("tile_done"), self.bench.item("chunk_done")
            if tile is not None:
                self.tiles.append((self.bench.now, *unpack(TileDone, tile).values()))
            if chunk is not None:
                self.chunks.append((self.bench.now, *unpack(ChunkDone, chunk).values()))

    def profile(self, bottom: int, right: int, wf: int, lines: int) -> None:
        address = register_map.PROFILE + 8 * (bottom * 32 + right * 16 + wf)
        self.bench.write(address, lines)

    def load(self, slot: int = 0, **fields: int) -> None:
        """A chunk; by default all tiles, one addend, and more lines than ever come."""
        everything = {"row1": 4095, "col1": 4095, "addends": 1, "expected": 0xFFFF, "valid": 1}
        self.tick(load=pack(SlotLoad, slot=slot, **(everything | fields)))

    def send(self, row: int = 0, col: int = 0, n: int = 1, **fields: int) -> None:
        bank = (row ^ col) % self.config.tracker_banks
        assert self.bench.get(f"token.{bank}.ready")
        self.tick(**{f"token.{bank}": pack(Token, row=row, col=col, n=n, **fields)})

    def control(self, **fields: int) -> None:
        """A CONTROL write; afterwards it is the first cycle in which maintenance can be seen."""
        self.tick(config=control(**fields))

    def over(self) -> int:
        """Ticks until maintenance is over."""
        cycles = 0
        while self.bench.get("maintenance"):
            self.tick()
            cycles += 1
            assert cycles < 1000
        return cycles

    def settle(self) -> None:
        for _ in range(100):
            if self.bench.get("idle"):
                return
            self.tick()
        raise AssertionError("never idle")

    def get(self, *ports: str) -> list[int]:
        return [self.bench.get(port) for port in ports]

    def errors(self) -> list[str]:
        return [name for name in STICKY if self.bench.get(name)]


def control(**fields: int) -> int:
    """The configuration write of CONTROL with these fields."""
    return pack(ConfigWrite, address=register_map.CONTROL, data=pack(register_map.Control, **fields))


def live(**fields: int) -> Scene:
    """A scene with slot 0 live."""
    scene = Scene()
    scene.load(**fields)
    return scene


def fill_set(scene: Scene, row: int = 0) -> None:
    """Two entries in both ways of the table row of tile (row, even column)."""
    for col in (0, 2):
        scene.send(row=row, col=col, n=1)
