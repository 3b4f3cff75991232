"""A part keeps what it offers: valid and payload of an output stream stay until the transfer.

A disarm drops tokens and commands, which belong to the jobs that it ends, and no access and no store row.
"""

from functools import partial

from amaranth.hdl import Const, Value
from amaranth.lib import data
from t3hdl.common.broadcast import control_pulses
from t3hdl.config import T3Config, preset
from t3hdl.export.module_ports import module_ports, module_streams
from t3hdl.export.verilog import PARTS
from t3hdl.interface.layouts import ConfigWrite

from ..prover.harness import Harness
from ..prover.proof import Proof
from .idle import LEAST
from .slice.tokens import claim_room

_DROPPED = ("token", "command")
"""How the names of streams begin of which a disarm drops what waits."""


def _keeps(name: str, config: T3Config) -> Harness:
    """Every output stream; of tokens and commands a disarm drops what waits, in the cycle of its pulse."""
    harness = Harness(PARTS[name](config))
    dut = harness.dut
    ports = {"__".join(map(str, path)): Value.cast(value) for path, _, value in dut.signature.flatten(dut)}
    for stream in module_streams(module_ports(dut)):
        if stream.is_input:
            continue
        valid, ready, payload = (ports[port.name] for port in (stream.valid, stream.ready, stream.payload))
        dropped = _disarm(name, harness) if stream.name.startswith(_DROPPED) else Const(0)
        waits = harness.past(valid & ~ready & ~dropped)
        harness.claim(f"{stream.name} stays until it is taken", ~waits | (valid & (payload == harness.past(payload))))
        if name != "core" or not stream.name.startswith("command"):  # in a core that would take hundreds of cycles
            harness.cover(f"{stream.name} waits, and is taken", waits & valid & ready)
        if name in ("slice", "matcher") and not stream.name.startswith(_DROPPED):
            disarmed = harness.past(valid & ~ready & _disarm(name, harness))
            harness.cover(f"{stream.name} waits over a disarm, and is taken", disarmed & valid & ready)
    if name == "slice":
        claim_room(harness, config)  # so a token is never written over
    return harness


def _disarm(name: str, harness: Harness) -> Value:
    """The pulse at the part's port for configuration writes; the core's is inside, a node has none."""
    if name == "core":
        inside = harness.inside
        valid, write = inside["registers.config_valid"], data.View(ConfigWrite, inside["registers.config"])
    elif "config" in harness.dut.signature.members:
        valid, write = harness.dut.config_valid, harness.dut.config
    else:
        return Const(0)
    return control_pulses(harness.m, valid, write).disarm


_SMALL = preset("small")
_SIZES = {
    "core": {"least": LEAST},
    "leaf": {"small": _SMALL},
    "matcher": {"least": LEAST, "small": _SMALL},
    "root": {"small": _SMALL},
    "slice": {"least": LEAST, "small": _SMALL, "performed": preset("small", count_on="performed")},
    "trigger": {"least": LEAST, "small": _SMALL},
}
"""The parts that have output streams; those of the unit are the core's."""

PROOFS = tuple(
    Proof(
        name=f"{name}.keeps-items",
        invariants=(8,),
        says="What an output stream offers stays as it is until it is taken; a disarm drops tokens and commands alone.",
        harness=partial(_keeps, name),
        sizes=sizes,
        method="induction",
        depth=1,
        cover_depth=30 if name == "trigger" else 8,
        quick=name not in ("core", "trigger"),
    )
    for name, sizes in _SIZES.items()
)
