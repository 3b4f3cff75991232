"""All parts of the hardware in one table, from which all that makes, simulates, counts or shows parts derives its own.

What goes from which part to which is in :mod:`~t3hdl.interface.connections`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from amaranth.lib.wiring import Component, Signature

from ..config import T3Config
from . import signatures


def _config(config: T3Config) -> dict[str, Any]:
    return {"config": config}


def _one(config: T3Config) -> int:
    return 1


@dataclass(frozen=True, kw_only=True)
class Part:
    """One kind of part; its Verilog module is called ``t3_<name>``.

    ``component``: its class, by module and name within ``t3hdl``. ``arguments``: what a configuration gives to the
    class, and likewise to ``signature`` and to a golden model, by keyword. ``within``: what it is a piece of; empty if
    it stands by itself. ``wires``: it is made of other parts and of nothing else. ``instances``: how many one unit has,
    if it has any; ``beside``: how many there are beside the unit, in words; empty for those in it. ``simulated``: the
    co-simulator steps it, so that it has a golden model.
    """

    name: str
    component: str
    signature: Callable[..., Signature]
    arguments: Callable[[T3Config], dict[str, Any]] = _config
    within: str
    wires: bool = False
    instances: Callable[[T3Config], int] = _one
    beside: str = ""
    simulated: bool = False

    def ports(self, config: T3Config) -> Signature:
        """Its ports in this configuration."""
        return self.signature(**self.arguments(config))

    def make(self, config: T3Config) -> Component:
        """An instance. The class is imported only now: it imports the signatures that this table names."""
        module, _, name = self.component.rpartition(".")
        kind = getattr(import_module(f"{__package__.rpartition('.')[0]}.{module}"), name)
        return kind(**self.arguments(config))

    def count(self, config: T3Config) -> int:
        """Instances in one unit; 0 for what stands beside it."""
        return 0 if self.beside else self.instances(config)


_TABLE = (
    Part(
        name="slice",
        component="slice.slice.MemorySlice",
        signature=signatures.slice_signature,
        within="core",
        instances=lambda config: config.slices,
        simulated=True,
    ),
    Part(
        name="matcher",
        component="egress.matcher.RangeMatcher",
        signature=signatures.matcher_signature,
        within="core",
        instances=lambda config: config.egress_ports,
        simulated=True,
    ),
    Part(
        name="leaf",
        component="token_network.network.TokenNode",
        signature=signatures.node_signature,
        arguments=lambda config: {
            "inputs": config.node_inputs,
            "outputs": config.roots,
            "protect": config.protect,
        },
        within="network",
        instances=lambda config: config.nodes,
        simulated=True,
    ),
    Part(
        name="root",
        component="token_network.network.TokenNode",
        signature=signatures.node_signature,
        arguments=lambda config: {
            "inputs": config.nodes,
            "outputs": config.root_outputs,
            "skip": config.roots.bit_length() - 1,
            "protect": config.protect,
        },
        within="network",
        instances=lambda config: config.roots,
        simulated=True,
    ),
    Part(
        name="tracker",
        component="tracker.tracker.Tracker",
        signature=signatures.tracker_signature,
        within="core",
        simulated=True,
    ),
    Part(
        name="trigger",
        component="trigger.trigger.Trigger",
        signature=signatures.trigger_signature,
        within="core",
        simulated=True,
    ),
    Part(
        name="monitor",
        component="slice.monitor.OccupancyMonitor",
        signature=signatures.monitor_signature,
        within="core",
        simulated=True,
    ),
    Part(
        name="registers",
        component="registers.registers.ControlRegisters",
        signature=signatures.registers_signature,
        within="core",
        simulated=True,
    ),
    Part(
        name="axi",
        component="registers.axi.AxiLitePort",
        signature=signatures.axi_signature,
        within="unit",
    ),
    Part(
        name="alu",
        component="nmc.alu.NmcAlu",
        signature=signatures.alu_signature,
        within="nmc",
        beside="one per NMC unit",
    ),
    Part(
        name="core",
        component="core.T3Core",
        signature=signatures.core_signature,
        within="unit",
        wires=True,
    ),
    Part(
        name="unit",
        component="unit.T3Unit",
        signature=signatures.unit_signature,
        within="",
        wires=True,
    ),
    Part(
        name="nmc",
        component="nmc.nmc.NmcUnit",
        signature=signatures.nmc_signature,
        within="",
        beside="one per bank group",
        simulated=True,
    ),
    Part(
        name="crossing",
        component="registers.crossing.AxiLiteCrossing",
        signature=signatures.crossing_signature,
        arguments=lambda config: {},
        within="",
        beside="if the host's clock is another one",
    ),
)

TABLE: dict[str, Part] = {part.name: part for part in _TABLE}
"""The parts by name, from the inside out. The unit is made of the core and ``axi``, the core of the parts from
``slice`` to ``registers``; ``leaf`` and ``root`` are the nodes of its token network."""

SIMULATED: tuple[str, ...] = tuple(name for name, part in TABLE.items() if part.simulated)
"""The parts that the co-simulator steps, in the order in which it takes their functions."""
