"""ControlRegisters: epochs of jobs that did not end may not come again before another one of the context does."""

import pytest
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Op

from tests.contract.registers.scene import ARMED, COMPLETE, Registers, word


def gives(part: Registers, epoch: int, *, context: int = 0, number: int = 0, valid: int = 1) -> bool:
    """Whether a range gets this epoch."""
    attributes = word(regs.RangeAttributes, valid=valid, op=Op.ADD, context=context, epoch=epoch)
    return part.writes(regs.RANGE_ATTRIBUTES + number * regs.RANGE_STRIDE, attributes)


def begin(part: Registers, context: int = 0) -> None:
    """Arms a context with a descriptor."""
    part.show(**{f"context_{context}": {}})
    assert part.arm(context, 0, 1)


def drop(part: Registers, how: str, context: int = 0) -> None:
    """Ends the job of a context, which is active, before it is complete."""
    assert part.controls(**({"abort": 1, "context": context} if how == "abort" else {"disarm": 1, "forced": 1}))
    part.show(**{f"context_{context}": {}})


def drop_jobs(part: Registers, *epochs: int, how: str = "abort") -> None:
    """Begins and ends a job of context 0 with each epoch."""
    for epoch in epochs:
        assert gives(part, epoch)
        begin(part)
        drop(part, how)


@pytest.mark.parametrize("how", ["abort", "disarm"])
@pytest.mark.parametrize("epoch", [0, 7, 255])
def test_the_epoch_of_a_dropped_job_is_refused_in_every_range(backend, how, epoch):
    part = Registers(backend)
    assert gives(part, epoch) and gives(part, epoch, context=1, number=1)
    begin(part)
    drop(part, how)
    assert not gives(part, epoch) and not gives(part, epoch, number=1)
    assert gives(part, epoch ^ 1) and gives(part, epoch ^ 128, number=1)
    assert not gives(part, epoch), "also after another epoch"
    assert gives(part, epoch, context=1, number=1), "context 1 was not active"
    assert gives(part, epoch, valid=0) and not part.locked_write()


@pytest.mark.parametrize("status", [{}, COMPLETE])
def test_no_epoch_is_refused_for_a_context_that_is_not_active(backend, status):
    part = Registers(backend)
    assert gives(part, 3)
    part.show(context_0=status)
    drop(part, "abort")
    assert gives(part, 3)


def test_the_next_job_that_is_complete_frees_the_epoch(backend):
    part = Registers(backend)
    assert gives(part, 3)
    begin(part)
    drop(part, "abort")
    assert gives(part, 4)
    begin(part)
    part.show(context_0={"complete": 1}, context_1=COMPLETE)
    part.bench.step()
    assert not gives(part, 3, number=1), "it is not armed"
    part.show(context_0=ARMED)
    assert not gives(part, 3, number=1), "context 1 is another one"
    part.show(context_0=COMPLETE)
    part.bench.step()
    assert gives(part, 3)


@pytest.mark.parametrize("how", ["abort", "disarm"])
@pytest.mark.parametrize(
    ("dropped", "refused", "free"),
    [
        ((3, 4), (3, 4), (2, 5)),
        ((3, 9, 100), (3, 4, 9, 50, 100), (2, 101)),
        ((254, 255, 1), (254, 255, 0, 1), (253, 2)),
        ((255, 0), (255, 0), (254, 1)),
        ((7, 6), (7, 6), (5, 8)),
        ((7, 5, 4), (7, 6, 5, 4), (3, 8)),
        ((0, 255), (0, 255), (1, 128, 254)),
        ((1, 2, 254), (254, 255, 0, 1, 2), (3, 253)),
        ((9, 200), (200, 255, 0, 9), (10, 100, 199)),
        ((10, 40, 153), (10, 40, 100, 153), (9, 154)),
        ((10, 40, 154), (154, 255, 0, 10, 40), (41, 153)),
        ((0, 128), (0, 64, 128), (129, 255)),
        ((0, 100, 200, 150, 180), (180, 255, 0, 100, 150), (151, 179)),
        ((0, 128, 192, 224, 240, 248, 252, 254, 255), (0, 64, 128, 200, 255), ()),
    ],
)
def test_the_epochs_of_dropped_jobs_and_those_between_them_are_refused(backend, how, dropped, refused, free):
    """Between: upwards from the last one, or downwards from the first one if fewer are there."""
    part = Registers(backend)
    drop_jobs(part, *dropped, how=how)
    assert not [epoch for epoch in refused if gives(part, epoch)]
    assert [epoch for epoch in free if not gives(part, epoch)] == []
    assert gives(part, dropped[0], context=1, number=1)


def test_a_job_without_a_range_of_its_own_frees_nothing_that_was_refused(backend):
    """Its epoch is that of the range before, which the abort took away."""
    part = Registers(backend)
    drop_jobs(part, 3, 9)
    assert gives(part, 20) and gives(part, 20, valid=0)
    begin(part)
    drop(part, "abort")
    part.bench.step(4)
    begin(part)
    drop(part, "abort")
    assert not [epoch for epoch in (3, 9, 15, 20) if gives(part, epoch)] and gives(part, 21)


def test_the_next_job_that_is_complete_frees_all_of_them(backend):
    part = Registers(backend)
    drop_jobs(part, 3, 9)
    assert gives(part, 10)
    begin(part)
    part.show(context_0=COMPLETE)
    part.bench.step()
    assert gives(part, 3) and gives(part, 9)
    begin(part)
    drop(part, "abort")
    assert not gives(part, 9) and gives(part, 3) and gives(part, 10), "what was refused before does not count"


def test_a_forced_disarm_takes_from_each_active_context_its_own_epoch(backend):
    part = Registers(backend)
    assert gives(part, 3) and gives(part, 200, context=1, number=1)
    part.show(context_0={}, context_1={})
    assert part.arm(0, 0, 1) and part.arm(1, 1, 1)
    drop(part, "disarm")
    part.show(context_1={})
    assert not gives(part, 3) and gives(part, 200)
    assert not gives(part, 200, context=1, number=1) and gives(part, 3, context=1, number=1)


def test_a_disarm_without_force_keeps_what_is_refused(backend):
    part = Registers(backend)
    assert gives(part, 3)
    begin(part)
    drop(part, "abort")
    part.bench.step(4)
    assert part.controls(disarm=1) and not gives(part, 3)


def test_the_last_epoch_is_that_of_a_range_in_use(backend):
    part = Registers(backend)
    assert gives(part, 3) and gives(part, 9, valid=0) and gives(part, 5, context=1, number=1)
    begin(part)
    drop(part, "abort")
    assert gives(part, 9) and gives(part, 5) and not gives(part, 3)


def test_the_range_of_the_next_job_may_be_written_while_a_job_runs(backend):
    part = Registers(backend)
    assert gives(part, 3)
    begin(part)
    assert gives(part, 4, number=1), "range 1 is nobody's"
    drop(part, "abort")
    assert not gives(part, 3) and gives(part, 4)
