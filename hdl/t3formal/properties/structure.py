"""Wires alone: every part is a Moore machine, a reset sets what is not a memory, and nothing that waits behind the
trigger can hold updates up."""

from dataclasses import replace
from functools import partial

from t3hdl.config import T3Config, preset
from t3hdl.core import T3Core
from t3hdl.export.verilog import PARTS

from ..prover.proof import Proof
from ..prover.structure import Structure

_WITHIN_A_CYCLE = "no output depends on an input of the same cycle"
_UPDATES = r"(compute|comm)_write__\d+__ready"
_ARRIVES = r"(compute|comm)_(read|write)__\d+__(valid|payload)|update_done(_valid)?__\d+"
_MEMORY = r"dram__\d+__ready|occupancy__\d+|now"
_PROGRAM = r"registers\.config(_valid)?"
_NOT_RESET = r"(.*\.)?core\.slots\.bounds_\d+"  # of slots that hold no chunk, which is in a register beside them
_BACKLOG = r"trigger\.core\.meter\.backlog"  # which only chooses between two rules, both of which serve updates
_LOAD = r"trigger\.core\.loader\.(load_valid|chosen|word\d)"


def _moore(name: str, config: T3Config) -> Structure:
    structure = Structure(PARTS[name](config))
    structure.claim(_WITHIN_A_CYCLE, of=".*")
    structure.cover("an input acts on an output in a later cycle", of=".*", on=".*")
    return structure


def _reset(name: str, config: T3Config) -> Structure:
    structure = Structure(PARTS[name](config))
    kept = "$^" if config.protect else _NOT_RESET  # whose parity has a reset
    structure.claim_reset("a reset gives every register its initial value", but=kept)
    structure.cover("a register follows the inputs without reset", of=".*", on=".*")
    return structure


def _sinks(config: T3Config) -> Structure:
    """All that the readiness for updates depends on. What the driver writes and which chunk is live come from registers
    and trigger as pulses, which are never refused; they are where the search ends. The number of DMA blocks that wait
    decides whose turn it is, but by either rule it is soon everybody's (slice.serves-communication, -compute)."""
    structure = Structure(T3Core(config=config))
    structure.claim(_WITHIN_A_CYCLE, of=".*")
    structure.claim(
        "updates wait for memory, other updates, configuration, slots and turns by the backlog, for nothing else",
        of=_UPDATES,
        on=f"{_ARRIVES}|{_MEMORY}|{_PROGRAM}|{_LOAD}|{_BACKLOG}",
        across=True,
        ends=r"(registers|trigger|matcher_\d+)\..*",
    )
    structure.cover("updates wait for the memory", of=_UPDATES, on=r"dram__\d+__ready")
    structure.cover("a stalled DMA engine shows in the status that programs read", of="quiet", on="command__ready")
    return structure


_SIZE = preset("small", slices=2, node_inputs=1, dtypes=("int32",))
_LITTLE = preset(
    "small", slices=2, node_inputs=1, ranges=1, contexts=1, tracker_sets=4, tracker_ways=1, descriptors=2,
    chunk_window=2, blocks=4, wavefronts=1, tile_count_bits=4, chunk_count_bits=8, token_queue=2, event_queue=3,
)  # fmt: skip
_BOTH = {"small": preset("small"), "protect": preset("small", protect=True)}
_RESETS = {"core": {"little": _LITTLE}, "tracker": _BOTH, "trigger": _BOTH, "slice": _BOTH}
"""Sizes for the proofs of resets, where it is not `small` alone."""
_QUICK = ("axi", "crossing", "leaf", "matcher", "monitor", "registers", "root")

PROOFS = (
    *(
        Proof(
            name=f"{name}.moore",
            invariants=(10,),
            says="No output depends on an input of the same cycle: no path goes through the part.",
            harness=partial(_moore, name),
            sizes={"little": _LITTLE} if name == "unit" else {"small": _SIZE},
            method="structure",
            quick=name in _QUICK,
        )
        for name in PARTS
        if name != "core"
    ),
    *(
        Proof(
            name=f"{name}.reset",
            invariants=(),
            says="After a reset at any time all is as after power-up, but for memories and bounds of slots not in use.",
            harness=partial(_reset, name),
            sizes=_RESETS.get(name, {"small": preset("small")}),
            method="structure",
            quick=name in _QUICK,
        )
        for name in PARTS
        if name not in ("unit", "crossing")  # core and port; has a reset for each of two clocks
    ),
    Proof(
        name="core.sinks",
        invariants=(10,),
        says="Over any number of cycles, the readiness for updates depends on nothing that leaves trigger, "
        "matchers or bus, but for the number of DMA blocks that wait, which chooses who goes first: either "
        "rule serves both streams (slice.serves-communication, slice.serves-compute). Whether DMA engine, "
        "link and host take what is offered, or give credits back, is not among its causes otherwise.",
        harness=_sinks,
        sizes={"little": _LITTLE, "performed": replace(_LITTLE, count_on="performed")},
        method="structure",
        quick=False,
    ),
)
