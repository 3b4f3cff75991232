"""The engine looks at a channel, and evaluates a part, only when something can change there: that changes nothing.

Nor does it change anything but the record's contention if nobody observes what the streams wait for. And the LLC's
table of lines, in which it finds a line instead of looking through a set, agrees with the sets.
"""

from itertools import islice

import numpy as np
import pytest
from t3sim.hardware.backends import open_hardware
from t3sim.run.plan import RunPlan
from t3sim.run.simulate import set_up
from t3sim.run.system import System
from t3sim.run.timeline_record import TimelineRecord

from tests.support.system_cases import BASE, EVEN, check, request, run

THRESHOLDS = {"arbiter.mca": "paper"} | {
    f"arbiter.threshold_{use}": 6 for use in ("under_25", "under_50", "under_75", "above")
}
COMPARED = ("wait", "blocked_cycles", "bytes_by_cause", "received", "memory", "bins")


@pytest.fixture(scope="module")
def hardware():
    opened = open_hardware(request(EVEN, "t3").machine.hardware.config(), "golden")
    yield opened
    opened.close()


def programmed(hardware, policy, overrides=None):
    """A system before its first cycle."""
    system, _ = set_up(RunPlan(request(BASE, policy, overrides)), hardware, System)
    system.program()
    return system


def run_awake(system):
    """Simulate cycle by cycle, in each of which every channel is looked at and every slice and part is evaluated."""
    cycle = 0
    while any(gpu.time["finish_cycle"] < 0 for gpu in system.gpus):
        cycle += 1
        for gpu in system.gpus:
            gpu.channel_wake[:] = gpu.part_wake[:] = 0
            gpu.wheel[:] = (1 << len(gpu.channel_wake)) - 1
            gpu.wakes["unit_cycle"] = 0
            gpu.fronts["due_cycle"] = gpu.fronts["slice_wake_cycle"] = 0
        for job in system._window(cycle):
            job()


@pytest.mark.long
@pytest.mark.parametrize(
    ("policy", "overrides"), [("sequential", {}), ("t3", {}), ("t3-mca", {}), ("t3-mca", THRESHOLDS)]
)
def test_what_is_left_out_changes_nothing(hardware, policy, overrides):
    asleep, awake = (programmed(hardware, policy, overrides) for _ in range(2))
    for _ in asleep.run(1):
        pass
    run_awake(awake)
    for one, other in zip(asleep.gpus, awake.gpus, strict=True):
        assert one.time["finish_cycle"] == other.time["finish_cycle"]
        for name in COMPARED:
            assert (getattr(one, name) == getattr(other, name)).all(), name
        assert one.evaluated.sum() < other.evaluated.sum() / 2
    if overrides:
        held = sum(gpu.blocked_cycles[:, 1, 1].sum() for gpu in asleep.gpus)
        assert held > 0, "the threshold held communication back"


@pytest.mark.parametrize(
    ("policy", "overrides"),
    [("sequential", {}), ("sequential-nmc", {}), ("t3", {}), ("t3-mca", {}), ("t3-mca", THRESHOLDS)],
)
def test_a_run_whose_contention_nobody_observes_is_the_same(policy, overrides):
    """Times, traffic, data, identities and all GPUs over time, which the engine's accounts of waits may not touch."""
    seen, unseen = (run(BASE, policy, overrides, contention=contention) for contention in (True, False))
    check(unseen)
    assert seen.record.contention is not None and unseen.record.contention is None
    assert unseen.record.model_dump() == seen.record.model_dump() | {"contention": None}
    assert TimelineRecord.of(unseen.timeline) == TimelineRecord.of(seen.timeline)


@pytest.mark.parametrize("replacement", ["lru", "random"])
def test_the_table_of_lines_agrees_with_the_sets_of_the_cache(hardware, replacement):
    system = programmed(hardware, "sequential", {"llc.capacity_kib": 32, "llc.replacement": replacement})
    ways = int(system.gpus[0].llc["sets"] * system.gpus[0].llc["ways"])
    held = 0
    for _ in islice(system.run(1), 12):
        for gpu in system.gpus:
            tags = gpu.llc_entries["tag"][:ways]
            entries = np.flatnonzero(tags >= 0)
            assert (gpu.llc_place[tags[entries]] == entries + 1).all()
            assert np.count_nonzero(gpu.llc_place) == len(entries)
            held = max(held, len(entries))
    assert held == ways, "lines have given up their place to others"
