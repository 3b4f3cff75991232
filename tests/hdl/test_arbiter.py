"""The arbiter of one channel, sentence by sentence and against a plain model."""

import random
from functools import lru_cache
from typing import Any

import pytest
from t3hdl.config import NO_LIMIT
from t3hdl.interface.layouts import NEVER
from t3hdl.slice.arbiter import StreamArbiter

from tests.contract.backends import AmaranthBackend
from tests.contract.bench import Bench

_MCA = {"mca": 1, "fixed": 0, "threshold": 0, "starvation": 100, "quantum": 0}
_PORTS = ("compute_read", "compute_write", "comm_read", "comm_write")


def _kept(settings: dict[str, int]) -> dict[str, int]:
    """The slice's copy of an ARBITER register with these fields."""
    kept = dict(settings)
    return {"wait_limit": max(0, kept.pop("starvation", 0) - 1), **kept}


@lru_cache
def _backend() -> AmaranthBackend:
    return AmaranthBackend(StreamArbiter())


class _Arbiter(Bench):
    """An arbiter after reset, with these settings and an output register that is always taken."""

    def __init__(self, **settings: int) -> None:
        backend = _backend()
        backend.restart()
        super().__init__(backend, moore=False)
        self.drive(settings=settings, out_ready=1)

    def drive(self, **inputs: Any) -> None:
        """These inputs, until they are driven again."""
        for name, value in inputs.items():
            self.set(name, _kept(value) if name == "settings" else value)

    def grant(self, *eligible: str, **inputs: Any) -> str | None:
        """One cycle with these heads; the granted port, or None."""
        self.drive(eligible=dict.fromkeys(eligible, 1), **inputs)
        granted = [name for name, bit in self.fields("grant").items() if bit]
        self.step()
        assert len(granted) <= 1 and set(granted) <= set(eligible)
        return granted[0] if granted else None

    def grants(self, count: int, *eligible: str, **inputs: Any) -> list[str | None]:
        return [self.grant(*eligible, **inputs) for _ in range(count)]


def test_round_robin_alternates_the_streams_compute_first():
    arbiter = _Arbiter(mca=0)
    assert arbiter.grants(4, "compute_read", "comm_read") == ["compute_read", "comm_read"] * 2
    assert arbiter.grants(2, "comm_read") == ["comm_read"] * 2
    assert arbiter.grant("compute_read", "comm_read") == "compute_read"
    assert arbiter.grant() is None
    assert arbiter.grant("compute_read", "comm_read") == "comm_read", "an empty cycle is no turn"


@pytest.mark.parametrize("stream", ["compute", "comm"])
def test_a_stream_alternates_write_and_read_write_first(stream: str):
    read, write = f"{stream}_read", f"{stream}_write"
    arbiter = _Arbiter(mca=0)
    assert arbiter.grants(4, read, write) == [write, read] * 2
    assert arbiter.grants(2, write) == [write] * 2
    assert arbiter.grant(read, write) == read, "after a write the read, whoever was alone"
    assert arbiter.grant(read) == read
    assert arbiter.grant(read, write) == write


def test_the_streams_alternate_their_kinds_apart():
    arbiter = _Arbiter(mca=0)
    grants = arbiter.grants(8, *_PORTS)
    assert grants == ["compute_write", "comm_write", "compute_read", "comm_read"] * 2


@pytest.mark.parametrize("mca", [0, 1])
def test_grant_only_when_the_output_register_is_empty_or_leaves(mca: int):
    arbiter = _Arbiter(mca=mca)
    assert arbiter.grant("compute_read", out_valid=1, out_ready=0) is None
    assert arbiter.grant("compute_read", out_valid=1, out_ready=1) == "compute_read"
    assert arbiter.grant("compute_read", out_valid=0, out_ready=0) == "compute_read"


def test_mca_compute_goes_first_and_communication_fills_the_gaps():
    arbiter = _Arbiter(**_MCA)
    arbiter.drive(threshold=10)
    assert arbiter.grants(3, "compute_read", "comm_read") == ["compute_read"] * 3
    assert arbiter.grant("comm_read") == "comm_read"


