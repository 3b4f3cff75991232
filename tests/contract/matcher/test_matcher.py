"""The range matcher: which store rows become packets for a peer, and to which address there."""

import numpy as np
import pytest
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import NEVER, ChunkKind, Op

from tests.contract.matcher.scene import BASE, JOB, LEAVES, LIMIT, OTHER, PEER_BASE, STAYS, Matcher
from tests.support.single_event_upsets import invert


def test_empty_after_reset(backend):
    matcher = Matcher(backend)
    bench = matcher.bench
    assert (bench["store.ready"], bench.item("route"), bench["wake_at"]) == (1, None, NEVER)
    assert matcher.route() == STAYS
    assert (bench["corrected"], bench["uncorrectable"]) == (0, 0)


@pytest.mark.parametrize(
    "change", [{}, {"line": BASE}, {"line": LIMIT - 1}, {"row": 4}, {"row": 7}, {"col": 16}, {"col": 31}]
)
def test_row_of_a_remote_chunk_goes_to_the_peers_address(backend, change):
    line = change.get("line", BASE + 5)
    assert Matcher(backend).set_up().route(**change, op=Op.MIN) == LEAVES | {"line": line - BASE + PEER_BASE}


@pytest.mark.parametrize(
    "change",
    [
        {"line": BASE - 1}, {"line": LIMIT}, {"context": OTHER}, {"tagged": 0},
        {"row": 3}, {"row": 8}, {"col": 15}, {"col": 32},
    ],
)  # fmt: skip
def test_row_outside_keeps_line_and_op(backend, change):
    line = change.get("line", BASE + 5)
    assert Matcher(backend).set_up().route(**change, op=Op.MIN) == STAYS | {"line": line, "op": Op.MIN}


@pytest.mark.parametrize(("line", "length"), [(BASE, 7), (BASE + 5, 0), (BASE + 5, 2), (LIMIT - 1, 0), (LIMIT - 8, 7)])
def test_a_burst_goes_by_its_first_line(backend, line, length):
    assert Matcher(backend).set_up().route(line=line, length=length) == LEAVES | {"line": line - BASE + PEER_BASE}


@pytest.mark.parametrize(
    ("line", "length", "other"),
    [
        (BASE + 5, 3, None),  # over the end of its aligned block
        (BASE + 15, 7, None),
        (BASE + 1, 2, (0, BASE + 3, BASE + 16, OTHER)),  # into another's range, of a lower number
        (BASE + 1, 2, (0, BASE + 2, BASE + 16, JOB)),  # over a bound within its own
        (BASE + 1, 6, (0, BASE + 7, BASE + 16, OTHER)),  # with its last line alone
    ],
)
def test_a_burst_over_a_bound_or_its_block_matches_nothing(backend, line, length, other):
    matcher = Matcher(backend).set_up()
    if other:
        number, base, limit, context = other
        matcher.set_range(number, base, limit, context=context)
    assert matcher.route(line=line, length=length) == STAYS | {"line": line}
    assert matcher.route(line=line, length=0)["matched"]


def test_line_at_the_peer_is_cut_to_39_bits(backend):
    matcher = Matcher(backend).set_up()
    matcher.set_range(1, limit=BASE + 0x2000)
    assert matcher.route(line=BASE + 0x1003)["line"] == 3


@pytest.mark.parametrize("kind", [ChunkKind.DMA, ChunkKind.LOCAL])
def test_row_of_a_local_chunk_matches_and_stays(backend, kind):
    assert Matcher(backend).set_up(kind=kind).route() == STAYS | {"matched": 1, "descriptor": 2}


def test_descriptor_of_kind_none_or_of_another_context_does_not_match(backend):
    matcher = Matcher(backend).set_up(kind=ChunkKind.NONE)
    assert matcher.route() == STAYS
    for context in (OTHER, JOB + 2, JOB + 8):
        matcher.set_chunk(2, context=context)
        assert matcher.route() == STAYS
    matcher.set_chunk(2)
    assert matcher.route() == LEAVES


