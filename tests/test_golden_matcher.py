"""The golden RangeMatcher against hand-computed scenarios, one per statement of docs/hardware.md."""

import numpy as np
import pytest
from golden_bench import Bench, pack, unpack
from t3hdl.config import preset
from t3hdl.interface import register_map as registers
from t3hdl.interface.layouts import NEVER, ChunkKind, ConfigWrite, MemoryRequest, Op, Route
from t3hdl.interface.signatures import matcher_signature
from t3sim.hardware.golden import matcher as golden

BASE, LIMIT = 0x10_0000_0000, 0x10_0000_1000  # above 32 bits
PEER_BASE = 0x7F_FFFF_F000


def make(**overrides) -> Bench:
    config = preset("small", **{"ranges": 2, "contexts": 5, **overrides})
    return Bench(golden, matcher_signature(config), golden.init_state(config))


def set_range(bench, i=0, base=BASE, limit=LIMIT, **attributes) -> None:
    first = registers.RANGE + i * registers.RANGE_STRIDE
    bench.write(first, base)
    bench.write(first + 8, limit)
    bench.write(first + 16, pack(registers.RangeAttributes, **{"valid": 1, "context": 3, "op": Op.MAX} | attributes))


def set_chunk(bench, i, kind, *, context=3, **bounds) -> None:
    bounds = {"row0": 4, "row1": 8, "col0": 16, "col1": 32, "op": Op.ADD, "peer": 200 + i} | bounds
    words = (
        pack(registers.DESCRIPTOR_LAYOUTS[0], kind=kind, **bounds),
        pack(registers.DESCRIPTOR_LAYOUTS[1], context=context, expected=1),
        pack(registers.DESCRIPTOR_LAYOUTS[2], base=1),
        pack(registers.DESCRIPTOR_LAYOUTS[3], peer_base=PEER_BASE),
    )
    for word, value in enumerate(words):
        bench.write(registers.DESCRIPTOR + i * registers.DESCRIPTOR_STRIDE + 8 * word, value)


def arm(bench, descriptors=8, *, first=0, context=3) -> None:
    control = pack(registers.Control, arm=1, descriptors=descriptors, first=first, context=context)
    bench.write(registers.CONTROL, control)


def abort(bench, context=3) -> None:
    bench.write(registers.CONTROL, pack(registers.Control, abort=1, context=context))


def store(**values) -> int:
    named = {"op": Op.STORE, "line": BASE + 5, "context": 3, "tagged": 1, "row": 4, "col": 16, "bottom": 1}
    return pack(MemoryRequest, **named | values)


def route(bench, item) -> dict[str, int]:
    """What the matcher says about one item."""
    bench.tick(3, store=item)
    result = unpack(Route, bench.item("route"))
    bench.tick(route_ready=1)
    bench.tick(0, route_ready=0)
    return result


def ready(kind=ChunkKind.REMOTE, **bounds) -> Bench:
    """A matcher with one range and chunk 2, armed."""
    bench = make()
    set_range(bench)
    set_chunk(bench, 2, kind, **bounds)
    arm(bench)
    return bench


STAYS = {"line": BASE + 5, "matched": 0, "remote": 0, "descriptor": 0, "op": Op.STORE, "peer": 0}


def test_reset_state_is_complete():
    bench = make()
    fresh = bench.state.copy()
    bench.state[2:] = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, len(fresh) - 2)
    bench.instance.reset()
    assert np.array_equal(bench.state, fresh)
    assert (bench.get("store.ready"), bench.item("route")) == (1, None)
    assert (bench.get("idle"), bench.get("wake_at")) == (1, NEVER)


def test_remote_chunk_translates_the_line():
    assert route(ready(), store()) == {
        "line": PEER_BASE + 5, "matched": 1, "remote": 1, "descriptor": 2, "op": Op.ADD, "peer": 202,
    }  # fmt: skip


def test_line_at_the_peer_is_cut_to_39_bits():
    assert route(ready(), store(line=LIMIT - 1))["line"] == PEER_BASE + 0xFFF
    bench = ready()
    set_range(bench, limit=BASE + 0x2000)
    assert route(bench, store(line=BASE + 0x1003))["line"] == 3


