"""T3Core between two jobs of a context: what is late of the first one is never counted for the second."""

from dataclasses import replace

import pytest
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Op
from t3hdl.interface.words import unpack

from tests.contract.bench import Bench
from tests.contract.core.scene import (
    CONTEXT,
    EPOCH,
    TINY,
    access,
    arm,
    control,
    core,
    drain,
    lines_of,
    programme,
    request,
    send,
)

PERFORMED = replace(TINY, count_on="performed", token_queue=16)
BLOCK = (2, 2, 0), (2, 2, 1)
"""Both tiles of the block in the corner of chunk 1."""
NEXT = EPOCH + 1


def updates(epoch: int) -> list[dict[str, int]]:
    """One update of every line of the block."""
    return [access(line, tile, Op.ADD, epoch=epoch) for tile in BLOCK for line in lines_of(*tile)]


def send_block(bench: Bench, epoch: int) -> None:
    """Both addends of the block."""
    for port in ("compute_write", "comm_write"):
        send(bench, port, updates(epoch))
    drain(bench)


def report(bench: Bench, requests: list[dict[str, int]]) -> None:
    """The memory says that it has performed these."""
    for item in requests:
        bench.set("update_done.0", item)
        bench.set("update_done_valid.0", 1)
        bench.step()
    bench.set("update_done_valid.0", 0)
    bench.step(40)


def context(bench: Bench) -> dict[str, int]:
    return unpack(regs.ContextRecord, request(bench, 0, regs.CONTEXT + CONTEXT * regs.CONTEXT_STRIDE))


def aborted(bench: Bench) -> int:
    return unpack(regs.Interrupts, request(bench, 0, regs.IRQ_STATUS))["aborted"]


def test_late_reports_of_an_aborted_job_end_its_abort_and_count_for_no_other():
    """The next job cannot begin before the last report, nor with the same epoch."""
    bench = core("amaranth", PERFORMED)
    arm(bench)
    send_block(bench, EPOCH)
    late = [request for _, request in bench.got["dram.0"]]
    assert len(late) == 2 * len(updates(EPOCH)) and all(item["tagged"] for item in late)
    control(bench, abort=1, context=CONTEXT)
    bench.step(TINY.drain_cycles + 100)
    assert (context(bench)["pending"], context(bench)["aborting"], aborted(bench)) == (1, 1, 0)
    control(bench, arm=1, descriptors=4, context=CONTEXT, error=1)
    control(bench, disarm=1, error=1)
    report(bench, late[:-1])
    assert (context(bench)["pending"], aborted(bench)) == (1, 0)
    report(bench, late[-1:])
    assert (context(bench), aborted(bench)) == (dict.fromkeys(regs.ContextRecord.members, 0), 1)
    (again,) = (data for address, data in programme(EPOCH) if address == regs.RANGE_ATTRIBUTES)
    request(bench, 1, regs.RANGE_ATTRIBUTES, again, error=1)
    arm(bench, NEXT)
    report(bench, late)
    assert request(bench, 0, regs.UPDATES) == 0
    assert not bench.got["command"]
    send_block(bench, NEXT)
    report(bench, [request for _, request in bench.got["dram.0"][len(late) :]])
    assert [command["epoch"] for _, command in bench.got["command"]] == [NEXT]
    assert request(bench, 0, regs.ERRORS) == 0


def test_late_updates_of_an_aborted_job_are_refused():
    """They were on the link at the abort, and come while the next job runs."""
    bench = core("amaranth", TINY)
    arm(bench)
    send(bench, "compute_write", updates(EPOCH))
    drain(bench)
    control(bench, abort=1, context=CONTEXT)
    bench.step(TINY.drain_cycles + 100)
    assert aborted(bench)
    arm(bench, NEXT)
    passed = len(bench.got["dram.0"])
    send(bench, "compute_write", updates(NEXT))
    send(bench, "comm_write", updates(EPOCH))
    drain(bench)
    assert not bench.got["command"], "one addend is of another job"
    assert len(bench.got["dram.0"]) - passed == len(updates(NEXT)), "late updates do not reach the memory"
    assert request(bench, 0, regs.STALE_UPDATES) == len(updates(EPOCH))
    first = unpack(regs.RefusalRecord, request(bench, 0, regs.STALE_UPDATE))
    assert (first["line"], first["epoch"], first["context"]) == (updates(EPOCH)[0]["line"], EPOCH, CONTEXT)
    assert request(bench, 0, regs.ERRORS) == regs.Errors.const({"stale_update": 1}).as_bits()
    send(bench, "comm_write", updates(NEXT))
    drain(bench)
    assert [command["epoch"] for _, command in bench.got["command"]] == [NEXT]


@pytest.mark.long
def test_updates_that_wait_in_a_slice_at_the_abort_are_not_counted_after_the_next_arm():
    bench = core("amaranth", TINY)
    arm(bench)
    bench.accept["dram.0"] = 0
    send(bench, "compute_write", updates(EPOCH)[:3])
    bench.step(20)
    control(bench, abort=1, context=CONTEXT)
    bench.step(TINY.drain_cycles + 100)
    control(bench, arm=1, descriptors=4, context=CONTEXT, error=1)
    bench.accept["dram.0"] = 1
    bench.step(20)
    assert len(bench.got["dram.0"]) == 3, "performed, as the job had not been aborted when they were taken"
    assert aborted(bench)
    arm(bench, NEXT)
    assert request(bench, 0, regs.UPDATES) == 0


@pytest.mark.long
def test_a_report_in_the_cycle_of_its_transfer_counts():
    bench = core("amaranth", PERFORMED)
    arm(bench)
    bench.accept["dram.0"] = 0
    items = updates(EPOCH)
    send(bench, "compute_write", items)
    for _ in range(200):
        taken = bench.item("dram.0")
        bench.accept["dram.0"] = int(taken is not None)
        bench.set("update_done_valid.0", int(taken is not None))
        if taken is not None:
            bench.set("update_done.0", taken)
        bench.step()
    assert len(bench.got["dram.0"]) == len(items)
    assert request(bench, 0, regs.UPDATES) == len(items)
    assert not context(bench)["pending"]


@pytest.mark.long
def test_a_disarm_loses_no_access():
    """Ordinary accesses that wait in the slices; it is not refused for them."""
    bench = core("amaranth", TINY)
    bench.until("init_done", 1000)
    for address, data in programme():
        request(bench, 1, address, data)
    bench.accept["dram.0"] = 0.3
    ports = [f"{stream}_{kind}.0" for stream in ("compute", "comm") for kind in ("read", "write")]
    for number in range(60):
        op = Op.STORE if "write" in ports[number % 4] else Op.READ
        bench.send[ports[number % 4]].append(access(0x900 + number, (0, 0, 0), op, tagged=0))
    for disarmed in range(4):
        bench.step(10)
        control(bench, disarm=1, forced=disarmed % 2)
        bench.until("init_done", 1000)
    drain(bench)
    assert sorted(item["tag"] for _, item in bench.got["dram.0"]) == [0x900 + number for number in range(60)]
