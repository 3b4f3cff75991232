"""The memory slice: match at entry, queues, measurement, disarm, and Verilog that a linter accepts."""

from pathlib import Path

import numpy as np
import pytest
from amaranth.back import verilog
from t3hdl.config import NO_LIMIT, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import EPOCH_BITS, NEVER, Dtype, MemoryRequest, Op
from t3hdl.slice.slice import MemorySlice
from t3sim.hardware.golden.slice.arbiter import S
from t3sim.hardware.rtl.toolchain import find_toolchain

from tests.contract.slice.scene import PERFORMED, PORTS, RANGE, READ, STORE, TOKEN, UPDATES, WRITE_PORTS, Scene

LARGEST = (1 << 24) - 1
"""The most that ``served`` can count."""
FULL = {name: (1 << field.shape) - 1 for name, field in MemoryRequest} | {"op": Op.READ, "tagged": 0}
"""A request with all bits set but those that decide what it is."""


_GIVEN = ("dram", "token", "compute_refused", "comm_refused", "compute_stale", "comm_stale")


def assert_empty(scene: Scene) -> None:
    assert [scene[f"{port}.ready"] for port in PORTS] == [1] * 4
    assert [scene.item(name) for name in _GIVEN] == [None] * len(_GIVEN)
    assert (scene["served"], scene["comm_seen"], scene["corrected"], scene["uncorrectable"]) == (0, 0, 0, 0)


def busy(scene: Scene) -> None:
    """Tokens, full queues, an occupied output register, a count, communication seen, MCA."""
    scene.set_range()
    scene.set_arbiter()
    scene.control(arm=1, descriptors=1)
    scene.accept["token"] = 0
    scene.offer("compute_write", STORE)
    scene.offer("comm_read", READ)
    scene.step(6, threshold=NO_LIMIT, measure=1)
    scene.accept["dram"] = 0
    scene.offer("compute_write", *[STORE] * 3)
    scene.offer("comm_read", *[READ] * 2)
    scene.step(6)
    assert (scene["token.valid"], scene["dram.valid"], scene["served"], scene["comm_seen"]) == (1, 1, 3, 1)
    assert (scene["compute_write.ready"], scene["comm_read.ready"]) == (0, 0)


# Reset


def test_reset_in_any_state(backend):
    scene = Scene(backend)
    fresh = scene.backend.state()
    assert_empty(scene)
    busy(scene)
    scene.reset()
    assert_empty(scene)
    assert scene.backend.state() == fresh
    scene.step(3)
    assert (scene["idle"], scene["wake_at"]) == (1, NEVER)


def test_reset_clears_random_state():
    scene = Scene("golden")
    fresh, memory = scene.backend.state(), scene.backend.memory
    registers = memory[S.mca :]  # before them: parameters
    registers[:] = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, len(registers))
    scene.reset()
    assert scene.backend.state() == fresh
    assert_empty(scene)


# From the ports to `dram`


@pytest.mark.parametrize("claimed", [0, 1])
@pytest.mark.parametrize("port", PORTS)
def test_every_bit_passes_in_two_cycles_and_the_port_decides_the_stream(backend, port, claimed):
    scene, part = Scene(backend), MemorySlice(config=preset("small"))
    items = [FULL | {"stream": claimed}, READ | {"stream": claimed}]
    scene.offer(port, *items)
    scene.step(5)
    expected = [item | {"stream": int(port.startswith("comm"))} for item in items]
    assert scene.got["dram"] == [(part.latency + i, item) for i, item in enumerate(expected)]


def test_an_update_and_its_token_in_every_cycle(backend):
    scene, part = Scene(backend), MemorySlice(config=preset("small"))
    scene.set_range()
    start = scene.now
    scene.offer("compute_write", *[STORE | {"tag": i, "row": i} for i in range(20)])
    scene.step(30)
    assert [t for t, _ in scene.sent["compute_write"]] == [*range(start, start + 20)]
    left = [t for t, _ in scene.got["dram"]]
    assert left == [t + part.latency for t, _ in scene.sent["compute_write"]]
    assert scene.passed() == [*range(20)]
    assert [t for t, _ in scene.got["token"]] == [t + part.token_latency for t in left]


