"""Slices and token network under fire: two contexts store through them, and what comes out is compared.

The tag of an access names a record of the simulated memory, so that a wrong one means nothing in a co-simulation; here
memory takes what it is given, and every bit of an access counts.
"""

from t3hdl.config import T3Config

from t3sim.hardware.abi import LoadedHardware
from t3sim.inputs.geometry import Grid
from t3sim.validation.memory_rate.streams import REFUSALS, StreamBench, Strike
from t3sim.validation.memory_rate.traffic import Job

from .outcome import TELL_CYCLES, Observation

PARTS = ("slice", "leaf", "root")
"""What can be struck here."""
LATE = 4
"""A run that takes so many times as long as one without a fault does not end."""
_STICKY = ("unmatched", "over_count", "over_total", "uncorrectable")


def jobs(config: T3Config) -> tuple[Job, Job]:
    """Some 2000 lines of two contexts, in bursts of every length, with more open tiles than there are entries."""
    grid = Grid(m=64, n=232, tile_rows=16, tile_cols=64, wavefronts=min(2, config.wavefronts))
    room = 1 << 15  # output buffers of 1 MiB
    first = Job(grid=grid, context=0, order="stage", base=room, chunks=2, stage=4)
    second = Job(grid=grid, context=1, order="tiles", base=2 * room, chunks=2)
    return first, second


def instances(config: T3Config, part: str) -> int:
    """Of a part in one unit."""
    return {"slice": config.slices, "leaf": config.nodes, "root": config.roots}[part]


def observe_streams(hardware: LoadedHardware, strike: Strike | None, cycles: int | None) -> tuple[Observation, int]:
    """What came out, with the bit that was struck, and in how many cycles; ``cycles``: of the run without."""
    config = hardware.config
    bench = StreamBench(hardware)
    found = bench.run(jobs(config), strike=strike, **({} if cycles is None else {"most": LATE * cycles}))
    bench.rest(TELL_CYCLES)
    parts = [(part, number) for part in PARTS for number in range(instances(config, part))] + [("tracker", 0)]
    named = {name for name in _STICKY if bench.output("tracker", 0, name)}
    named |= {"uncorrectable"} if any(bench.output(*part, "uncorrectable") for part in parts) else set()
    named |= {"violation"} if bench.seen[REFUSALS] else set()
    return Observation(
        completed=not found.left,
        result=tuple(str(total) for total in bench.seen),
        commands=(),
        counts=((found.tracked["updates"], found.tracked["tiles"]),),
        times=(),
        statistics=(),
        premature=False,
        named=frozenset(named),
        corrected=any(bench.output(*part, "corrected") for part in parts),
    ), found.cycles
