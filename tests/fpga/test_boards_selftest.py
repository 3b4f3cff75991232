"""The self-testing designs: rounds pass, the button and mistakes of the hardware are found, and named."""

import gc
from functools import cache
from itertools import islice

import pytest
from t3fpga.selftest.report.uart import Uart
from t3fpga.selftest.rounds import FIRST_SEED
from t3fpga.selftest.selftest import SelfTest
from t3fpga.selftest.tracker.tracker_only_test import TrackerOnlyTest
from t3fpga.selftest.tracker.tracker_test import TrackerTest
from t3hdl.config import preset

from tests.fpga.buggy_designs import BUGS, Buggy
from tests.fpga.selftest_bench import OPTIONS, Board, compiled
from tests.fpga.selftest_expected import check_dropped, check_good
from tests.fpga.selftest_reference import next_seed

pytestmark = pytest.mark.slow  # each compiles a whole design

CONFIGS = {
    "only": preset("fpga-up5k"),
    "tracker": preset("fpga-up5k"),
    "unit": preset("fpga-hx8k"),
    "fpga": preset("fpga"),
    "all": preset("fpga-all"),
}
DESIGNS = {"only": TrackerOnlyTest, "tracker": TrackerTest, "unit": SelfTest, "fpga": SelfTest, "all": SelfTest}
ROUNDS = {"only": 12, "tracker": 12, "unit": 12, "fpga": 24, "all": 24}
BUGGY = [(name, mistake) for name in ("only", "tracker", "unit") for mistake in BUGS[DESIGNS[name]]]


@cache
def part(name):
    return compiled(Buggy(DESIGNS[name](config=CONFIGS[name], **OPTIONS)), f"selftest_{name}")


def check(line, name):
    check_good(line, DESIGNS[name], CONFIGS[name])


@pytest.mark.parametrize("name", CONFIGS)
def test_rounds_pass_with_what_their_seeds_say(name):
    board, seed = Board(part(name)), FIRST_SEED
    for number, line in enumerate(islice(board.lines(), ROUNDS[name])):
        check(line, name)
        assert (line.round, line.seed) == (number, seed)
        assert board.leds == (1, 0)
        seed = next_seed(seed)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_button_makes_one_round_fail_and_the_report_names_what_is_short(name):
    board = Board(part(name))
    lines = board.lines()
    check(next(lines), name)
    board.instance.set("button", 1)
    failed = []
    for line in islice(lines, 6):
        if line.what == "pass":
            check(line, name)
        else:
            failed.append(line)
            assert board.leds == (0, 1)
    (line,) = failed  # held down, it counts once
    check_dropped(line, DESIGNS[name], CONFIGS[name])
    assert line.round <= 3  # one round may be over, and one under way, when the button is pressed
    assert board.leds == (1, 0)  # two good rounds later


def test_the_order_of_commands_follows_from_the_seed():
    """Also after a failed round: the checksum of tracker and trigger alone covers that order."""
    lines = []
    for button in (0, 1):
        board = Board(part("tracker"))
        board.instance.set("button", button)
        lines.append(list(islice(board.lines(), 12)))
    undisturbed, disturbed = lines
    assert [line.what for line in disturbed].count("lost") == 1
    for left, right in zip(undisturbed, disturbed, strict=True):
        assert right.what == "lost" or left == right


@pytest.mark.parametrize(("name", "mistake"), BUGGY)
def test_a_mistake_of_the_hardware_is_found_and_forgotten(name, mistake):
    mistakes = BUGS[DESIGNS[name]]
    board = Board(part(name))
    lines = board.lines()
    check(next(lines), name)
    board.instance.set("mistake", list(mistakes).index(mistake) + 1)
    found = [line.what for line in islice(lines, 5)]
    assert set(found) - {"pass"} and set(found) - {"pass"} <= mistakes[mistake][1], found
    board.instance.set("mistake", 0)
    next(islice(lines, 1, None))  # the rounds that were under way
    for line in islice(lines, 3):
        check(line, name)


def test_rounds_that_never_end_are_told_as_such_each_time():
    """A job that is dropped takes its epoch away: the next round has another one."""
    board = Board(part("unit"))
    lines = board.lines()
    check(next(lines), "unit")
    board.instance.set("mistake", list(BUGS[SelfTest]).index("command never taken") + 1)
    next(lines)  # may have been under way
    assert {line.what for line in islice(lines, 24)} == {"timeout"}
    board.instance.set("mistake", 0)
    next(lines)
    for line in islice(lines, 3):
        check(line, "unit")


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_a_clock_that_cannot_give_the_baud_rate_is_refused():
    with pytest.raises(ValueError, match="460800 Hz cannot be divided to within 2 % of 345600 baud"):
        Uart(clock_hz=460800, baud=345600)
    gc.collect()  # what was refused ends while the warning is off


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chunk_window": 2}, "chunk_window >= 3, not 2"),
        ({"slices": 64, "node_inputs": 8}, "slices must be <= 32, not 64"),
        ({"count_on": "performed"}, "count_on must be 'accepted', not 'performed'"),
    ],
)
def test_a_configuration_that_cannot_play_the_rounds_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        SelfTest(config=preset("fpga", **change), **OPTIONS)
    gc.collect()


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_a_tracker_without_room_for_every_tile_is_not_tested_alone():
    with pytest.raises(ValueError, match="tracker_ways or tracker_sets must be larger, not 1 and 32"):
        TrackerOnlyTest(config=preset("fpga-up5k", tracker_ways=1), **OPTIONS)
    gc.collect()