@pytest.mark.parametrize("port", PORTS)
def test_one_item_in_the_output_register_and_two_in_the_queue_wait(backend, port):
    scene = Scene(backend)
    scene.accept["dram"] = 0
    scene.offer(port, *[FULL | {"tag": i} for i in range(12)])
    scene.step(8)
    assert [t for t, _ in scene.sent[port]] == [0, 1, 2]
    assert [scene[f"{name}.ready"] for name in PORTS] == [int(name != port) for name in PORTS]
    scene.accept["dram"] = 1
    scene.step(20)
    assert [(t, request["tag"]) for t, request in scene.got["dram"]] == [(8 + i, i) for i in range(12)]


# Match at entry


@pytest.mark.parametrize("op", UPDATES)
@pytest.mark.parametrize("port", WRITE_PORTS)
def test_tagged_update_in_a_range_is_tracked(backend, port, op):
    scene = Scene(backend)
    scene.set_range()
    for line in (1000, 1005, 1999):
        item = STORE | {"line": line, "op": op, "stream": port == "compute_write"}
        assert scene.through(port, item) == item | {
            "stream": int(port == "comm_write"),
            "op": Op.ADD if op == Op.STORE else op,
            "dtype": Dtype.BF16,
        }
        assert scene.got["token"].pop()[1] == TOKEN


@pytest.mark.parametrize(
    "fields",
    [
        {"line": 999, "tagged": 0},
        {"line": 2000, "op": Op.READ_CLEAR},
        {"tagged": 0},
        {"tagged": 0, "epoch": 1},
        {"context": 0, "op": Op.READ},
        *({"op": op} for op in (0, 5, 6, 7)),
    ],
)
def test_everything_else_passes_unchanged_and_uncounted(backend, fields):
    scene = Scene(backend)
    scene.set_range()
    for port in WRITE_PORTS:
        item = STORE | fields
        assert scene.through(port, item) == item | {"tagged": 0, "stream": int(port == "comm_write")}
    assert not scene.got["token"]


@pytest.mark.parametrize("op", [Op.READ, Op.READ_CLEAR, Op.STORE, Op.ADD])
@pytest.mark.parametrize("port", ["compute_read", "comm_read"])
def test_a_read_port_never_tracks(backend, port, op):
    scene = Scene(backend)
    scene.set_range()
    item = STORE | {"op": op}
    assert scene.through(port, item) == item | {"tagged": 0, "stream": int(port == "comm_read")}
    assert not scene.got["token"]


def test_lowest_valid_range_wins(backend):
    scene = Scene(backend)
    scene.set_range(0, 1004, 1010, op=Op.MAX, dtype=Dtype.INT32, epoch=1)
    scene.set_range(1)
    for line, epoch, op, dtype in ((1005, 1, Op.MAX, Dtype.INT32), (1010, 2, Op.ADD, Dtype.BF16)):
        request = scene.through("compute_write", STORE | {"line": line, "epoch": epoch})
        assert (request["op"], request["dtype"]) == (op, dtype)
    assert scene.tokens("epoch") == [(1,), (2,)]
    scene.set_attributes(0, valid=0, op=Op.MAX)
    assert scene.through("compute_write", STORE)["op"] == Op.ADD


def test_the_match_uses_the_registers_of_the_cycle_of_entry(backend):
    scene = Scene(backend)
    scene.set_range(valid=0)
    scene.accept["dram"] = 0
    third = STORE | {"epoch": 3}
    scene.offer("compute_write", third, third, third)  # one is given back, one comes to rest in `out`
    scene.set_attributes(epoch=3, op=Op.MIN)  # in the cycle in which the first one enters
    assert "compute" in scene.stale()
    scene.step(5)
    scene.set_attributes(epoch=1, op=Op.MAX)
    scene.offer("compute_write", STORE | {"epoch": 1})
    scene.accept["dram"] = 1
    scene.step(8)
    assert scene.passed("tagged") == [1, 1, 1]
    assert scene.passed("op") == [Op.MIN, Op.MIN, Op.MAX]
    assert [token["epoch"] for _, token in scene.got["token"]] == [3, 3, 1]


