"""How a coroutine becomes the test of a testbench: it must end, even if the hardware owes it an answer for ever.

The limit is simulated time, so that a slow computer is no reason to fail.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import cocotb
from cocotb.triggers import SimTimeoutError, with_timeout

from tb.bench_run import BenchRun
from tb.cocotb.player import PERIOD_NS

FACTOR, BEYOND = 10, 100_000
"""The limit is ``FACTOR`` times the cycles of the run, plus ``BEYOND``. A run needs hardly more than its cycles; what
is beyond lets the host of a unit lose its own patience first (tb/cocotb/unit/host.py), which says more."""
Bench = Callable[[Any], Coroutine[Any, Any, None]]
"""Takes the simulated top."""


def limit(cycles: int) -> int:
    """Cycles of the unit's clock in which a run of so many ``cycles`` must end."""
    return FACTOR * cycles + BEYOND


def bench_test(bench: Bench) -> object:
    """Make ``bench`` cocotb's test of its module. The test fails if it has not ended within :func:`limit`."""

    @wraps(bench)
    async def limited(dut: Any) -> None:
        job = BenchRun.here()
        most = limit(job.cycles)
        try:
            await with_timeout(bench(dut), most * PERIOD_NS, "ns")
        except SimTimeoutError as error:
            raise AssertionError(
                f"the run must end within {most:,} cycles ({FACTOR} x {job.cycles:,} + {BEYOND:,}) and goes on: the "
                "hardware has probably lost an answer; the last lines of the log, or a wave, show where it stopped"
            ) from error

    return cocotb.test(limited)
