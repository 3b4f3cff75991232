"""The memory behind a slice with count_on = performed: what it has taken and not reported yet."""

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Signal, Value
from t3hdl.config import T3Config

from ..prover.harness import Harness


def tracked_transfer(harness: Harness) -> Value:
    """Whether the memory takes a tracked access in this cycle."""
    dram = harness.dut.dram
    return dram.valid & dram.ready & dram.payload.tagged


def counted_now(harness: Harness, config: T3Config) -> tuple[Value, Value]:
    """Whether an update is counted in this cycle, and which word names it."""
    part = harness.dut
    if config.count_on == "performed":
        return part.update_done_valid & part.update_done.tagged, part.update_done
    return tracked_transfer(harness), part.dram.payload


def unreported(harness: Harness, config: T3Config, kinds: Mapping[str, tuple[Value, Value]]) -> dict[str, Value]:
    """How many accesses of each kind the memory has taken and not reported; assumes that it reports each of them once.

    ``kinds`` : by name, whether the access at ``dram`` is of the kind, and whether that of ``update_done`` is. Every
    access must be of one of them. With count_on = accepted nothing is reported, and all are 0.
    """
    if config.count_on == "accepted":
        return {name: Const(0) for name in kinds}
    m, sent, (done, _) = harness.m, tracked_transfer(harness), counted_now(harness, config)
    owed: dict[str, Value] = {}
    early = []
    for name, (at_dram, at_report) in kinds.items():
        owes, comes, reported = Signal(range(config.token_queue + 1), name=f"owed_{name}"), Signal(), Signal()
        m.d.comb += [comes.eq(sent & at_dram), reported.eq(done & at_report)]
        m.d.sync += owes.eq(owes + comes - reported)
        early.append(reported & (owes == 0) & ~comes)
        owed[name] = owes
    harness.assume("the memory reports each tracked update once", ~Cat(early).any())
    harness.claim(
        "the slice waits for as many reports as come", harness.inside["outstanding"] == sum(owed.values(), Const(0))
    )
    return owed