def test_address_of_a_missing_range_changes_nothing(backend):
    scene = Scene(backend)
    scene.step(2)
    before = scene.backend.state()
    scene.set_range(2)
    scene.write(regs.RANGE + 24, 5)
    scene.step(3)
    assert scene.backend.state() == before
    assert scene.is_stale("compute_write", STORE)


# Measure


def test_served_counts_grants_while_measure(backend):
    scene = Scene(backend)
    scene.offer("compute_read", *[READ] * 15)
    scene.offer("comm_write", *[READ] * 15)
    scene.step(11, measure=0)
    scene.step(10, measure=1)
    scene.step(20, measure=0)
    assert scene["served"] == 10
    scene.step(5, measure=1)
    assert scene["served"] == 10, "nothing is granted"


@pytest.mark.parametrize("implementation", ["amaranth", "golden"])
def test_served_saturates(implementation):
    scene = Scene(implementation)
    if implementation == "golden":
        scene.backend.memory[S.served] = LARGEST - 2
    else:
        scene.backend.context.set(scene.backend.signals["served"], LARGEST - 2)
    scene.offer("compute_read", *[READ] * 10)
    scene.step(3, measure=1)
    assert scene["served"] == LARGEST
    scene.step(12)
    assert scene["served"] == LARGEST


@pytest.mark.parametrize("port", PORTS)
def test_comm_seen_after_a_communication_grant_while_armed(backend, port):
    scene = Scene(backend)
    scene.through(port, READ)
    assert scene["comm_seen"] == 0
    scene.control(arm=1, descriptors=1)
    scene.offer(port, READ)
    seen = []
    for _ in range(4):
        seen.append(scene["comm_seen"])
        scene.step()
    assert seen == ([0, 0, 1, 1] if port.startswith("comm") else [0] * 4), "visible with the request in `out`"
    scene.control(disarm=1)
    assert scene["comm_seen"] == 0
    scene.through(port, READ)
    assert scene["comm_seen"] == 0


def test_arm_starts_the_measurement_over_a_grant_of_the_same_cycle(backend):
    scene = Scene(backend)
    scene.offer("comm_read", *[READ] * 12)
    scene.control(arm=1, descriptors=1)
    scene.step(6, measure=1)
    assert (scene["served"], scene["comm_seen"]) == (6, 1)
    scene.control(arm=1, descriptors=1, context=1)
    assert (scene["served"], scene["comm_seen"], scene["dram.valid"]) == (0, 0, 1)
    scene.step()
    assert (scene["served"], scene["comm_seen"]) == (1, 1)


# Disarm


def test_a_disarm_forgets_counts_and_keeps_accesses_ranges_and_arbiter(backend):
    scene = Scene(backend)
    scene.set_range()
    scene.set_arbiter()
    scene.control(arm=1, context=1, descriptors=1)
    scene.accept["dram"] = scene.accept["token"] = 0
    scene.offer("comm_read", READ | {"tag": 10})
    scene.step(3, measure=1, threshold=127)
    scene.offer("compute_write", *[STORE | {"tag": tag} for tag in range(3)])
    scene.offer("comm_read", *[READ | {"tag": tag} for tag in (11, 12)])
    scene.step(3)
    scene.accept["dram"] = 1
    scene.step(2)
    scene.accept["dram"] = 0
    assert (scene["token.valid"], scene["served"] > 0, scene["comm_seen"]) == (1, 1, 1)
    scene.control(disarm=1)
    assert (scene["token.valid"], scene["served"], scene["comm_seen"]) == (0, 0, 0)
    scene.accept["dram"] = scene.accept["token"] = 1
    scene.step(20)
    assert sorted(scene.passed()) == [0, 1, 2, 10, 11, 12], "no access is lost"
    assert scene["pending"] == 0
    assert scene.through("compute_write", STORE)["op"] == Op.ADD
    left = len(scene.got["dram"])
    scene.offer("comm_read", READ)
    scene.step(10, threshold=0)
    assert len(scene.got["dram"]) == left, "still T3-MCA with the written starvation limit"


