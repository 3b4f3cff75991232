"""The netlists that Yosys makes for the boards do what the designs do: rounds pass, the button is caught.

Every lookup table, carry, flip-flop and memory is the vendor's cell, simulated by the model that Yosys ships. The
iCE40 boards' design is the one that is built, at another clock; tracker and trigger are made for iCE40, too, though for
a larger one than there is. For ECP5 the smallest unit stands for the boards' larger ones, without block RAM and
multipliers, of which Yosys ships no models: LUTs and distributed RAM do their work. The board's pins, clock and reset
are in none of them.
"""

from itertools import islice

import pytest
from t3fpga.selftest.rounds import FIRST_SEED
from t3fpga.selftest.selftest import SelfTest
from t3fpga.selftest.tracker.tracker_only_test import TrackerOnlyTest
from t3fpga.selftest.tracker.tracker_test import TrackerTest
from t3hdl.config import preset

from tests.fpga.netlist_bench import netlist
from tests.fpga.selftest_bench import OPTIONS, Board, compiled_text
from tests.fpga.selftest_expected import check_dropped, check_good
from tests.fpga.selftest_reference import next_seed

pytestmark = pytest.mark.slow  # a synthesis each, and a netlist of ten thousand cells and more to compile

NETLISTS = {
    "icebreaker": (TrackerOnlyTest, "fpga-up5k", "iCE40UP"),
    "tracker": (TrackerTest, "fpga-hx8k", "iCE40HX"),
    "ecp5": (SelfTest, "fpga-hx8k", "ECP5"),
}
ROUNDS = 4


@pytest.mark.parametrize("name", NETLISTS)
def test_a_netlist_passes_its_rounds_and_the_button_is_caught(name):
    test, preset_name, device = NETLISTS[name]
    config = preset(preset_name)
    design = test(config=config, **OPTIONS)
    top = f"netlist_{name}"
    board, seed = Board(compiled_text(design, top, netlist(design, top, device))), FIRST_SEED
    lines = board.lines()
    for number, line in enumerate(islice(lines, ROUNDS)):
        assert (line.round, line.seed) == (number, seed)
        check_good(line, test, config)
        assert board.leds == (1, 0)
        seed = next_seed(seed)
    board.instance.set("button", 1)
    (failed,) = (line for line in islice(lines, 6) if line.what != "pass")
    check_dropped(failed, test, config)
    assert failed.round <= ROUNDS + 2