@pytest.mark.parametrize("fixed", [0, 1])
@pytest.mark.parametrize("out_valid", [0, 1])
def test_mca_threshold_is_compared_with_occupancy_and_output_register(fixed: int, out_valid: int):
    arbiter = _Arbiter(**{**_MCA, "fixed": fixed, "threshold": 10 if fixed else NO_LIMIT})
    arbiter.drive(threshold=0 if fixed else 10, out_valid=out_valid, out_lines=out_valid)
    assert arbiter.grant("comm_read", occupancy=10 - out_valid) is None
    assert arbiter.grant("comm_read", occupancy=9 - out_valid) == "comm_read"
    arbiter.drive(threshold=NO_LIMIT, settings={**_MCA, "fixed": fixed, "threshold": NO_LIMIT})
    assert arbiter.grant("comm_read", occupancy=127) == "comm_read", "127 is no limit"


@pytest.mark.parametrize("starvation", [0, 1, 5, 64])
@pytest.mark.parametrize("quantum", [0, 1, 2, 4])
def test_mca_starvation_lets_a_quantum_through_after_exactly_s_cycles(starvation: int, quantum: int):
    arbiter = _Arbiter(**{**_MCA, "starvation": starvation, "quantum": quantum})
    arbiter.drive(threshold=0)
    arbiter.grants(3, "compute_read")
    for _ in range(2):
        # The head is seen at t and the wait starts there: it goes at t + S, and not in the cycle of its arrival.
        grants = arbiter.grants(max(1, starvation), "compute_read", "comm_read")
        assert grants == ["compute_read"] * max(1, starvation)
        let_through = max(1, quantum)
        assert arbiter.grants(let_through, "compute_read", "comm_read") == ["comm_read"] * let_through


def test_mca_a_deadline_behind_the_end_of_time_lets_communication_go_at_once():
    arbiter = _Arbiter(**{**_MCA, "starvation": 5})
    arbiter.drive(threshold=0)
    arbiter.now = NEVER - 3
    grants = arbiter.grants(3, "compute_read", "comm_read")
    assert grants == ["compute_read", "compute_read", "comm_read"]


def test_mca_a_wait_that_was_long_enough_stays_so_over_the_end_of_time():
    arbiter = _Arbiter(**{**_MCA, "starvation": 5})
    arbiter.drive(threshold=0)
    arbiter.now = NEVER - 7
    assert arbiter.grants(7, "compute_read", "comm_read", out_valid=1, out_ready=0) == [None] * 7
    arbiter.now = 0
    assert arbiter.grant("compute_read", "comm_read", out_valid=1, out_ready=0) is None
    assert arbiter.grant("compute_read", "comm_read", out_valid=0) == "comm_read"


def test_mca_quantum_ends_when_communication_has_no_head():
    arbiter = _Arbiter(**{**_MCA, "starvation": 5, "quantum": 8})
    arbiter.drive(threshold=0)
    arbiter.grants(5, "compute_read", "comm_read")
    assert arbiter.grants(2, "compute_read", "comm_read") == ["comm_read"] * 2
    assert arbiter.grant("compute_read") == "compute_read"
    assert arbiter.grant("compute_read", "comm_read") == "compute_read"


@pytest.mark.parametrize(
    ("quantum", "lengths", "bursts"), [(8, (7, 7), 1), (8, (3, 3, 3), 2), (9, (7, 0, 0), 2), (9, (7, 7, 7), 2)]
)
def test_mca_a_quantum_is_in_lines_and_ends_with_the_burst_that_reaches_it(
    quantum: int, lengths: tuple[int, ...], bursts: int
):
    arbiter = _Arbiter(**{**_MCA, "starvation": 5, "quantum": quantum})
    arbiter.drive(threshold=0)
    arbiter.grants(5, "compute_read", "comm_write")
    granted = [
        arbiter.grant("compute_read", "comm_write", comm_write_length=length, comm_read_length=0) for length in lengths
    ]
    assert granted == ["comm_write"] * bursts + ["compute_read"] * (len(lengths) - bursts)


@pytest.mark.parametrize("length", range(8))
def test_mca_the_threshold_counts_the_lines_of_the_burst_in_the_output_register(length: int):
    arbiter = _Arbiter(**_MCA)
    arbiter.drive(threshold=20, out_valid=1, out_lines=length + 1)
    assert arbiter.grant("comm_read", occupancy=20 - length - 1) is None
    assert arbiter.grant("comm_read", occupancy=20 - length - 2) == "comm_read"


