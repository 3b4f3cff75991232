"""`t3 bench`: how often the compiled hardware is evaluated, for what, and how fast an evaluation is."""

import time
from dataclasses import asdict, dataclass, replace

import numpy as np
from t3hdl.config import T3Config

from .request import Policy, RunRequest
from .result import Contention, Result
from .rtl import compiled_part
from .runs import Watch, run_policies

NETWORK = ("leaf", "root", "tracker")
"""Parts that work for updates only."""
VECTORS = 256
"""Random input vectors that the loop goes through in turn."""
BENCH_SECONDS = 0.2
"""Least time that is measured."""


@dataclass(frozen=True, kw_only=True)
class Evaluations:
    """Evaluations of RTL parts for one event of each kind, in one workload."""

    per_untracked_request: float
    per_update: float
    per_tile: float


@dataclass(frozen=True, kw_only=True)
class PartBench:
    """One kind of part: its evaluations in the t3-mca run, and evaluations per second in a loop of its own."""

    name: str
    evaluations: int
    per_second: float

    @property
    def seconds(self) -> float:
        """Time that the evaluations take."""
        return self.evaluations / self.per_second


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The result. ``evaluated_share``: evaluated part-cycles over all; ``rtl_share``: of the simulate time."""

    evaluations: Evaluations
    parts: list[PartBench]
    total_evaluations: int
    evaluated_share: float
    rtl_seconds: float
    simulate_seconds: float
    rtl_share: float

    def to_record(self) -> dict:
        """What ``bench.json`` holds."""
        return {"schema": 1, **asdict(self)}


def bench(request: RunRequest, watch: Watch) -> Bench:
    """Runs ``request`` sequentially (untracked requests only) and with t3-mca, on one thread; attributes evaluations.

    Raises ValueError if the request is not for the rtl hardware.
    """
    if request.hardware != "rtl":
        raise ValueError(f"bench measures the rtl hardware, not {request.hardware!r}")
    policies: tuple[Policy, ...] = ("sequential", "t3-mca")
    results = run_policies(replace(request, threads=1), policies, watch)
    tracked = results["t3-mca"]
    rtl = tracked.record.rtl
    if rtl is None:
        raise ValueError("the t3-mca run has no record of RTL cycles")
    config = request.machine.hardware.config()
    parts = [
        PartBench(name=name, evaluations=count, per_second=evaluations_per_second(config, name, request.seed))
        for name, count in rtl.evaluated_by_part.items()
        if count
    ]
    seconds = sum(part.seconds for part in parts)
    return Bench(
        evaluations=attribute(results["sequential"].record, tracked.record),
        parts=parts,
        total_evaluations=rtl.cycles_evaluated,
        evaluated_share=rtl.cycles_evaluated / rtl.cycles,
        rtl_seconds=seconds,
        simulate_seconds=tracked.wall.simulate,
        rtl_share=seconds / tracked.wall.simulate,
    )


def attribute(sequential: Result, tracked: Result) -> Evaluations:
    """Evaluations per event: slices by request, token network and tracker by update, trigger by tile.

    A sequential run has untracked requests only and gives their cost; what the slices of the tracked run take beyond
    that is for its updates. Raises ValueError if a record lacks RTL cycles, contention or tracker.
    """
    if sequential.rtl is None or sequential.contention is None:
        raise ValueError("the sequential run has no record of RTL cycles and requests")
    if tracked.rtl is None or tracked.contention is None or tracked.tracker is None:
        raise ValueError("the tracked run has no record of RTL cycles, requests and updates")
    untracked_cost = sequential.rtl.evaluated_by_part["slice"] / _requests(sequential.contention)
    updates, by_part = tracked.tracker.updates, tracked.rtl.evaluated_by_part
    slices = by_part["slice"] - untracked_cost * (_requests(tracked.contention) - updates)
    return Evaluations(
        per_untracked_request=untracked_cost,
        per_update=(slices + sum(by_part[name] for name in NETWORK)) / updates,
        per_tile=by_part["trigger"] / tracked.tracker.tiles,
    )


def _requests(contention: Contention) -> int:
    """Lines that memory accepted, tracked or not."""
    return contention.compute.lines + contention.communication.lines


def evaluations_per_second(config: T3Config, name: str, seed: int) -> float:
    """Evaluations per second of one part in a C loop, with random inputs on every port (the seed's)."""
    part = compiled_part(config, name)
    words = part.part_type.words
    inputs = np.random.default_rng(seed).integers(0, 1 << 63, (VECTORS, max(1, words.input_words)), dtype=np.uint64)
    outputs = np.zeros(max(1, words.output_words), dtype=np.uint64)
    handle = part.part_type.new()
    steps = VECTORS
    while True:
        start = time.perf_counter()
        part.bench(handle, inputs.ctypes.data, outputs.ctypes.data, VECTORS, steps)
        elapsed = time.perf_counter() - start
        if elapsed > BENCH_SECONDS:
            part.free()
            return steps / elapsed
        steps *= 4
