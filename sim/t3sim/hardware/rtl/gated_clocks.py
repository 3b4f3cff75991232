"""Clock gating in the Verilog that is simulated: what has nothing to do costs nothing.

A tracker has a bank for every few slices, of which one or two have a token at a time. In silicon, synthesis gates the
clock of the others; here Verilator would evaluate them all. So the simulated copy of such a part has an input more for
each :class:`Gate`, the clock of one instance within it, which the part's ``step`` lets tick only while a register of
that instance may change. Verilator evaluates what hangs on a clock, and combinational logic behind it, only when that
clock ticks. `tests/sim/hardware/test_gated_clocks.py` holds such a part against one without gates in every cycle.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from t3hdl.config import T3Config


@dataclass(frozen=True, kw_only=True)
class Gate:
    """An instance with a clock of its own.

    ``path`` : names of instances, from within the part's module down to it. ``busy`` : output of it that is 1 while
    something is in it; empty if it keeps nothing that moves by itself. ``wakes`` : ports of the part, of one bit; while
    one of them is 1, something in the instance may change.
    """

    path: tuple[str, ...]
    busy: str = ""
    wakes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Gating:
    """The gates of a part. While a port in ``rouses`` is 1, or one in ``resting`` is 0, every clock ticks, and two
    cycles longer, in which pulses within the part come to an end."""

    gates: tuple[Gate, ...] = ()
    rouses: tuple[str, ...] = ()
    resting: tuple[str, ...] = ()


def _tracker(config: T3Config) -> Gating:
    banks = tuple(
        Gate(path=("core", f"bank_{bank}"), busy="busy", wakes=(f"token.{bank}.valid",))
        for bank in range(config.tracker_banks)
    )
    return Gating(
        gates=(
            *banks,
            Gate(path=("core", "slots"), wakes=("load_valid", "chunk_done_valid")),
            Gate(path=("core", "maintenance")),
            Gate(path=("quotas",)),
        ),
        rouses=("config_valid", "maintenance", "abort_busy"),
        resting=("init_done",),
    )


def _slice(config: T3Config) -> Gating:
    counts = ("dram.valid", "update_done_valid")
    return Gating(
        gates=(
            *(
                Gate(path=(queue,), busy="o__valid", wakes=(f"{queue}.valid",))
                for queue in ("compute_read", "compute_write", "comm_read", "comm_write")
            ),
            Gate(path=("ranges",)),
            Gate(path=("pending",), wakes=("compute_write.valid", "comm_write.valid", *counts)),
            Gate(path=("tokens",), wakes=("token.valid", *counts)),
        ),
        rouses=("config_valid",),
    )


_GATED: dict[str, Callable[[T3Config], Gating]] = {"slice": _slice, "tracker": _tracker}


def gating(config: T3Config, name: str) -> Gating:
    """How the part ``name`` is gated. Not at all with ``protect``: a stored bit may turn over without a clock."""
    return Gating() if config.protect or name not in _GATED else _GATED[name](config)


def clock_of(number: int) -> str:
    """The input of the simulated copy that clocks the instance of gate ``number``."""
    return f"gated_clk_{number}"


def busy_of(number: int) -> str:
    """The output of the simulated copy that says whether this instance is busy."""
    return f"gated_busy_{number}"


def with_gated_clocks(verilog: str, top: str, gates: Iterable[Gate]) -> str:
    """``verilog`` with the ports and connections of the gates; ``top`` is the part's module.

    Raises ValueError if an instance is not there, is within a module of several instances, or lacks its ``busy``.
    """
    gates = tuple(gates)
    if not gates:
        return verilog
    modules = _Modules(verilog)
    for number, gate in enumerate(gates):
        clock, busy = clock_of(number), busy_of(number)
        module = top
        for name in gate.path[:-1]:
            modules.add_ports(module, clock, busy if gate.busy else "")
            inner = modules.connect(module, name, clock, clock)
            if gate.busy:
                modules.connect(module, name, busy, busy)
            if modules.instances_of(inner) > 1:
                raise ValueError(f"{inner} has several instances, so that nothing in it can have a clock of its own")
            module = inner
        modules.add_ports(module, clock, busy if gate.busy else "")
        modules.connect(module, gate.path[-1], "clk", clock)
        if gate.busy:
            modules.assign(module, busy, modules.net_of(module, gate.path[-1], gate.busy))
    return modules.text()


_MODULE = re.compile(r"^module (\S+)\(.*?^endmodule$", re.MULTILINE | re.DOTALL)
_HEADER = re.compile(r"\A(module \S+\()(.*?)(\);\n)", re.DOTALL)


class _Modules:
    """The modules of a Verilog file that :func:`t3hdl.export.verilog.write_verilog` wrote, to be changed."""

    def __init__(self, verilog: str) -> None:
        found = list(_MODULE.finditer(verilog))
        self._before = verilog[: found[0].start()]
        self._modules = {module[1]: module[0] for module in found}

    def text(self) -> str:
        """The file as it is now."""
        return self._before + "\n\n".join(self._modules.values()) + "\n"

    def add_ports(self, module: str, clock: str, busy: str) -> None:
        """An input, and an output unless ``busy`` is empty, of one bit each."""
        ports = f"{clock}, {busy}, " if busy else f"{clock}, "
        declared = f"  input {clock};\n" + (f"  output {busy};\n" if busy else "")
        self._modules[module] = _HEADER.sub(
            lambda head: f"{head[1]}{ports}{head[2]}{head[3]}{declared}", self._modules[module], count=1
        )

    def connect(self, module: str, instance: str, port: str, net: str) -> str:
        """Connects ``port`` of an instance to ``net``, instead of what it was connected to; returns the instance's
        module."""
        kind, ports = self._connections(module, instance)
        changed, count = re.subn(rf"^    \.{port}\(.*?\)(?=,?$)", f"    .{port}({net})", ports, flags=re.MULTILINE)
        new = changed if count else f"    .{port}({net}),\n{ports}"
        self._modules[module] = self._modules[module].replace(ports, new, 1)
        return kind

    def net_of(self, module: str, instance: str, port: str) -> str:
        """What ``port`` of an instance is connected to."""
        _, ports = self._connections(module, instance)
        found = re.search(rf"^    \.{port}\((.*?)\),?$", ports, re.MULTILINE)
        if found is None:
            raise ValueError(f"{instance} of {module} has no port {port}")
        return found[1]

    def assign(self, module: str, output: str, net: str) -> None:
        """Drives an output of the module."""
        body = self._modules[module].removesuffix("endmodule")
        self._modules[module] = f"{body}  assign {output} = {net};\nendmodule"

    def instances_of(self, kind: str) -> int:
        """How many instances a module has."""
        named = re.compile(rf"^  {re.escape(kind)} \S+ +\($", re.MULTILINE)
        return sum(len(named.findall(text)) for text in self._modules.values())

    def _connections(self, module: str, instance: str) -> tuple[str, str]:
        """An instance's module, and the text of its connections."""
        named = rf"(?:{instance}|\\{instance}\$\d+ )"  # numbered if a signal has the name already
        found = re.search(rf"^  (\S+) {named} \(\n(.*?)^  \);$", self._modules[module], re.MULTILINE | re.DOTALL)
        if found is None:
            raise ValueError(f"{module} has no instance {instance}")
        return found[1], found[2]
