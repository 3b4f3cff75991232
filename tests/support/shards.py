"""Divides tests into shards that take about the same time, and are the same everywhere."""

import re
from collections.abc import Iterable

SECONDS = {
    r"test_boards_netlist.*ecp5": 600,
    r"compiled_alu_adds_every_pair": 600,
    r"test_area_page|test_a_board_is_built": 500,
    r"test_boards_netlist.*hx8k": 300,
    r"test_make_run_gives|test_wheel": 250,
    r"test_boards_netlist|test_depth.py.*tracker|test_lint_paper|test_boards_selftest.*fpga": 200,
    r"test_parts_agree.*for_long.paper-tracker": 150,
    r"test_tb.py::test_every_bin|test_depth.py.*trigger|test_chunks_overflow_side": 120,
    r"test_tb.py": 80,
    r"test_faults|test_reproduce|test_integration_example|test_validate_alu": 80,
    r"test_system|test_end_to_end|test_boards_selftest|test_prove_tracker|test_prove_linked": 50,
    r"test_parts_agree.*(paper|wide)|test_core_rtl|test_alu_rtl|test_timing_of_other_sizes": 20,
}
"""About how long the longest tests take beside one other, from a run of the tier on two cores, where those of netlists
and of the area page are estimates: a pattern of their names, from the start of the file's."""
OTHER = 8
"""Seconds for every other slow test."""


def seconds(test: str) -> int:
    """About how long a test takes, by its node ID."""
    return next((time for pattern, time in SECONDS.items() if re.search(pattern, test)), OTHER)


def shard_of(tests: Iterable[str], count: int) -> dict[str, int]:
    """For each test the share, 1 to ``count``: the longest first, each where least is to be done.

    Tests of one time lie apart, in the order of their names, so there is no empty share if there are enough tests.
    """
    loads = [0] * count
    shards = {}
    for test in sorted(tests, key=lambda test: (-seconds(test), test)):
        share = loads.index(min(loads))
        loads[share] += seconds(test)
        shards[test] = share + 1
    return shards
