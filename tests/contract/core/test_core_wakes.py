"""T3Core wakes by itself when communication has waited for as long as it may: no other part has a deadline then."""

from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import NEVER
from t3hdl.slice.monitor import PATIENCE_SHIFT

from tests.contract.core.scene import TINY, core, fire_one_block, request

PATIENCE = 4


def test_it_wakes_when_a_command_has_waited_for_as_long_as_it_may() -> None:
    bench = core("amaranth", TINY)
    while not bench["init_done"]:
        bench.step()
    request(bench, 1, regs.THRESHOLDS, regs.Thresholds.const({"patience": PATIENCE}).as_bits())
    fire_one_block(bench)
    wake = bench["wake_at"]
    assert bench["idle"] and bench.now < wake <= bench.now + (PATIENCE << PATIENCE_SHIFT)
    bench.step(wake - bench.now + 2)
    assert bench["wake_at"] == NEVER
