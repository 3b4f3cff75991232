"""A golden Trigger in a set scene: descriptors written, pulses and commands recorded."""

from golden_bench import Bench, pack, unpack
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map
from t3hdl.interface.layouts import (
    ChunkDone,
    ChunkKind,
    ConfigWrite,
    ContextStatus,
    DmaCommand,
    Dtype,
    Op,
    SlotLoad,
    Stuck,
    TileDone,
)
from t3hdl.interface.signatures import trigger_signature
from t3sim.hardware.golden.trigger import trigger

CONTEXT = 1
"""The context of the chunks, unless said otherwise."""
BLOCKS = 4
"""Blocks per chunk of the preset "small"."""
CHUNK = {
    "kind": ChunkKind.DMA, "row0": 8, "row1": 11, "col0": 16, "col1": 19, "op": Op.ADD, "peer": 200,
    "expected": 54321, "addends": 2, "context": CONTEXT, "epoch": 2, "dtype": Dtype.BF16,
    "base": 0x1234567890, "pitch": 0xABCD, "peer_base": 0x7FFFFFFFFF, "row_shift": 1, "col_shift": 1,
    "row_blocks_log": 1,
    "tiles_inner": 4, "tiles_bottom": 2, "tiles_right": 2, "tiles_corner": 1, "last_block_row": 1, "last_block_col": 1,
}  # fmt: skip
"""3 x 3 tiles in blocks of 2 x 2: 2 x 2 blocks, one tile in the last one."""
LOAD_AFTER_ARM = 11 + BLOCKS


class Scene:
    """A trigger after reset; records load pulses and transferred commands as (cycle, fields)."""

    def __init__(self, config: T3Config | None = None, ready: int = 1) -> None:
        self.config = config or preset("small")
        self.bench = Bench(trigger, trigger_signature(self.config), trigger.init_state(self.config))
        self.loads: list[tuple[int, dict[str, int]]] = []
        self.commands: list[tuple[int, dict[str, int]]] = []
        self.ready = ready

    def tick(self, cycles: int = 1, **ports: int) -> None:
        for _ in range(cycles):
            load, command = self.bench.item("load"), self.bench.item("command")
            if load is not None:
                self.loads.append((self.bench.now, unpack(SlotLoad, load)))
            if command is not None and self.ready:
                self.commands.append((self.bench.now, unpack(DmaCommand, command)))
            self.bench.tick(command_ready=self.ready, **ports)
            ports = {}

    def describe(self, number: int, **changes: int) -> None:
        values = CHUNK | changes
        for word, layout in enumerate(register_map.DESCRIPTOR_LAYOUTS):
            fields = {name: values[name] for name, _ in layout}
            address = register_map.DESCRIPTOR + number * register_map.DESCRIPTOR_STRIDE + 8 * word
            self.bench.write(address, pack(layout, **fields))

    def control(self, **fields: int) -> int:
        """Write CONTROL; returns the cycle of the pulse."""
        self.tick(config=pack(ConfigWrite, address=register_map.CONTROL, data=pack(register_map.Control, **fields)))
        return self.bench.now - 1

    def arm(self, descriptors: int, first: int = 0, context: int = CONTEXT) -> int:
        """Arm; returns the cycle of the pulse."""
        return self.control(arm=1, descriptors=descriptors, first=first, context=context)

    def abort(self, context: int = CONTEXT) -> int:
        """Abort; returns the cycle of the pulse."""
        return self.control(abort=1, context=context)

    def quota(self, context: int = CONTEXT, slots: int = 64, credits: int = 255) -> None:
        self.bench.write(register_map.QUOTA + 8 * context, pack(register_map.Quota, slots=slots, credits=credits))

    def watchdog(self, cycles: int) -> None:
        self.bench.write(register_map.WATCHDOG, cycles)

    def status(self, *names: str, context: int = CONTEXT) -> list[int]:
        """Fields of a context's status."""
        fields = unpack(ContextStatus, self.bench.get(f"context.{context}"))
        return [fields[name] for name in names]

    def stuck(self) -> dict[str, int]:
        return unpack(Stuck, self.bench.get("stuck"))

    def until(self, cycle: int) -> None:
        self.tick(cycle - self.bench.now)

    def settle(self) -> None:
        for _ in range(3000):
            if self.bench.get("idle") and (self.bench.item("command") is None or not self.ready):
                return
            self.tick()
        raise AssertionError("never idle")

    def tile(self, row: int, col: int, slot: int = 0, wf: int = 0) -> None:
        self.tick(tile_done=pack(TileDone, slot=slot, row=row, col=col, wf=wf))

    def poison(self, slot: int = 0) -> None:
        self.tick(poison_valid=1, poison_slot=slot)
        self.bench.tick(0, poison_valid=0)

    def credit(self, context: int = CONTEXT) -> None:
        self.tick(command_done=context)

    def chunk(self, slot: int = 0, overflowed: int = 0) -> None:
        self.tick(chunk_done=pack(ChunkDone, slot=slot, overflowed=overflowed))

    def places(self, *names: str) -> list[tuple[int, ...]]:
        return [tuple(command[name] for name in names) for _, command in self.commands]

    def get(self, *ports: str) -> list[int]:
        return [self.bench.get(port) for port in ports]


def live(*changes: dict[str, int], ready: int = 1, config: T3Config | None = None) -> Scene:
    """A scene with one chunk live per entry of ``changes``."""
    scene = Scene(config, ready)
    for number, change in enumerate(changes):
        scene.describe(number, **change)
    scene.arm(len(changes))
    scene.settle()
    assert scene.bench.get("live") == len(changes)
    return scene