@pytest.mark.parametrize("kind", [ChunkKind.DMA, ChunkKind.LOCAL])
def test_matched_chunk_that_stays(kind):
    assert route(ready(kind), store()) == STAYS | {"matched": 1, "descriptor": 2}


def test_kind_none_does_not_match():
    assert route(ready(ChunkKind.NONE), store()) == STAYS


@pytest.mark.parametrize(
    "change",
    [
        {"line": BASE - 1}, {"line": LIMIT}, {"context": 2}, {"tagged": 0},
        {"row": 3}, {"row": 8}, {"col": 15}, {"col": 32},
    ],
)  # fmt: skip
def test_unmatched_item_keeps_line_and_op(change):
    line = change.get("line", BASE + 5)
    assert route(ready(), store(**change, op=Op.MIN)) == STAYS | {"line": line, "op": Op.MIN}


@pytest.mark.parametrize("change", [{"line": BASE}, {"line": LIMIT - 1}, {"row": 7}, {"col": 31}])
def test_inside_the_bounds(change):
    assert route(ready(), store(**change))["matched"] == 1


def test_context_of_the_descriptor_counts_too():
    bench = ready(context=4)
    assert route(bench, store()) == STAYS
    arm(bench, context=4)
    set_range(bench, context=4)
    assert route(bench, store(context=4))["matched"] == 1


def test_invalid_range_does_not_match():
    bench = ready()
    set_range(bench, valid=0)
    assert route(bench, store()) == STAYS


def test_lowest_descriptor_and_lowest_range_win():
    bench = ready()
    set_chunk(bench, 3, ChunkKind.DMA)
    set_range(bench, 1, base=BASE - 1)
    assert route(bench, store()).items() >= {"descriptor": 2, "line": PEER_BASE + 5}.items()
    set_chunk(bench, 1, ChunkKind.DMA)
    set_range(bench, 0, valid=0)
    assert route(bench, store())["descriptor"] == 1
    set_chunk(bench, 1, ChunkKind.REMOTE)
    assert route(bench, store())["line"] == PEER_BASE + 6  # range 1 begins a line earlier


def test_descriptors_of_the_arm_only():
    bench = make()
    set_range(bench)
    set_chunk(bench, 2, ChunkKind.REMOTE)
    assert route(bench, store()) == STAYS  # not armed
    arm(bench, 2)
    assert route(bench, store()) == STAYS
    arm(bench, 3)
    assert route(bench, store())["descriptor"] == 2


def test_windows_of_two_contexts():
    bench = make()
    for i, context in ((0, 3), (1, 4)):
        set_range(bench, i, base=BASE + 0x1000 * i, limit=LIMIT + 0x1000 * i, context=context)
    for i in range(8):
        set_chunk(bench, i, ChunkKind.REMOTE, context=3 if i < 5 else 4)
    arm(bench, 2, first=3, context=3)
    arm(bench, 3, first=4, context=4)  # descriptor 4 lies in both windows, but has context 3
    assert route(bench, store())["descriptor"] == 3
    assert route(bench, store(context=4, line=BASE + 0x1000))["descriptor"] == 5
    arm(bench, 1, first=4, context=3)
    assert route(bench, store())["descriptor"] == 4


def test_the_last_descriptor_ends_a_window():
    bench = make()
    set_range(bench)
    set_chunk(bench, 7, ChunkKind.DMA)
    arm(bench, 1, first=7)
    assert route(bench, store())["descriptor"] == 7


def test_context_without_a_window_is_not_matched():
    bench = ready()
    set_range(bench, context=15)
    set_chunk(bench, 2, ChunkKind.REMOTE, context=15)
    assert route(bench, store(context=15)) == STAYS


def test_abort_empties_its_window_and_drops_its_ranges():
    bench = make()
    for i, context in ((0, 3), (1, 4)):
        set_range(bench, i, base=BASE + 0x1000 * i, limit=LIMIT + 0x1000 * i, context=context)
        set_chunk(bench, i, ChunkKind.DMA, context=context)
        arm(bench, 1, first=i, context=context)
    abort(bench)
    other = store(context=4, line=BASE + 0x1000)
    assert route(bench, store()) == STAYS and route(bench, other)["descriptor"] == 1
    set_range(bench)
    assert route(bench, store()) == STAYS, "the window is empty"
    arm(bench, 1)
    assert route(bench, store())["descriptor"] == 0
    abort(bench)
    arm(bench, 1)
    assert route(bench, store()) == STAYS, "the range is not valid"


