"""The netlists that Yosys makes for the boards do what the designs do: rounds pass, the button is caught.

Every lookup table, carry, flip-flop and memory is the vendor's cell, simulated by the model that Yosys ships.
"""

from itertools import islice

import pytest
from netlist_bench import netlist
from selftest_bench import OPTIONS, Board, compiled_text
from selftest_reference import checksum, counts, dropped, next_seed
from t3hdl.boards.rounds import FIRST_SEED
from t3hdl.boards.selftest import SelfTest
from t3hdl.boards.tracker_test import TrackerTest
from t3hdl.config import preset

pytestmark = pytest.mark.slow  # a synthesis each, and a netlist of ten thousand cells and more to compile

NETLISTS = {
    "icebreaker": (TrackerTest, preset("fpga-up5k"), "ice40"),
    "ecp5": (SelfTest, preset("fpga-hx8k"), "ecp5"),
}
ROUNDS = 4


@pytest.mark.parametrize("name", NETLISTS)
def test_a_netlist_passes_its_rounds_and_the_button_is_caught(name):
    test, config, family = NETLISTS[name]
    design = test(config=config, **OPTIONS)
    top = f"netlist_{name}"
    board, seed = Board(compiled_text(design, top, netlist(design, top, family))), FIRST_SEED
    wavefronts, lines = min(2, config.wavefronts), board.lines()
    for number, line in enumerate(islice(lines, ROUNDS)):
        assert (line.round, line.seed, line.what) == (number, seed, "pass")
        assert (line.updates, line.tiles, line.triggers) == counts(seed, wavefronts)
        assert test is TrackerTest or line.checksum == checksum(seed)
        assert board.lamps == (1, 0)
        seed = next_seed(seed)
    board.instance.set("button", 1)
    (failed,) = (line for line in islice(lines, 6) if line.what != "pass")
    assert (failed.what, failed.detail) == ("lost", dropped(failed.seed, wavefronts))
    assert failed.round <= ROUNDS + 2