@pytest.mark.parametrize(("quiet", "lengths"), [(1, (0,)), (5, (0, 3)), (8, (7,)), (17, (7, 7, 0)), (255, (7,) * 32)])
def test_mca_the_threshold_ends_when_communication_was_alone_for_so_many_lines(quiet: int, lengths: tuple[int, ...]):
    arbiter = _Arbiter(**{**_MCA, "quiet": quiet})
    arbiter.drive(threshold=10)
    assert sum(length + 1 for length in lengths) >= quiet > sum(length + 1 for length in lengths[:-1])
    for length in lengths:
        assert arbiter.grant("comm_write", comm_write_length=length, occupancy=10) is None, "compute may come back"
        assert arbiter.grant("comm_write", comm_write_length=length, occupancy=9) == "comm_write"
    assert arbiter.grants(20, "comm_write", occupancy=127) == ["comm_write"] * 20, "it counts no further than 255"
    assert arbiter.grants(2, "compute_read", "comm_write") == ["compute_read"] * 2, "compute still goes first"
    assert arbiter.grant("comm_write", occupancy=10) is None, "and the threshold holds again"


def test_mca_a_threshold_holds_for_ever_where_quiet_is_0():
    arbiter = _Arbiter(**_MCA)
    arbiter.drive(threshold=10)
    assert arbiter.grants(300, "comm_read", occupancy=9) == ["comm_read"] * 300
    assert arbiter.grant("comm_read", occupancy=10) is None


def test_mca_turns_begin_the_count_of_lines_without_compute_anew():
    arbiter = _Arbiter(**{**_MCA, "quiet": 2})
    arbiter.drive(threshold=10)
    arbiter.grants(2, "comm_read")
    assert arbiter.grant("comm_read", occupancy=10) == "comm_read"
    assert arbiter.grant("comm_read", occupancy=10, behind=1) == "comm_read", "in turns there is no threshold"
    assert arbiter.grant("comm_read", occupancy=10, behind=0) is None


def test_mca_quantum_waits_for_a_full_output():
    arbiter = _Arbiter(**{**_MCA, "starvation": 5, "quantum": 3})
    arbiter.drive(threshold=0)
    arbiter.grants(5, "compute_read", "comm_read")
    assert arbiter.grant("compute_read", "comm_read") == "comm_read"
    assert arbiter.grants(20, "compute_read", "comm_read", out_valid=1, out_ready=0) == [None] * 20
    grants = arbiter.grants(3, "compute_read", "comm_read", out_valid=0)
    assert grants == ["comm_read", "comm_read", "compute_read"]


def test_mca_a_grant_restarts_the_wait_and_a_lost_head_does_not():
    arbiter = _Arbiter(**{**_MCA, "starvation": 5})
    arbiter.drive(threshold=0)
    arbiter.grants(3, "compute_read", "comm_read")
    arbiter.grants(2, "compute_read")  # the head is not eligible for a while (no place for its token)
    assert arbiter.grant("compute_read", "comm_read") == "comm_read"
    arbiter.drive(threshold=10)
    arbiter.grants(3, "compute_read", "comm_read")
    assert arbiter.grant("comm_read") == "comm_read"
    arbiter.drive(threshold=0)
    grants = arbiter.grants(6, "compute_read", "comm_read")
    assert grants == ["compute_read"] * 5 + ["comm_read"]


def test_leaving_mca_forgets_wait_and_quantum():
    arbiter = _Arbiter(**{**_MCA, "starvation": 5, "quantum": 8})
    arbiter.drive(threshold=0)
    arbiter.grants(6, "compute_read", "comm_read")
    arbiter.grant(settings={**_MCA, "mca": 0})
    arbiter.drive(settings={**_MCA, "starvation": 5, "quantum": 8})
    assert arbiter.grants(5, "compute_read", "comm_read") == ["compute_read"] * 5


def test_wake_at_is_the_end_of_a_wait_and_then_the_same_while_a_head_could_go():
    arbiter = _Arbiter(**_MCA)
    arbiter.drive(threshold=0)
    assert arbiter["wake_at"] == NEVER
    arbiter.grants(3, "compute_read")
    arbiter.grants(2, "comm_read")
    over = 3 + 99  # the head goes in the cycle after it
    assert arbiter["wake_at"] == over
    arbiter.drive(out_valid=1, out_ready=0)
    assert arbiter["wake_at"] == over
    arbiter.now = over
    arbiter.grant("comm_read")
    assert arbiter["wake_at"] == NEVER  # there is no room for it
    arbiter.drive(out_valid=0, eligible={"compute_read": 1})
    assert arbiter["wake_at"] == NEVER
    arbiter.drive(eligible={"comm_read": 1})
    assert arbiter["wake_at"] == over
    assert arbiter.grant("comm_read") == "comm_read"


