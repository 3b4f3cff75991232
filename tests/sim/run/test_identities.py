"""Accounting identities: a seeded mistake makes each of them false, and what was not observed is not called true."""

from collections.abc import Callable

import pytest
from t3hdl.interface import register_map as regs
from t3sim.collective.driver import Driver
from t3sim.inputs.geometry import Blocks, Chunk
from t3sim.run.identities import identities
from t3sim.run.policies import failures
from t3sim.run.request import CAUSES
from t3sim.run.simulate import simulate
from t3sim.run.system import System

from tests.support.sample_result import sample_result
from tests.support.system_cases import EVEN, ODD, request

ROOMY = {"hardware.tracker_sets": 64, "hardware.tracker_ways": 8}
"""A tracker that never overflows, so that every tile is counted."""
Seed = Callable[[pytest.MonkeyPatch], None]


def after_the_run(change: Callable[[System], None]) -> Seed:
    """A model that counted something else."""

    def seed(patch: pytest.MonkeyPatch) -> None:
        run = System.run

        def wrong(system: System, threads: int):
            yield from run(system, threads)
            change(system)

        patch.setattr(System, "run", wrong)

    return seed


def count(model: str, name: str) -> Seed:
    """One too many in a count of a model of GPU 1."""

    def change(system: System) -> None:
        getattr(system.gpus[1], model)[name] += 1

    return after_the_run(change)


def moved_bytes(cause: str) -> Seed:
    """A line of GPU 1 that was moved twice."""

    def change(system: System) -> None:
        system.gpus[1].bytes_by_cause[CAUSES.index(cause)] += 32

    return after_the_run(change)


def register(address: int, *changes: int) -> Seed:
    """The units count something else: GPU 0, GPU 1, ..."""

    def seed(patch: pytest.MonkeyPatch) -> None:
        read = System.read
        patch.setattr(
            System,
            "read",
            lambda system, number, at: read(system, number, at) + (changes[number] if at == address else 0),
        )

    return seed


def count_a_line_twice(system: System) -> None:
    system.gpus[1].wait[0, 0] += 1


def trigger_early(patch: pytest.MonkeyPatch) -> None:
    """Blocks are sent after the first of their two updates, which a run without data has to notice, too."""
    dma_map = Driver.dma_map

    def early(driver: Driver, chunk: Chunk, peer: int, addends: int, blocks: Blocks) -> None:
        dma_map(driver, chunk, peer, addends - 1, blocks)

    patch.setattr(Driver, "dma_map", early)


BUGS: dict[str, Seed] = {
    **{f"{cause}_closed_form": moved_bytes(cause) for cause in CAUSES if cause != "gemm_read"},
    "wall_is_compute_exposed_idle": count("time", "idle_cycles"),
    "requests_all_answered": count("fabric", "bursts_used"),
    "dram_lines_match_bytes": after_the_run(count_a_line_twice),
    # The sums over all GPUs are right.
    "updates_counted_are_updates_sent": register(regs.UPDATES, 0, 1, -1, 0),
    "tiles_counted_are_tiles_mapped": register(regs.TILES, 0, 1, -1, 0),
    "triggers_are_blocks_mapped": register(regs.TRIGGERS, 0, 1, -1, 0),
    "dma_reads_see_all_counted_updates": trigger_early,
    "no_hardware_error": register(regs.ERRORS, 0, 1 << regs.Errors["tile_twice"].offset, 0, 0),
}


def test_every_identity_has_a_seeded_mistake():
    assert simulate(request(EVEN, "t3", ROOMY)).record.identities == dict.fromkeys(BUGS, True)


@pytest.mark.parametrize("name", BUGS)
def test_a_seeded_mistake_is_noticed(monkeypatch, name):
    BUGS[name](monkeypatch)
    record = simulate(request(EVEN, "t3", ROOMY)).record
    assert record.identities[name] is False
    assert f"t3: identity {name} does not hold" in failures(record)


@pytest.mark.parametrize("size", [EVEN, ODD])
@pytest.mark.parametrize("choices", [{"mirror": True}, {"data_lines": 0}])
def test_premature_reads_are_noticed_without_data(monkeypatch, size, choices):
    """Over a slow link, so that all local updates of a tile, and with them half of its count, come first: bursts of
    both GPUs in turns would go beyond that without ever being it."""
    name, slow = "dma_reads_see_all_counted_updates", {"link.latency_ns": 50_000}
    assert simulate(request(size, "t3", slow, **choices)).record.identities[name] is True
    trigger_early(monkeypatch)
    assert simulate(request(size, "t3", slow, **choices)).record.identities[name] is False


def test_a_ring_of_two_has_no_dma_reads_to_observe():
    found = simulate(request((256, 256, 512, 2), "t3")).record
    assert found.identities["dma_reads_see_all_counted_updates"] is None
    assert failures(found) == []


def test_a_mirrored_gpu_does_not_stand_for_unequal_ones():
    found = simulate(request(ODD, "sequential", mirror=True)).record
    forms = {holds for name, holds in found.identities.items() if name.endswith("_closed_form")}
    assert forms == {None}
    assert failures(found) == []


def test_policies_that_track_nothing_have_no_identities_of_units(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "t3sim.run.simulate.identities", lambda system, units: seen.append(units) or identities(system, units)
    )
    found = simulate(request(EVEN, "sequential")).record.identities
    assert seen == [[]]
    assert not {"no_hardware_error", "updates_counted_are_updates_sent"} & found.keys()


def test_a_chunk_that_overflowed_has_no_tiles():
    """The tracker's counts still add up when chunks are counted as a whole."""
    found = simulate(request(EVEN, "t3")).record
    assert found.tracker.overflowed_chunks > 0
    assert set(found.identities.values()) == {True}


def test_samples_name_identities_that_exist():
    assert sample_result("t3").identities.keys() == BUGS.keys()
