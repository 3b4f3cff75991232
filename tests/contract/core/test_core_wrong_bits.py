"""``protect`` in the core, in Amaranth's simulator: whichever part tells a wrong bit, ERRORS has it until a disarm."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from t3hdl.core import T3Core
from t3hdl.interface import register_map as regs

from tests.contract.bench import Bench, bench_around
from tests.contract.core.scene import TINY, control, request
from tests.support.single_event_upsets import invert


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    bench = bench_around(T3Core(config=replace(TINY, protect=True)), seed=1)
    bench.until("init_done", 1000)
    yield bench


def errors(bench: Bench) -> dict[str, int]:
    """The bits of ERRORS that are 1."""
    value = request(bench, 0, regs.ERRORS)
    return {name: 1 for name, field in regs.Errors if value >> field.offset & 1}


@pytest.mark.parametrize(
    ("register", "bit"),
    [
        (r"slice_0\.dram__payload", 7), (r"slice_0\.served", 5), (r"matcher_0\.route__payload", 9),
        (r"network\.node_0\.output_0\.back", 3), (r"network\.root_0\.queue_0\.spare", 2),
        (r"registers\.arbiter", 4), (r"registers\.events\.flags", 1),
    ],
)  # fmt: skip
def test_a_wrong_bit_is_shown_until_a_disarm(bench: Bench, register: str, bit: int) -> None:
    assert errors(bench) == {}
    bench.step(4)
    assert bench["idle"] == 1
    invert(bench.backend, register, bit)
    assert bench["idle"] == 0
    bench.step(4)
    assert bench["idle"] == 1
    assert errors(bench) == {"uncorrectable": 1}
    assert request(bench, 0, regs.IRQ_STATUS) >> regs.Interrupts["uncorrectable"].offset & 1
    request(bench, 1, regs.IRQ_STATUS, (1 << regs.Interrupts.size) - 1)
    control(bench, disarm=1)
    bench.until("init_done", 1000)
    assert errors(bench) == {}, "what the register holds counts as right now"


def test_that_of_an_nmc_unit_is_shown_until_a_disarm(bench: Bench) -> None:
    bench.step(nmc_uncorrectable=1)
    bench.step(3, nmc_uncorrectable=0)
    assert errors(bench) == {"uncorrectable": 1}
    control(bench, disarm=1)
    bench.until("init_done", 1000)
    assert errors(bench) == {}
