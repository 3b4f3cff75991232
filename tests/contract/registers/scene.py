"""The registers behind their bus: requests with their handshake, and what they remember of events."""

from typing import Any

from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs

from tests.contract.bench import bench_of

SMALL = preset("small")
"""Two ranges, contexts and wavefronts, eight descriptors."""
ALL_ONES = (1 << 64) - 1
ARMED, COMPLETE = {"armed": 1}, {"armed": 1, "complete": 1}
"""States of a context."""
OWN = {regs.IRQ_STATUS, regs.IRQ_ENABLE, regs.LOCK, regs.NMC_FLAGS}
"""Registers whose writes concern no other part."""


def word(layout: Any, **fields: int) -> int:
    """The struct with these fields as one integer."""
    return layout.const(fields).as_bits()


def control(**fields: int) -> int:
    """A word for CONTROL."""
    return word(regs.Control, **fields)


def names(layout: Any, value: int) -> set[str]:
    """The fields of a word that are not 0."""
    return {name for name in layout.members if layout.from_bits(value)[name]}


class Registers:
    """The part after reset with ``init_done``; ``inputs`` are levels."""

    def __init__(self, backend: str, config: T3Config = SMALL, **inputs: Any) -> None:
        self.bench = bench_of(backend, "registers", config)
        self.show(**{"init_done": 1} | inputs)

    def show(self, **inputs: Any) -> None:
        """What other parts show, from this cycle on; contexts are called ``context_0`` and so on."""
        for name, value in inputs.items():
            self.bench.set(name.replace("context_", "context."), value)

    def request(self, address: int, value: int | None = None, privileged: int = 0) -> None:
        """Holds a request at the bus: a write with ``value``, else a read."""
        write = {"bus_write": 0} if value is None else {"bus_write": 1, "bus_data": value}
        self.show(bus_valid=1, bus_address=address, bus_privileged=privileged, **write)

    def access(self, address: int, value: int | None = None, privileged: int = 0) -> tuple[int, int, Any]:
        """One request: error, data, configuration pulse. Checks the handshake around it."""
        bench = self.bench
        assert (bench["bus_ready"], bench["response_valid"], bench["config_valid"]) == (1, 0, 0)
        self.request(address, value, privileged)
        bench.step()
        assert (bench["bus_ready"], bench["response_valid"], bench["idle"]) == (0, 1, 0)
        result = bench["response_error"], bench["response_data"], bench.item("config")
        bench.step()  # not taken again
        assert (bench["bus_ready"], bench["response_valid"], bench["config_valid"]) == (1, 0, 0)
        bench.set("bus_valid", 0)
        return result

    def writes(self, address: int, value: int = 0, privileged: int = 0) -> bool:
        """Whether a write is good; a good one must give the pulse (if it concerns other parts), a bad one must not."""
        error, data, pulse = self.access(address, value, privileged)
        assert data == 0
        assert pulse == (None if error or address in OWN else {"address": address, "data": value}), hex(address)
        return not error

    def controls(self, **fields: int) -> bool:
        """Whether a write of CONTROL is good."""
        return self.writes(regs.CONTROL, control(**fields))

    def read(self, address: int) -> int:
        """The value of a register that can be read."""
        error, data, pulse = self.access(address)
        assert (error, pulse) == (0, None), hex(address)
        return data

    def arm(self, context: int, first: int, count: int) -> bool:
        """Arms a context, whose status then says so; whether it was good."""
        good = self.controls(arm=1, context=context, first=first, descriptors=count)
        if good:
            self.show(**{f"context_{context}": ARMED})
        return good

    def interrupts(self) -> set[str]:
        """The bits of IRQ_STATUS that are set."""
        return names(regs.Interrupts, self.read(regs.IRQ_STATUS))

    def locked_write(self) -> bool:
        """Whether a locked write is remembered; both registers that show it agree."""
        shown = "locked_write" in names(regs.Status, self.read(regs.STATUS))
        assert shown == ("locked_write" in names(regs.Errors, self.read(regs.ERRORS)))
        return shown
