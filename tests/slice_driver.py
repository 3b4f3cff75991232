"""Words, registers and moves that the tests of the memory slice share."""

from stream_checks import Bench
from t3hdl.config import preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Dtype, Op
from t3hdl.slice.slice import MemorySlice

PORTS = ("compute_read", "compute_write", "comm_read", "comm_write")
TILE = {"context": 3, "row": 5, "col": 9, "wf": 1, "right": 1, "bottom": 0}
STORE = {"line": 1005, "op": Op.STORE, "dtype": Dtype.FP16, "source": 2, "tagged": 1, "tag": 77, **TILE}
READ = {"line": 10, "op": Op.READ, "tag": 5}
TOKEN = {**TILE, "epoch": 2, "n": 1}
MCA = {"mca": 1, "fixed": 0, "threshold": 0, "starvation": 20, "burst": 2}
UPDATES = (Op.STORE, Op.ADD, Op.MIN, Op.MAX)


def small_slice(**parameters: object) -> MemorySlice:
    return MemorySlice(config=preset("small", **{"contexts": 4, **parameters}))


async def set_range(bench: Bench, index: int = 0, base: int = 1000, limit: int = 2000, **attributes: int) -> None:
    """Range ``index``: by default lines 1000 to 1999 of context 3, epoch 2, ADD on BF16."""
    address = regs.RANGE + index * regs.RANGE_STRIDE
    fields = {"valid": 1, "context": 3, "epoch": 2, "op": Op.ADD, "dtype": Dtype.BF16, **attributes}
    await bench.write(address, base)
    await bench.write(address + 8, limit)
    await bench.write(address + 16, fields, regs.RangeAttributes)


async def write_arbiter(bench: Bench, **fields: int) -> None:
    await bench.write(regs.ARBITER, {**MCA, **fields}, regs.Arbiter)


async def write_control(bench: Bench, **fields: int) -> None:
    await bench.write(regs.CONTROL, fields, regs.Control)


async def through(bench: Bench, port: str, item: dict) -> dict:
    """What ``item`` looks like on ``dram``."""
    bench.send[port].append(item)
    await bench.step(4)
    return bench.got["dram"][-1][1]


def tags(bench: Bench) -> list[int]:
    return [request["tag"] for _, request in bench.got["dram"]]


async def report(bench: Bench, request: dict, cycles: int = 1) -> None:
    """The memory reports ``request`` performed, in each of ``cycles`` cycles."""
    for _ in range(cycles):
        await bench.step(update_done_valid=1, update_done=request)
    bench.ctx.set(bench.part.update_done_valid, 0)
