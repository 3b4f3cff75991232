"""The memory of ``paper-accelsim`` issues commands when the public simulator's counters allow them.

The cycles are worked out by hand from that simulator's rules (GPGPU-Sim, src/gpgpu-sim/dram.cc and gpu-sim.h, commit
90ec339), with its "timing for 1 GHZ": a counter that a command sets to n lets the next one go n cycles later.

- An activate sets RRD = 4 for all banks and, for its own, RCD = 14, RCDWR = RCD - (WL + 1) = 11, RAS = 33, RC = 47.
- A column command sets CCD = 1 for all banks, CCDL = 2 for its bank group. A burst takes 2 / 2 = 1 cycle.
- A read sets RTW = CL + burst + 2 - WL = 15 and, before a precharge, RTPL = 4.
- A write sets WTR = WL + burst + CDLR = 6 and, before a precharge, WTP = WL + burst + WR = 15.
- A precharge sets RP = 14.

Where two banks are ready the older access goes. What that simulator has and this model has not is listed in the preset.
"""

import numpy as np
import pytest
from t3sim.dram.hbm import READ, WRITE, new_hbm_state
from t3sim.dram.state import ACT, COLUMN, PRE
from t3sim.inputs.machine.files import load_machine

from tests.sim.dram.hbm_reference import run

NAMES = {ACT: "ACT", PRE: "PRE", COLUMN: "COL"}


def commands(*accesses: tuple[int, int, int]) -> list[str]:
    """What is issued for (kind, bank, row) that are there at once: name, access of a column command, and cycles since
    the first command."""
    parameters = load_machine("paper-accelsim").hbm
    traffic = np.array(
        [(0, kind, bank // 4, bank % 4, row, number) for number, (kind, bank, row) in enumerate(accesses)]
    )
    issued = run(new_hbm_state(parameters, 1), traffic, until=400).commands
    first = issued[0, 0]
    return [
        f"{NAMES[command]}{tag if command == COLUMN else ''} {cycle - first}"
        for cycle, command, tag in issued[:, [0, 1, 6]]
    ]


@pytest.mark.parametrize(
    ("accesses", "expected"),
    [
        ([(READ, 0, 5)] * 2, "ACT 0, COL0 14, COL1 16"),
        ([(READ, 0, 5), (READ, 1, 5), (READ, 4, 5)], "ACT 0, ACT 4, ACT 8, COL0 14, COL1 18, COL2 22"),
        ([(READ, 0, 5), (READ, 4, 5), (READ, 8, 5)] + [(READ, bank, 5) for _ in range(3) for bank in (0, 4)],
         "ACT 0, ACT 4, ACT 8, COL0 14, COL3 16, COL1 18, COL5 19, COL4 20, COL7 21, COL2 22, COL6 23, COL8 25"),
        ([(WRITE, 0, 5)], "ACT 0, COL0 11"),
        ([(READ, 0, 5), (WRITE, 0, 5)], "ACT 0, COL0 14, COL1 29"),
        ([(WRITE, 0, 5), (READ, 0, 5)], "ACT 0, COL0 11, COL1 17"),
        ([(WRITE, 0, 5)] * 4 + [(READ, 4, 5)], "ACT 0, ACT 4, COL0 11, COL1 13, COL2 15, COL3 17, COL4 23"),
        ([(READ, 0, 5), (READ, 0, 6)], "ACT 0, COL0 14, PRE 33, ACT 47, COL1 61"),
        ([(READ, 0, 5)] * 10 + [(READ, 0, 6)],
         f"ACT 0, {', '.join(f'COL{number} {14 + 2 * number}' for number in range(10))}, PRE 36, ACT 50, COL10 64"),
        ([(WRITE, 0, 5)] * 6 + [(WRITE, 0, 6)],
         "ACT 0, COL0 11, COL1 13, COL2 15, COL3 17, COL4 19, COL5 21, PRE 36, ACT 50, COL6 61"),
    ],
    ids=["CCDL", "RRD", "CCD", "RCDWR", "RTW", "WTR", "WTR of another group", "RAS, RP and RC", "RTPL", "WTP"],
)  # fmt: skip
def test_each_counter_holds_a_command_back_for_as_long_as_there(accesses, expected):
    assert ", ".join(commands(*accesses)) == expected


def test_hits_go_first_and_keep_their_row_open():
    """First ready, first come: the younger hit passes the older miss, which closes the row behind it."""
    issued = commands(*[(READ, 0, 5)] * 10, (READ, 0, 6), (WRITE, 0, 5))
    hits = [f"COL{number} {14 + 2 * number}" for number in range(10)]
    assert issued == ["ACT 0", *hits, "COL11 47", "PRE 62", "ACT 76", "COL10 90"]


def test_reads_and_writes_share_the_queue_by_age():
    """No read passes an older write of the same row: the configuration has no queue of its own for writes."""
    issued = commands((WRITE, 0, 5), (READ, 0, 5), (WRITE, 0, 5), (READ, 0, 5))
    assert issued == ["ACT 0", "COL0 11", "COL1 17", "COL2 32", "COL3 38"]
