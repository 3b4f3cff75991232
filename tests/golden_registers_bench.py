"""A golden ControlRegisters behind its bus: requests with their handshake, words of CONTROL and of context status."""

from golden_bench import Bench, pack, unpack
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as registers
from t3hdl.interface.layouts import ConfigWrite, ContextStatus
from t3hdl.interface.signatures import registers_signature
from t3sim.hardware.golden.registers import registers as golden

SMALL = preset("small", ranges=2, contexts=3, wavefronts=3, descriptors=8)
ALL_ONES = (1 << 64) - 1
ARMED, COMPLETE = pack(ContextStatus, armed=1), pack(ContextStatus, armed=1, complete=1)


def make(config: T3Config = SMALL, init_done: int = 1) -> Bench:
    """The registers after reset."""
    bench = Bench(golden, registers_signature(config), golden.init_state(config))
    bench.tick(0, init_done=init_done)
    return bench


def access(
    bench: Bench, address: int, value: int | None = None, privileged: int = 0
) -> tuple[int, int, dict[str, int] | None]:
    """One request: error, data, configuration pulse. Checks the handshake around it."""
    assert (bench.get("bus_ready"), bench.get("response_valid")) == (1, 0)
    write = {"bus_write": 0} if value is None else {"bus_write": 1, "bus_data": value}
    bench.tick(bus_valid=1, bus_address=address, bus_privileged=privileged, **write)
    assert (bench.get("bus_ready"), bench.get("response_valid"), bench.get("idle")) == (0, 1, 0)
    pulse = bench.item("config")
    result = bench.get("response_error"), bench.get("response_data"), pulse and unpack(ConfigWrite, pulse)
    bench.tick(bus_valid=0)
    assert (bench.get("response_valid"), bench.get("config_valid")) == (0, 0)
    return result


OWN = {registers.IRQ_STATUS, registers.IRQ_ENABLE, registers.LOCK, registers.NMC_FLAGS}
"""Registers whose writes concern no other part."""


def is_written(bench: Bench, address: int, value: int = 0, privileged: int = 0) -> bool:
    """Whether a write is good; a good one must give the pulse (if it concerns other parts), a bad one must not."""
    error, data, pulse = access(bench, address, value, privileged)
    assert data == 0
    assert pulse == (None if error or address in OWN else {"address": address, "data": value})
    return not error


def control(**values: int) -> int:
    """A word for CONTROL."""
    return pack(registers.Control, **values)


def read(bench: Bench, address: int) -> int:
    """The value of a register that can be read."""
    error, data, pulse = access(bench, address)
    assert (error, pulse) == (0, None)
    return data


def arm(bench: Bench, context: int, first: int, count: int) -> bool:
    """Arm a context, whose status then says so; whether it was good."""
    good = is_written(bench, registers.CONTROL, control(arm=1, context=context, first=first, descriptors=count))
    if good:
        bench.tick(0, **{f"context.{context}": ARMED})
    return good


def sticky(bench: Bench) -> int:
    """Whether a locked write is remembered; both registers that show it agree."""
    status, errors = read(bench, registers.STATUS), read(bench, registers.ERRORS)
    shown = unpack(registers.Status, status)["locked_write"]
    assert shown == unpack(registers.Errors, errors)["locked_write"]
    return shown
