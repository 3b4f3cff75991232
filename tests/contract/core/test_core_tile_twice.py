"""The core: a tile whose updates come a second time is no step towards a command, and software is told."""

import pytest
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Op
from t3hdl.interface.words import unpack

from tests.contract.core.scene import (
    ADDENDS,
    CONTEXT,
    EPOCH,
    TINY,
    access,
    arm,
    control,
    core,
    drain,
    lines_of,
    request,
    send,
)

FIRST, SECOND = (2, 2, 0), (2, 2, 1)
"""The two tiles of the corner block of chunk 1."""


def updates(*tiles: tuple[int, int, int], epoch: int = EPOCH) -> list[dict[str, int]]:
    """All updates of these tiles, one tile after the other."""
    return [
        access(line, tile, Op.ADD, epoch=epoch) for tile in tiles for _ in range(ADDENDS) for line in lines_of(*tile)
    ]


@pytest.mark.long
@pytest.mark.parametrize("simulator", ["amaranth", "rtl"])
def test_a_block_does_not_fire_for_a_tile_that_is_complete_twice(simulator):
    bench = core(simulator, TINY)
    arm(bench)
    request(bench, 1, regs.IRQ_ENABLE, regs.Interrupts.const({"tile_twice": 1}).as_bits())
    send(bench, "comm_write", updates(FIRST))
    drain(bench)
    assert not bench["interrupt"] and request(bench, 0, regs.ERRORS) == 0
    send(bench, "comm_write", updates(FIRST))
    drain(bench)
    assert not bench.got["command"], "its second tile was never complete"
    assert bench["interrupt"]
    assert request(bench, 0, regs.ERRORS) == regs.Errors.const({"tile_twice": 1}).as_bits()
    assert request(bench, 0, regs.POISONED) == 1 << 1
    row, col, wf = FIRST
    told = {"valid": 1, "descriptor": 1, "context": CONTEXT, "row": row, "col": col, "wf": wf}
    assert unpack(regs.TileRecord, request(bench, 0, regs.TILE_TWICE)) == told
    send(bench, "comm_write", updates(SECOND))
    drain(bench)
    assert not bench.got["command"], "its chunk is poisoned"
    control(bench, disarm=1, forced=1)
    bench.until("init_done", 1000)
    assert request(bench, 0, regs.ERRORS) == request(bench, 0, regs.TILE_TWICE) == 0
    arm(bench, EPOCH + 1)
    send(bench, "comm_write", updates(FIRST, SECOND, epoch=EPOCH + 1))
    drain(bench)
    assert [(command["row"], command["col"]) for _, command in bench.got["command"]] == [(2, 2)]