def test_lowest_descriptor_wins(backend):
    matcher = Matcher(backend).set_up()
    matcher.set_chunk(3, ChunkKind.DMA)
    assert matcher.route() == LEAVES
    matcher.set_chunk(1)
    assert matcher.route() == LEAVES | {"descriptor": 1, "peer": 101}
    matcher.set_chunk(0, ChunkKind.DMA)
    assert matcher.route() == STAYS | {"matched": 1}


def test_lowest_valid_range_wins_and_its_context_decides(backend):
    matcher = Matcher(backend).set_up()
    matcher.set_range(0, BASE + 4)
    assert matcher.route()["line"] == PEER_BASE + 1, "the base of range 0 counts"
    matcher.set_range(0, BASE + 4, context=OTHER)
    assert matcher.route() == STAYS, "range 0 still hits"
    matcher.set_range(0, BASE + 4, valid=0)
    assert matcher.route()["line"] == PEER_BASE + 5, "an invalid range does not hit"
    matcher.set_range(1, valid=0)
    assert matcher.route() == STAYS


def test_only_armed_descriptors_match(backend):
    matcher = Matcher(backend)
    matcher.set_range(1)
    matcher.set_chunk(2)
    assert matcher.route() == STAYS, "not armed"
    matcher.arm(2)
    assert matcher.route() == STAYS, "armed without descriptor 2"
    matcher.arm(3)
    assert matcher.route() == LEAVES
    matcher.bench.control(disarm=1)
    assert matcher.route() == STAYS
    matcher.arm(1, first=2)
    assert matcher.route() == LEAVES, "a disarm keeps ranges and descriptors"


def test_each_context_has_a_window_of_its_own(backend):
    matcher = Matcher(backend)
    matcher.set_range(0)
    matcher.set_range(1, LIMIT, LIMIT + 0x1000, context=OTHER)
    for number in range(8):
        matcher.set_chunk(number, context=JOB if number < 5 else OTHER)
    other = {"context": OTHER, "line": LIMIT}
    matcher.arm(2, first=3)
    assert matcher.route()["descriptor"] == 3
    assert matcher.route(**other)["matched"] == 0, "the window of another context"
    matcher.arm(3, first=4, context=OTHER)  # descriptor 4 lies in both windows, but has context JOB
    assert (matcher.route()["descriptor"], matcher.route(**other)["descriptor"]) == (3, 5)
    matcher.arm(1, first=4)
    assert (matcher.route()["descriptor"], matcher.route(**other)["descriptor"]) == (4, 5)
    matcher.arm(5, first=0, context=OTHER)
    assert matcher.route(**other)["matched"] == 0, "descriptors of another context"
    matcher.arm(1, first=7, context=OTHER)
    assert matcher.route(**other)["descriptor"] == 7, "the last descriptor"
    matcher.arm(8)
    assert matcher.route()["descriptor"] == 0


@pytest.mark.parametrize("context", [2, 3, 9, 15])
def test_a_context_that_does_not_exist_has_no_window(backend, context):
    matcher = Matcher(backend).set_up(context=context)
    matcher.arm(context=OTHER)
    matcher.set_range(1, context=context)
    assert matcher.route(context=context) == STAYS


@pytest.mark.own_size
@pytest.mark.parametrize("sizes", [(1, 1, 4), (3, 5, 12), (4, 16, 64)], ids=str)
def test_every_size(backend, sizes):
    """The last range, descriptor and context match; those beyond do not exist, nor do they stand for others."""
    ranges, contexts, descriptors = sizes
    matcher = Matcher(backend, ranges=ranges, contexts=contexts, descriptors=descriptors)
    last = {"context": contexts - 1}
    matcher.set_chunk(descriptors - 1, **last)
    matcher.set_range(ranges - 1, **last)
    matcher.arm(1, first=descriptors - 1, **last)
    for number in range(ranges, 4):
        matcher.set_range(number, BASE - 1, **last)
    if descriptors < 64:
        matcher.set_chunk(descriptors, ChunkKind.DMA, **last)
    expected = LEAVES | {"descriptor": descriptors - 1, "peer": 99 + descriptors}
    assert matcher.route(**last) == expected
    for context in {(contexts - 1) ^ bit for bit in (1, 2, 4, 8)}:
        assert matcher.route(context=context)["matched"] == 0
    matcher.set_range(ranges - 1, valid=0)
    assert matcher.route(**last) == STAYS