class _Model:
    """The contract's arbiter, written down as it reads."""

    def __init__(self) -> None:
        self.last_kind, self.last_stream = [0, 0], 1
        self.waiting, self.overdue, self.deadline, self.left, self.alone = 0, 0, 0, 0, 0

    def step(
        self, now: int, heads: list[int], lines: list[int], settings: dict, level: int, threshold: int, free: bool
    ) -> int | None:
        """The port that is granted. ``heads``: whether each port has one; ``lines``: of communication's read, write."""
        offers: list[int | None] = []
        for stream in (0, 1):
            read, write = heads[2 * stream : 2 * stream + 2]
            kind = (1 - self.last_kind[stream]) if read and write else write
            offers.append(kind if read or write else None)
        compute, comm = (offer is not None for offer in offers)
        comm_lines = lines[offers[1]] if comm else 0
        stream = self._choose(now, compute, comm_lines, settings, level, threshold) if free else None
        if stream is not None:
            self.last_stream, self.last_kind[stream] = stream, offers[stream]
        if not (settings["mca"] and comm):
            self.left = 0
        if not settings["mca"] or stream == 0:
            self.alone = 0
        elif stream == 1:
            self.alone = min(self.alone + comm_lines, 255)
        if not settings["mca"] or stream == 1:
            self.waiting = self.overdue = 0
        elif self.waiting:
            self.overdue |= now >= self.deadline
        elif comm:
            wait_limit = max(0, settings["starvation"] - 1)
            self.waiting, self.overdue, self.deadline = 1, wait_limit == 0, now + wait_limit
        return None if stream is None else 2 * stream + offers[stream]

    def _choose(self, now: int, compute: bool, comm: int, settings: dict, level: int, threshold: int) -> int | None:
        if not settings["mca"]:
            return 1 - self.last_stream if compute and comm else 0 if compute else 1 if comm else None
        limit = settings["threshold"] if settings["fixed"] else threshold
        if comm and self.left > 0:
            self.left = max(0, self.left - comm)
            return 1
        if comm and self.overdue:
            self.left = max(0, settings["quantum"] - comm)
            return 1
        if compute:
            return 0
        absent = 0 < settings["quiet"] <= self.alone
        return 1 if comm and (level < limit or limit == NO_LIMIT or absent) else None


@pytest.mark.parametrize("seed", range(3))
def test_arbiter_equals_the_model_under_random_inputs(seed: int):
    print(f"seed {seed}")
    rng = random.Random(seed)
    arbiter, model, seen = _Arbiter(), _Model(), set()
    settings: dict[str, int] = {}
    density = 0.5
    for cycle in range(2500):
        if cycle % 50 == 0:
            density = rng.choice([0.1, 0.5, 0.9, 1.0])
            settings = {
                "mca": rng.random() < 0.8,
                "fixed": rng.random() < 0.3,
                "threshold": rng.choice([0, 5, 127]),
                "starvation": rng.choice([0, 1, 4, 12]),
                "quantum": rng.choice([0, 1, 2, 5, 16, 255]),
                "quiet": rng.choice([0, 1, 3, 20, 255]),
            }
            arbiter.drive(settings=settings)
        heads = [int(rng.random() < density) for _ in _PORTS]
        inputs = {
            "occupancy": rng.choice([0, 4, 5, 6, 100]),
            "threshold": rng.choice([0, 5, 6, 127]),
            "out_valid": rng.random() < 0.7,
            "out_ready": rng.random() < 0.7,
            "comm_read_length": rng.randrange(8),
            "comm_write_length": rng.randrange(8),
        }
        inputs["changed"] = cycle % 50 == 49
        inputs["out_lines"] = rng.choice([1, 1, 2, 8]) if inputs["out_valid"] else 0
        level = inputs["occupancy"] + inputs["out_lines"]
        lines = [inputs["comm_read_length"] + 1, inputs["comm_write_length"] + 1]
        free = not inputs["out_valid"] or bool(inputs["out_ready"])
        expected = model.step(arbiter.now, heads, lines, settings, level, inputs["threshold"], free)
        eligible = [name for name, head in zip(_PORTS, heads, strict=True) if head]
        granted = arbiter.grant(*eligible, **inputs)
        if inputs["changed"]:
            model.waiting = model.overdue = 0
        assert granted == (None if expected is None else _PORTS[expected]), f"cycle {cycle}"
        seen.add((settings["mca"], granted))
    assert len(seen) == 10, "both modes granted every port, and nothing"
