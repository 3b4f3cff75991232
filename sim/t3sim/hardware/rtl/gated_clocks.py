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

    ``path`` : names of instances, from within the part's module down to it. ``busy`` : outputs of it of which one is
    not 0 while something is in it; none if it keeps nothing that moves by itself. ``wakes`` : ports of the part, of one
    bit; while one of them is 1, something in the instance may change.
    """

    path: tuple[str, ...]
    busy: tuple[str, ...] = ()
    wakes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Gating:
    """The gates of a part. While a port in ``rouses`` is 1, or one in ``resting`` is 0, every clock ticks, and two
    cycles longer, in which pulses within the part come to an end."""

    gates: tuple[Gate, ...] = ()
    rouses: tuple[str, ...] = ()
    resting: tuple[str, ...] = ()


def _tracker(config: T3Config) -> Gating:
    banks = [(("core", f"bank_{bank}"), (f"token.{bank}.valid",)) for bank in range(config.tracker_banks)]
    return Gating(
        gates=(
            # Lines that are pending in a bank move when they are collected, or their slot ends.
            *(Gate(path=path, busy=("busy", "pending"), wakes=wakes) for path, wakes in banks),
            # The tile at the head of the queue is compared with every live chunk.
            *(Gate(path=(*path, "queue"), busy=("o__valid",), wakes=wakes) for path, wakes in banks),
            Gate(path=("core", "slots"), wakes=("load_valid", "chunk_done_valid")),
            Gate(path=("core", "open_tiles"), busy=("busy",), wakes=("load_valid",)),
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
                Gate(path=(queue,), busy=("o__valid",), wakes=(f"{queue}.valid",))
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


def clock_of(path: tuple[str, ...]) -> str:
    """The port of the simulated copy that clocks the instance with this path: an input of every module on its way."""
    return "_".join(("gated_clk", *path))


def busy_of(path: tuple[str, ...]) -> str:
    """The output that says whether this instance is busy."""
    return "_".join(("gated_busy", *path))


def with_gated_clocks(verilog: str, top: str, gates: Iterable[Gate]) -> str:
    """``verilog`` with the ports and connections of the gates; ``top`` is the part's module.

    Raises ValueError if an instance is not there, lacks its ``busy``, or is within a module of which another instance
    has no such gate.
    """
    gates = tuple(gates)
    if not gates:
        return verilog
    modules = _Modules(verilog)
    for gate in gates:
        module = top
        for depth, name in enumerate(gate.path):
            here, below = gate.path[depth:], gate.path[depth + 1 :]
            modules.add_port(module, "input", clock_of(here))
            inner = modules.connect(module, name, clock_of(below) if below else "clk", clock_of(here))
            if gate.busy:
                modules.add_port(module, "output", busy_of(here))
                if below:
                    modules.connect(module, name, busy_of(below), busy_of(here))
                else:
                    nets = ", ".join(modules.net_of(module, name, output) for output in gate.busy)
                    modules.assign(module, busy_of(here), f"|{{{nets}}}")
            module = inner
    modules.check_clocks()
    return modules.text()


_MODULE = re.compile(r"^module (\S+)\(.*?^endmodule$", re.MULTILINE | re.DOTALL)
_INSTANCE = re.compile(r"^  (\S+) (\S+) +\(\n(.*?)^  \);$", re.MULTILINE | re.DOTALL)
_CLOCK = re.compile(r"^  input (gated_clk_\w+);$", re.MULTILINE)
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

    def add_port(self, module: str, direction: str, port: str) -> None:
        """A port of one bit, if the module does not have it for another instance of it."""
        if f"  {direction} {port};\n" not in self._modules[module]:
            self._modules[module] = _HEADER.sub(
                lambda head: f"{head[1]}{port}, {head[2]}{head[3]}  {direction} {port};\n",
                self._modules[module],
                count=1,
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
        """Drives an output of the module, if that was not done for another instance of it."""
        line = f"  assign {output} = {net};\n"
        if line not in self._modules[module]:
            self._modules[module] = self._modules[module].removesuffix("endmodule") + f"{line}endmodule"

    def check_clocks(self) -> None:
        """Raises ValueError if an instance lacks a clock that its module has for another instance."""
        for name, text in self._modules.items():
            for kind, instance, ports in _INSTANCE.findall(text):
                for clock in _CLOCK.findall(self._modules.get(kind, "")):
                    if f".{clock}(" not in ports:
                        raise ValueError(f"{instance} of {name} has no {clock}, as other instances of {kind} have")

    def _connections(self, module: str, instance: str) -> tuple[str, str]:
        """An instance's module, and the text of its connections."""
        named = rf"(?:{instance}|\\{instance}\$\d+ )"  # numbered if a signal has the name already
        found = re.search(rf"^  (\S+) {named} \(\n(.*?)^  \);$", self._modules[module], re.MULTILINE | re.DOTALL)
        if found is None:
            raise ValueError(f"{module} has no instance {instance}")
        return found[1], found[2]
