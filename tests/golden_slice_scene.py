"""A golden MemorySlice in a set scene: configuration, requests, what leaves it."""

from golden_bench import Bench, pack, unpack
from t3hdl.config import preset
from t3hdl.interface import register_map as registers
from t3hdl.interface.layouts import Dtype, MemoryRequest, Op
from t3hdl.interface.signatures import slice_signature
from t3sim.hardware.golden.slice import slice as golden

PORTS = ("compute_read", "compute_write", "comm_read", "comm_write")
BASE, LIMIT = 0x1000, 0x2000  # lines of range 0 in these tests


def make(**overrides) -> Bench:
    config = preset("small", **{"ranges": 2, "contexts": 5, **overrides})
    return Bench(golden, slice_signature(config), golden.init_state(config))


def set_range(bench, i=0, base=BASE, limit=LIMIT, **attributes) -> None:
    attributes = {"valid": 1, "context": 3, "epoch": 2, "op": Op.ADD, "dtype": Dtype.FP32} | attributes
    first = registers.RANGE + i * registers.RANGE_STRIDE
    bench.write(first, base)
    bench.write(first + 8, limit)
    bench.write(first + 16, pack(registers.RangeAttributes, **attributes))


def set_arbiter(bench, **values) -> None:
    values = {"mca": 1, "fixed": 1, "threshold": 127, "starvation": 64, "burst": 8} | values
    bench.write(registers.ARBITER, pack(registers.Arbiter, **values))


def request(tag=0, **values) -> int:
    return pack(MemoryRequest, **{"op": Op.READ, "line": 5, "tag": tag} | values)


def update(tag=0, **values) -> int:
    """An item that range 0 tracks."""
    named = {"op": Op.STORE, "line": BASE, "context": 3, "tagged": 1, "wf": 9, "bottom": 1, "row": 5, "col": 7}
    return request(tag, **named | values)


def arm(bench, context=0) -> None:
    bench.write(registers.CONTROL, pack(registers.Control, arm=1, descriptors=1, context=context))


def abort(bench, context) -> None:
    bench.write(registers.CONTROL, pack(registers.Control, abort=1, context=context))


def out(bench) -> dict[str, int] | None:
    item = bench.item("dram")
    return None if item is None else unpack(MemoryRequest, item)


def drain(bench, limit=40) -> list[int]:
    """Tags of what leaves in the next cycles, with `dram` always ready, until 4 cycles pass without any."""
    tags, quiet = [], 0
    bench.tick(0, dram_ready=1)
    for _ in range(limit):
        item = out(bench)
        quiet = 0 if item else quiet + 1
        if quiet == 4:
            return tags
        if item:
            tags.append(item["tag"])
        bench.tick()
    raise AssertionError("the slice never stopped")


def tokens(bench, count) -> list[int]:
    """Take the next `count` tokens, one per cycle."""
    taken = []
    for _ in range(count):
        taken.append(bench.item("token"))
        bench.tick(token_ready=1)
    bench.tick(0, token_ready=0)
    return taken


def performed() -> Bench:
    bench = make(count_on="performed", token_queue=3)
    set_range(bench)
    bench.tick(0, dram_ready=1)
    return bench
