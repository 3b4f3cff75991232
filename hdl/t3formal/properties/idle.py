"""Cycles in which a part is idle may be skipped: nothing in it changes before ``wake_at`` while its ports are quiet.

Shown from any state, so that few invariants are needed, and for every register and table, not only for outputs.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from amaranth.hdl import Cat, Signal, Value
from amaranth.lib.wiring import Component
from t3hdl.config import T3Config, preset
from t3hdl.export.module_ports import module_ports, module_streams, pulses
from t3hdl.export.verilog import PARTS

from ..prover.harness import Harness
from ..prover.proof import Proof

LEAST = preset(
    "small", slices=1, node_inputs=1, ranges=1, contexts=1, tracker_sets=2, tracker_ways=1, tracker_banks=1,
    row_index_bits=0, descriptors=2, chunk_window=2, blocks=1, wavefronts=1, tile_count_bits=4, chunk_count_bits=8,
    token_queue=2, event_queue=3,
)  # fmt: skip
"""Of everything as little as there can be."""


def _nothing_changes(name: str, config: T3Config) -> Harness:
    """Premise and claims of rule 5 of docs/hardware/rules.md, for every group of registers and every table."""
    harness = Harness(PARTS[name](config))
    dut, m = harness.dut, harness.m
    ports = {"__".join(map(str, path)): Value.cast(value) for path, _, value in dut.signature.flatten(dut)}
    ignored = {"now", *_pulse_ports(dut)}
    inputs = Cat(value for port, value in harness.inputs.items() if port not in ignored)
    idle, due = Signal(), Signal()
    m.d.comb += idle.eq(~harness.first & ports["idle"] & ~_moving(dut, ports) & (inputs == harness.past(inputs)))
    if "now" in ports:
        m.d.comb += due.eq(ports["now"] >= ports["wake_at"])
        harness.assume("now does not run back", ports["now"] >= harness.past(ports["now"]))
    skipped = idle & ~due
    was_skipped = harness.past(skipped)
    same = Signal(init=1)
    m.d.comb += same.eq(1)
    for group, registers in _groups(harness).items():
        stays = Cat(registers) == harness.past(Cat(registers))
        harness.claim(f"{group} stays", ~was_skipped | stays)
        with m.If(~stays):
            m.d.comb += same.eq(0)
    for table, its in harness.inside.tables.items():
        harness.claim(f"{table} is not written", ~skipped | ~Cat(enable for enable, _, _ in its.writes).any())
        harness.claim(
            f"what is read from {table} stays", ~was_skipped | (Cat(its.reads) == harness.past(Cat(its.reads)))
        )
    for part, excludes in _UNREACHABLE.items():
        if part == name or name == "unit":
            excludes(harness, config)
    harness.cover("two cycles are skipped", skipped & was_skipped)
    if name in _DEADLINES and not config.protect:  # which would not change it, but a search through codes is long
        harness.cover("it acts by itself at its deadline", harness.past(idle & due) & ~same)
    return harness


def _moving(dut: Component, ports: dict[str, Value]) -> Value:
    """A stream or a bus transfers, or a pulse comes in."""
    described = module_ports(dut)
    handshakes = [(stream.valid.name, stream.ready.name) for stream in module_streams(described)]
    for valid in ports:
        ready = f"{valid.removesuffix('valid')}ready"
        if valid.startswith(("axi_", "bus_")) and valid.endswith("valid") and ready in ports:
            handshakes.append((valid, ready))
    moving = [ports[valid] & ports[ready] for valid, ready in handshakes]
    moving += [ports[valid.name] for valid in pulses(described).values() if valid.is_input]
    return Cat(moving).any()


def _pulse_ports(dut: Component) -> set[str]:
    """The inputs that are pulses, and their payloads: after one the next cycle may be skipped at once."""
    return {
        name for payload, valid in pulses(module_ports(dut)).items() if valid.is_input for name in (payload, valid.name)
    }


def _groups(harness: Harness) -> dict[str, list[Signal]]:
    """The registers of the part by the module that they are in."""
    groups: dict[str, list[Signal]] = {}
    for path, register in harness.inside.registers.items():
        groups.setdefault(path.rpartition(".")[0] or "the part itself", []).append(register)
    return groups


def _tracker(harness: Harness, config: T3Config) -> None:
    """The walker of the tables does not walk unless the part says so."""
    inside = harness.inside
    harness.claim("only maintenance walks", ~inside["maintenance.sweeping"] | inside["maintenance.maintenance"])


def _trigger(harness: Harness, config: T3Config) -> None:
    """What the loader found to be damaged is a slot's, and nothing is without ``protect``."""
    inside = harness.inside
    harness.claim("the loader fills slots that exist", inside["loader.slot"] < config.chunk_window)
    if not config.protect:
        harness.claim(
            "no descriptor has an uncorrectable error",
            ~inside["loader.data_error"] & ~inside["loader.uncorrectable_error"],
        )


_UNREACHABLE: dict[str, Callable[[Harness, T3Config], None]] = {"tracker": _tracker, "trigger": _trigger}
"""Claims that exclude states which are never reached, in which the part would be idle and change."""
_DEADLINES = {"slice": 12, "tracker": 12, "trigger": 26}
"""The parts that act by themselves, and cycles within which they can be seen to."""


def _proof(name: str, *, quick: bool = True, **sizes: T3Config) -> Proof:
    return Proof(
        name=f"{name}.idle",
        invariants=(5,),
        says="While the part is idle, its ports are quiet and now < wake_at, no register and no table of it changes.",
        harness=partial(_nothing_changes, name),
        sizes=sizes,
        method="induction",
        depth=3,
        cover_depth=_DEADLINES.get(name, 6),
        quick=quick,
    )


_SMALL, _PROTECTED = preset("small"), preset("small", protect=True)
_NMC = preset("small", dtypes=("int32",), nmc_latency=2)
PROOFS = (
    _proof("axi", small=_SMALL),
    _proof("leaf", small=_SMALL, protect=_PROTECTED),
    _proof("matcher", least=LEAST, small=_SMALL, protect=preset("small", descriptors=4, protect=True)),
    _proof("monitor", small=_SMALL),
    _proof("nmc", quick=False, small=_NMC, protect=replace(_NMC, protect=True)),
    _proof("registers", small=_SMALL, protect=_PROTECTED),
    _proof("root", small=_SMALL, protect=_PROTECTED),
    _proof(
        "slice",
        least=LEAST,
        small=_SMALL,
        performed=preset("small", count_on="performed"),
        protect=preset("small", token_queue=2, protect=True),
    ),
    _proof("tracker", quick=False, least=LEAST, small=_SMALL, protect=preset("small", tracker_ways=1, protect=True)),
    _proof("trigger", quick=False, least=LEAST, small=_SMALL, protect=replace(LEAST, protect=True)),
    _proof("unit", quick=False, least=LEAST),
)
