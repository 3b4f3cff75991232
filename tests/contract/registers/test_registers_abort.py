"""ControlRegisters: an abort, from its request until nothing of the job is in flight."""

import pytest
from t3hdl.interface import register_map as regs

from tests.contract.registers.scene import ARMED, Registers, control, names

IN_FLIGHT = (
    {"maintenance": 1}, {"abort_busy": 1}, {"pending": 0b10}, {"context_1": {"outstanding": 1}},
    {"context_1": {"outstanding": 1 << 15}},
)  # fmt: skip
"""What an abort of context 1 waits for."""


def status(part: Registers) -> set[str]:
    return names(regs.Status, part.read(regs.STATUS))


def of_context(part: Registers, context: int) -> set[str]:
    return names(regs.ContextRecord, part.read(regs.CONTEXT + context * regs.CONTEXT_STRIDE))


@pytest.mark.parametrize("inputs", IN_FLIGHT)
def test_an_abort_lasts_until_nothing_of_the_context_is_in_flight(backend, inputs):
    part = Registers(backend, context_1=ARMED)
    assert part.writes(regs.IRQ_ENABLE, regs.Interrupts.const({"aborted": 1}).as_bits())
    assert part.controls(abort=1, context=1)
    part.show(context_1={})
    part.show(**inputs)
    assert "abort_busy" in status(part)
    assert "aborting" in of_context(part, 1) and "aborting" not in of_context(part, 0)
    for _ in range(20):
        assert not part.bench["interrupt"]
        part.bench.step()
    assert not part.arm(1, 0, 1)
    assert not part.controls(disarm=1)
    part.show(**{name: {} if name.startswith("context") else 0 for name in inputs})
    part.bench.step()
    assert not part.bench["interrupt"]
    part.bench.step()
    assert part.bench["interrupt"]
    assert "aborted" in part.interrupts()
    assert "abort_busy" not in status(part) and "aborting" not in of_context(part, 1)
    assert part.arm(1, 0, 1)


def test_an_abort_is_no_shorter_than_its_own_pulses(backend):
    """What other parts show answers the abort two cycles after the request is taken."""
    part = Registers(backend)
    bench = part.bench
    part.request(regs.CONTROL, control(abort=1, context=1))
    bench.step()
    part.show(bus_valid=0)
    bench.step()
    part.show(maintenance=1)
    bench.step(5)
    assert "aborting" in of_context(part, 1)
    assert "aborted" not in part.interrupts()
    part.show(maintenance=0)
    bench.step(2)
    assert "aborting" not in of_context(part, 1)
    assert part.interrupts() == {"aborted"}


def test_another_context_in_flight_does_not_keep_an_abort(backend):
    part = Registers(backend, pending=0b01, context_0=ARMED | {"outstanding": 9})
    assert part.controls(abort=1, context=1)
    part.bench.step(3)
    assert "aborted" in part.interrupts()
    assert "pending" in of_context(part, 0)
    assert part.arm(1, 0, 1)


def test_two_contexts_are_aborted_at_a_time(backend):
    part = Registers(backend, pending=0b11)
    for context in (0, 1):
        assert part.controls(abort=1, context=context)
    part.show(pending=0b01)
    part.bench.step(3)
    assert part.interrupts() == {"aborted"}
    assert "aborting" in of_context(part, 0) and "aborting" not in of_context(part, 1)
    assert part.writes(regs.IRQ_STATUS, 0x3FF)
    part.show(pending=0)
    part.bench.step(3)
    assert part.interrupts() == {"aborted"}
    assert not status(part) & {"abort_busy"}


def test_a_forced_disarm_ends_every_abort(backend):
    part = Registers(backend, pending=0b11)
    assert part.controls(abort=1, context=1)
    assert part.controls(disarm=1, forced=1)
    assert "aborting" not in of_context(part, 1)
    assert part.interrupts() == {"aborted"}
    assert not part.arm(1, 0, 1), "its accesses are pending all the same"
    part.show(pending=0)
    assert part.arm(1, 0, 1)