def test_disarm_empties_and_keeps_the_tables():
    bench = ready()
    for _ in range(3):
        bench.tick(store=store())
    disarm = pack(ConfigWrite, address=registers.CONTROL, data=pack(registers.Control, disarm=1))
    bench.tick(config=disarm, store=store())
    assert (bench.item("route"), bench.get("store.ready"), bench.get("idle")) == (None, 1, 1)
    bench.tick(3)
    assert bench.item("route") is None
    assert route(bench, store()) == STAYS
    arm(bench)
    assert route(bench, store())["descriptor"] == 2


def test_latency_three_and_one_item_per_cycle():
    bench = ready()
    bench.tick(0, route_ready=1)
    lines = []
    for i in range(8):
        bench.tick(store=store(line=BASE + i))
        if i < 2:
            assert bench.item("route") is None
        else:
            lines.append(unpack(Route, bench.item("route"))["line"])
    assert lines == [PEER_BASE + i for i in range(6)]


def test_backpressure_holds_four_items():
    bench = ready()
    for i in range(5):
        assert bench.get("store.ready") == (i < 4)
        bench.tick(store=store(line=BASE + i))
    for _ in range(3):
        assert unpack(Route, bench.item("route"))["line"] == PEER_BASE
        assert bench.get("idle") == 1
        bench.tick()
    lines = []
    bench.tick(0, route_ready=1)
    for _ in range(4):
        lines.append(unpack(Route, bench.item("route"))["line"])
        bench.tick()
    assert lines == [PEER_BASE, PEER_BASE + 1, PEER_BASE + 2, PEER_BASE + 3]
    assert bench.item("route") is None


def write_word(bench, i, word, **inputs) -> None:
    """Writes 0 to a word of descriptor ``i``."""
    address = registers.DESCRIPTOR + i * registers.DESCRIPTOR_STRIDE + 8 * word
    bench.tick(config=pack(ConfigWrite, address=address, data=0), **inputs)


def test_tables_are_read_when_the_item_is_matched():
    bench = ready()
    bench.tick(store=store())
    bench.tick()  # matched
    write_word(bench, 2, 3)  # goes on to `route` meanwhile
    assert unpack(Route, bench.item("route"))["line"] == PEER_BASE + 5
    bench.tick(route_ready=1)
    assert route(bench, store())["line"] == 5


@pytest.mark.parametrize("word", range(6))
def test_a_descriptor_that_is_being_written_does_not_match(word):
    bench = ready()
    set_chunk(bench, 4, ChunkKind.DMA)
    bench.tick(store=store())
    write_word(bench, 2, word)
    bench.tick()
    assert unpack(Route, bench.item("route"))["descriptor"] == (4 if word in (0, 1, 3) else 2)


@pytest.mark.parametrize("word", range(6))
def test_an_item_that_waits_while_its_descriptor_is_written_is_unmatched(word):
    bench = ready()
    set_chunk(bench, 4, ChunkKind.DMA)
    for _ in range(2):
        bench.tick(store=store())
    bench.tick(2)
    write_word(bench, 4, word)  # not its descriptor
    write_word(bench, 2, word)
    assert unpack(Route, bench.item("route"))["line"] == PEER_BASE + 5
    bench.tick(route_ready=1)
    result = unpack(Route, bench.item("route"))
    assert result == STAYS if word in (0, 1, 3) else result["line"] == PEER_BASE + 5


def test_unknown_addresses_change_nothing():
    bench = make(ranges=1, descriptors=4)
    before = bench.state.copy()
    set_range(bench, 1)
    set_chunk(bench, 4, ChunkKind.DMA)
    for address in (registers.RANGE + 24, registers.DESCRIPTOR + 48, registers.DESCRIPTOR + 56, registers.PROFILE):
        bench.write(address, 0xFFFF)
    assert np.array_equal(bench.state, before)
