"""The HBM model issues what a plain scheduler does that looks at every line in every cycle: command by command."""

import numpy as np
import pytest
from t3sim.dram.hbm import new_hbm_state
from t3sim.inputs.machine.hbm import HbmSection

from tests.sim.dram.hbm_reference import run
from tests.sim.dram.memory import memory
from tests.sim.dram.plain_channel import PlainChannel

LONGEST = 60000
"""Cycles within which all accesses are done: in a short queue reads and writes can close each other's rows
until one is overdue."""
FIELDS = [0, 1, 2, 6, 7]  # of a logged command: cycle, command, bank, tag, done


def parameters_of(rng: np.random.Generator) -> HbmSection:
    """Timings, queue, and what decides, all at random; many refreshes."""
    scaled = {"nRCDRD": 14, "nRCDWR": 12, "nRTPL": 5, "nWTRS": 6, "nFAW": 24, "nRRDS": 4}
    high = float(rng.uniform(0.2, 1.0))
    return memory(
        **{name: int(rng.integers(max(1, value // 2), value + 1)) for name, value in scaled.items()},  # type: ignore[arg-type]
        nRC=int(rng.integers(48, 70)),
        nWTRL=20,
        nRRDL=12,
        nCCDL=int(rng.integers(2, 6)),
        act_clocks=int(rng.choice([1, 2])),
        nRFC=60,
        nREFI=int(rng.integers(200, 900)),
        refresh=bool(rng.random() < 0.7),
        queue=str(rng.choice(["shared", "split"])),
        queue_lines=int(rng.choice([8, 9, 24])),
        read_lines=int(rng.integers(8, 16)),
        write_lines=int(rng.integers(8, 16)),
        drain_high=high,
        drain_low=high * float(rng.uniform(0, 0.9)),
        age_limit_cycles=int(rng.choice([150, 300, 2048])),
        service_order=str(rng.choice(["reads-first", "age"])),
        hit_order=str(rng.choice(["first-ready", "oldest"])),
        row_policy=str(rng.choice(["oldest", "hits-first"])),
        substrate=str(rng.choice(["nmc", "pim", "atomics"])),
        nmc_update_cycles=int(rng.choice([1, 8, 20])),
        pim_switch_cycles=int(rng.choice([5, 48])),
        atomic_cycles=int(rng.choice([1, 4, 30])),
    )


def traffic_of(rng: np.random.Generator, accesses: int) -> np.ndarray:
    """Bursts, a steady load and pauses; few lines, so that rows conflict and addresses meet."""
    pauses = rng.choice([0, 3, 10, 300], size=accesses, p=rng.dirichlet([2, 1, 1, 0.05]))
    kinds = rng.choice(3, size=accesses, p=rng.dirichlet([0.7] * 3))
    limits = (4, int(rng.choice([1, 4])), int(rng.choice([1, 3, 50])), int(rng.choice([2, 64])))
    places = [rng.integers(0, limit, accesses) for limit in limits]
    return np.column_stack([np.cumsum(pauses), kinds, *places])


def issued_by_plain(parameters: HbmSection, traffic: np.ndarray) -> tuple[np.ndarray, int]:
    """The plain scheduler's commands for ``traffic``, rows of :data:`FIELDS`; and the cycle after the last access."""
    channel, head = PlainChannel(parameters), 0
    for now in range(LONGEST):
        while head < len(traffic) and traffic[head, 0] <= now and channel.accepts(traffic[head, 1]):
            _, kind, group, bank, row, column = traffic[head].tolist()
            channel.enqueue(now, head, kind, 4 * group + bank, row, column)
            head += 1
        channel.cycle(now)
        if head == len(traffic) and not channel.lines:
            return np.array(channel.commands), now + 1
    raise AssertionError(f"accesses that never issue: {channel.lines}")


@pytest.mark.parametrize("seed", [*range(30), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(30, 400))])
def test_the_model_issues_what_a_plain_scheduler_does(seed):
    rng = np.random.default_rng(seed)
    parameters, traffic = parameters_of(rng), traffic_of(rng, 150)
    expected, end = issued_by_plain(parameters, traffic)
    commands = run(new_hbm_state(parameters, 1), traffic, until=end).commands[:, FIELDS]
    np.testing.assert_array_equal(commands, expected, f"seed {seed}: {parameters}")