def test_abort_ends_window_and_ranges_of_its_context_only(backend):
    matcher = Matcher(backend).set_up()
    matcher.set_range(0, LIMIT, LIMIT + 0x1000, context=OTHER)
    matcher.set_chunk(3, ChunkKind.DMA, context=OTHER)
    matcher.arm(1, first=3, context=OTHER)
    matcher.abort()
    assert matcher.route() == STAYS
    assert matcher.route(context=OTHER, line=LIMIT)["descriptor"] == 3
    matcher.arm()
    assert matcher.route() == STAYS, "no range"
    matcher.set_range(1)
    assert matcher.route() == LEAVES
    matcher.abort()
    matcher.set_range(1)
    assert matcher.route() == STAYS, "no window"
    matcher.arm()
    assert matcher.route() == LEAVES


def test_unknown_addresses_change_nothing(backend):
    matcher = Matcher(backend).set_up()
    before = matcher.bench.backend.state()
    for number in (2, 3):
        matcher.set_range(number, 0)
    for number in (8, 10, 16, 63):
        matcher.set_chunk(number, ChunkKind.DMA)
    unknown = (regs.RANGE + 24, matcher.word(2, 6), matcher.word(2, 7), regs.PROFILE, regs.ARBITER, regs.IRQ_ENABLE)
    for address in unknown:
        matcher.bench.write(address, 0xFFFF)
    assert matcher.bench.backend.state() == before
    assert matcher.route() == LEAVES


@pytest.mark.parametrize(("register", "bit"), [
    ("base_1", 3), ("limit_1", 20), ("attributes_1", 0), ("attributes_1", 1), ("window_1", 0), ("window_1", 7),
    ("chunk_2_0", 0), ("chunk_2_0", 60), ("chunk_2_1", 2), ("chunk_2_3", 38),
])  # fmt: skip
def test_what_a_damaged_register_describes_matches_nothing(register, bit):
    matcher = Matcher("amaranth", protect=True).set_up()
    bench = matcher.bench
    assert matcher.route() == LEAVES and bench["uncorrectable"] == 0
    invert(bench.backend, register, bit)
    assert not bench["idle"]
    assert matcher.route() == STAYS
    assert (bench["uncorrectable"], bench["corrected"], bench["idle"]) == (1, 0, 1)
    matcher.set_up()
    bench.control(disarm=1)
    matcher.arm()
    assert matcher.route() == LEAVES and bench["uncorrectable"] == 0


def test_reset_in_any_state(backend):
    matcher = Matcher(backend)
    bench = matcher.bench
    fresh = bench.backend.state()
    matcher.set_up()
    bench.accept["route"] = 0
    matcher.send(*[{"line": BASE, "context": JOB}] * 4)
    bench.step(6)
    bench.reset()
    assert (bench["store.ready"], bench.item("route"), bench.backend.state()) == (1, None, fresh)
    bench.accept["route"] = 1
    assert matcher.route() == STAYS
    matcher.arm()
    assert matcher.route() == STAYS, "no range, no descriptor"


def test_reset_clears_random_state():
    bench = Matcher("golden").bench
    fresh = bench.backend.state()
    memory = bench.backend.memory
    memory[3:] = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, len(memory) - 3)  # before that: sizes
    bench.reset()
    assert bench.backend.state() == fresh