def test_a_forced_disarm_counts_nothing_of_what_was_taken_and_ends_every_range(backend):
    scene = Scene(backend)
    scene.set_range()
    scene.accept["dram"] = 0
    scene.offer("compute_write", *[STORE] * 3)
    scene.step(5)
    scene.control(disarm=1, forced=1)
    scene.accept["dram"] = 1
    scene.step(8)
    assert scene.passed("tagged") == [1, 1, 1]
    assert not scene.got["token"]
    assert scene.is_stale("compute_write", STORE)
    scene.set_attributes()
    assert scene.tracks("compute_write", STORE)
    assert not scene.got["token"], "not counted before an arm"
    scene.control(arm=1, context=1, descriptors=1)
    assert scene.tracks("comm_write", STORE)
    assert len(scene.got["token"]) == 1


# Stale updates


@pytest.mark.parametrize("op", UPDATES)
@pytest.mark.parametrize("port", WRITE_PORTS)
def test_an_update_of_no_live_epoch_comes_back(backend, port, op):
    scene = Scene(backend)
    scene.set_range()
    update = STORE | {"op": op}
    for bit in range(EPOCH_BITS):
        assert scene.is_stale(port, update | {"epoch": RANGE["epoch"] ^ 1 << bit})
    for line in (999, 2000):
        assert scene.is_stale(port, update | {"line": line})
    assert not scene.got["dram"]
    assert scene["pending"] == 0
    assert scene.tracks(port, update)


@pytest.mark.parametrize("performed", [0, 1])
def test_pending_is_1_until_the_last_update_of_the_context_is_counted(backend, performed):
    scene = Scene(backend, **PERFORMED) if performed else Scene(backend)
    scene.set_range()
    scene.set_range(1, 3000, 4000, context=0)
    other = STORE | {"context": 0, "line": 3000}
    scene.accept["dram"] = 0
    scene.offer("compute_write", STORE)
    scene.offer("comm_write", STORE, other)
    scene.step()
    assert scene["pending"] == 0b10
    scene.step(4)
    assert scene["pending"] == 0b11
    scene.control(abort=1, context=1)
    assert scene["pending"] == 0b11, "also of an aborted context"
    scene.accept["dram"] = 1
    scene.step(6)
    if performed:
        assert scene["pending"] == 0b11
        scene.report(other)
        assert scene["pending"] == 0b10
        scene.report(STORE)
        assert scene["pending"] == 0b10
        scene.report(STORE)
    assert scene["pending"] == 0


# Waived: how Yosys writes any design. Names of debug nets and unused bits, initial values beside assignments, constants
# without leading zeros, `!` of a vector, submodules in the file of the top. Everything else of -Wall is an error.
_WAIVED = ("UNUSEDSIGNAL", "PROCASSINIT", "WIDTHEXPAND", "WIDTHTRUNC", "DECLFILENAME")


@pytest.mark.parametrize("count_on", ["accepted", "performed"])
def test_paper_verilog_passes_verilators_lint(count_on: str, tmp_path: Path) -> None:
    text = verilog.convert(MemorySlice(config=preset("paper", count_on=count_on)), name="memory_slice")
    (tmp_path / "memory_slice.v").write_text(text)
    flags = ["--lint-only", "-Wall", *(f"-Wno-{name}" for name in _WAIVED)]
    find_toolchain().verilate([*flags, "memory_slice.v"], tmp_path)
