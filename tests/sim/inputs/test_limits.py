"""GEMMs and machines that the simulator or its hardware cannot hold: refused at once, by option, limit and way out."""

import math
from typing import Any, get_args

import annotated_types
import pytest
from t3sim.inputs.limits import check_memory
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.machine.machine import SECTIONS
from t3sim.inputs.workload import custom_workload
from t3sim.run.plan import RunPlan
from t3sim.run.request import RunRequest
from t3sim.run.simulate import simulate

from tests.support.system_cases import EIGHT, request, run

KEYS = [(section, key, field) for section, model in SECTIONS.items() for key, field in model.model_fields.items()]


def limits(metadata: list[Any]) -> tuple[list[Any], list[Any]]:
    """Lower and upper bounds among pydantic's metadata of a field."""
    low = [item for item in metadata if isinstance(item, annotated_types.Ge | annotated_types.Gt)]
    high = [item for item in metadata if isinstance(item, annotated_types.Le | annotated_types.Lt)]
    return low, high


def numbers() -> list[tuple[str, list[Any]]]:
    """Keys of a machine file that hold numbers, one or several, and the metadata with their bounds."""
    found = []
    for section, key, field in KEYS:
        if field.annotation in (int, float, int | None):
            found.append((f"{section}.{key}", field.metadata))
        elif section == "variation":
            (item, _) = get_args(field.annotation)
            found.append((f"{section}.{key}", get_args(item)[1].metadata))
    return found


@pytest.mark.parametrize(("key", "metadata"), numbers(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_number_has_both_bounds_which_its_message_names(key, metadata):
    low, high = limits(metadata)
    assert low and high, f"{key} lacks a bound"
    top = getattr(high[0], "le", None) or high[0].lt
    bad = (-1, top * 2 + 1, 10**400, -(10**400), 1e308, math.inf, -math.inf, math.nan, "many", True, [], {"a": 1})
    for value in bad:
        given = [value] if key.startswith("variation.") else value
        with pytest.raises(ValueError, match=key.replace(".", r"\.")):
            load_machine("toy", {key: given})


@pytest.mark.parametrize(("key", "field"), [(f"{section}.{key}", field) for section, key, field in KEYS])
@pytest.mark.parametrize("value", ["2020-01-01", [[[]]], {}, {"value": []}, None])
def test_values_of_another_kind_are_refused_by_key(key, field, value):
    if key.startswith("variation.") and value == {"value": []}:
        return  # legal
    with pytest.raises(ValueError, match=key.partition(".")[2]):
        load_machine("toy", {key: value})


@pytest.mark.parametrize(
    ("size", "overrides", "message"),
    [
        ((256, 200, 512, 16), {}, r"^--tp must be at most 8 on machine 'toy', not 16: .*hardware\.descriptors=16"),
        ((1_000_000, 32, 32, 8), {}, r"^--m must be at most 131040, not 1000000: .* numbers 4095 tiles of 32"),
        ((32, 1_000_000, 32, 8), {}, r"^--n must be at most 131040, not 1000000"),
        ((4_000_000, 4_000_000, 32, 8), {}, r"at most 1048576 workgroup tiles, but .* has 15625000000 of 32 x 32"),
        ((256, 1_048_577, 32, 8), {"gpu.tiles": [[1024, 128]]}, "--n must be at most 524160, not 1048577"),
        ((4_000_000, 32_000, 4_000_000, 2), {"gpu.tiles": [[1024, 128]]}, r"must fit into 8 TiB of addresses"),
        (
            (4096, 4096, 32, 2),
            {"hardware.tile_marks": 8192},
            r"a chunk of this output takes 1048576 updates, .*\.chunk_count_bits to at least 21",
        ),
    ],
)
def test_what_the_hardware_cannot_hold_is_refused_with_the_option_that_helps(size, overrides, message):
    with pytest.raises(ValueError, match=message):
        request(size, "t3", overrides)


@pytest.mark.parametrize(("kib", "refused"), [(39, True), (40, False)])
def test_updates_that_come_before_their_chunk_is_live_have_room(kib, refused):
    """Seven tracked chunks of 416 lines, four live at a time: three may come early, 1,248 lines, and a burst more."""
    overrides = {"link.rx_buffer_kib": kib}
    if not refused:
        assert request(EIGHT, "t3", overrides).workload.tp == 8
        return
    message = (
        r"^updates must find their chunk live, or room to wait: 7 chunks of this output are tracked, 4 are live at a "
        r"time, and 40 KiB may arrive for the others, but link\.rx_buffer_kib is 39\. Set hardware\.chunk_window to at "
        r"least 7 and hardware\.tile_marks to at least \d+, or link\.rx_buffer_kib to at least 40$"
    )
    with pytest.raises(ValueError, match=message):
        request(EIGHT, "t3", overrides)
    assert request(EIGHT, "t3", overrides | {"hardware.chunk_window": 8}).workload.tp == 8
    assert request(EIGHT, "sequential", overrides).workload.tp == 8, "nothing is tracked"


def test_marks_of_large_chunks_leave_fewer_of_them_live():
    with pytest.raises(
        ValueError, match=r"7 chunks of this output are tracked, 2 are live .*tile_marks to at least 4096"
    ):
        request((1024, 4096, 32, 8), "t3", {"hardware.tile_marks": 1024, "hardware.chunk_window": 8})
    roomy = {"hardware.tile_marks": 4096, "hardware.chunk_window": 8, "hardware.chunk_count_bits": 17}
    assert request((1024, 4096, 32, 8), "t3", roomy).workload.tp == 8


def test_hardware_limits_do_not_bind_where_the_hardware_does_not_track():
    assert request((256, 200, 512, 16), "sequential").workload.tp == 16


@pytest.mark.parametrize("size", [0, -1, 1 << 40, 10**400])
@pytest.mark.parametrize("name", ["m", "n", "k"])
def test_sizes_have_both_bounds(name, size):
    with pytest.raises(ValueError, match=f"^--{name} must be in 1 to 4194304 elements, not"):
        custom_workload(**({"m": 64, "n": 64, "k": 64} | {name: size}), tp=2)


def test_memory_is_checked_before_it_is_taken():
    check_memory({"llc.capacity_kib": 1 << 20}, 8)
    with pytest.raises(ValueError, match=r"simulating 8 GPUs .* goes with link\.gb_s: lower that, or use --mirror"):
        check_memory({"llc.capacity_kib": 1, "link.gb_s": 1 << 50}, 8)


def test_the_estimate_of_memory_covers_what_is_allocated():
    from t3sim.hardware.backends import open_hardware
    from t3sim.run.allocate import new_gpu
    from t3sim.run.sizes import Sizes

    overrides = {"llc.capacity_kib": 4096, "link.latency_ns": 20000, "dma.buffer_kib": 4096, "gpu.cus": 64}
    for policy in ("t3", "sequential", "sequential-nmc"):
        plan = RunPlan(request((256, 256, 512, 4), policy, overrides))
        hardware = open_hardware(plan.request.machine.hardware.config(), "golden")
        try:
            gpu = new_gpu(plan, 0, hardware, None)
            arrays = [getattr(gpu, name) for name in gpu.FIELDS]
            sizes = Sizes.of(plan, 0)
        finally:
            hardware.close()
        taken = sum(array.nbytes for array in arrays)
        assert 0.8 * taken < sum(sizes.memory.values()) < 1.6 * taken


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"hbm.clock_mhz": 9}, r"hbm\.clock_mhz: .* equal to 10 \(given: 9\)"),
        ({"gpu.clock_mhz": 100_000}, r"gpu\.clock_mhz: .* equal to 10000 \(given: 100000\)"),
        ({"variation.clock_scale": [1000.0, 1.0]}, r"variation\.clock_scale\.0: .* equal to 10"),
        ({"link.header_bytes": 65536}, r"link\.header_bytes: .* equal to 4096 \(given: 65536\)"),
        ({"gpu.slab_k": 1 << 20}, r"gpu\.slab_k: .* equal to 4096 \(given: 1048576\)"),
        (
            {"hbm.clock_mhz": 10, "gpu.clock_mhz": 10_000, "variation.clock_scale": [1.0, 1.1]},
            r"0\.001 to 1000 times hbm\.clock_mhz \(10\), not 10000 x 1\.1, which is 1100 times",
        ),
        ({"hbm.clock_mhz": 10_000, "gpu.clock_mhz": 10, "variation.clock_scale": [0.1]}, r", which is 0\.0001 times"),
    ],
)
def test_clocks_and_sizes_beyond_any_machine_are_refused(overrides, message):
    with pytest.raises(ValueError, match=message):
        load_machine("toy", overrides)


@pytest.mark.parametrize(
    ("overrides", "mirror", "message"),
    [
        ({"link.retry": True}, True, r"^link\.retry needs a neighbour that answers: use --no-mirror"),
        ({"hardware.count_on": "performed"}, False, r"count_on must be 'accepted', not 'performed'$"),
    ],
)
def test_rules_of_ring_and_memory_are_checked_when_a_run_is_asked_for(overrides, mirror, message):
    with pytest.raises(ValueError, match=message):
        request((64, 64, 64, 2), "t3", overrides, mirror=mirror)


@pytest.fixture
def unbuilt(monkeypatch):
    """Neither hardware nor data may be made."""
    monkeypatch.setattr("t3sim.run.simulate.open_prepared", None)
    monkeypatch.setattr("t3sim.run.simulate.partial_products", None)
    monkeypatch.setattr("t3sim.run.plan.choose_lines", None)


WIDE = {"gpu.tiles": [[1024, 128]]}
MANY_LOADS = {"gpu.cus": 1024, "gpu.workgroups_per_cu": 8, "gpu.slab_k": 4096, "gpu.prefetch_slabs": 16}


@pytest.mark.parametrize(
    ("size", "overrides", "data_lines", "key"),
    [
        ((256, 64, 4_194_304, 2), MANY_LOADS, None, r"gpu\.cus"),
        ((4_194_304, 8192, 64, 8), WIDE, 10**30, "--data-lines"),
        ((4_194_304, 16_384, 64, 8), WIDE, 0, "--m x --n"),
    ],
)
def test_memory_is_checked_before_hardware_and_data_are_made(unbuilt, monkeypatch, size, overrides, data_lines, key):
    monkeypatch.setattr("t3sim.run.request.check_hardware", lambda *given: None)
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1 << 22}.__getitem__)  # 16 GiB
    with pytest.raises(ValueError, match=rf"of memory, and this computer has 17\.2 GB\. Most of it .* goes with {key}"):
        simulate(request(size, "t3", overrides, data_lines=data_lines))


def test_more_data_lines_than_the_output_has_mean_all():
    plan = RunPlan(request((256, 256, 512, 4), "t3", data_lines=10**30))
    assert len(plan.carried.lines) == plan.max_carried_lines == plan.grid.lines


@pytest.mark.parametrize("size", [(256, 200, 512, 4), (2048, 2000, 512, 8)])
@pytest.mark.parametrize("data_lines", [None, 0, 1, 100, 3199, 3200])
def test_the_number_of_data_lines_is_known_before_they_are_chosen(size, data_lines):
    m, n, k, tp = size
    machine = load_machine("toy", {"hardware.chunk_window": 8})
    plan = RunPlan(
        RunRequest(workload=custom_workload(m, n, k, tp), machine=machine, policy="t3", data_lines=data_lines)
    )
    assert len(plan.carried.lines) <= plan.max_carried_lines <= plan.grid.lines
    assert data_lines is None or plan.max_carried_lines <= data_lines + 4 * tp * (data_lines > 0)


@pytest.mark.long
def test_a_link_that_waits_for_seconds_of_simulated_time():
    """Stores wait for room in a small egress buffer; nobody looks at them before there is some."""
    small = {"link.egress_buffer_kib": 1, "link.rx_buffer_kib": 1, "link.gb_s": 0.001, "link.header_bytes": 4096}
    clocks = {"hbm.clock_mhz": 10, "gpu.clock_mhz": 10_000}
    for overrides in (small, small | clocks):
        result = run((256, 64, 64, 2), "t3", overrides)
        assert result.record.data_check.mismatches == 0 and False not in result.record.identities.values()
        assert result.record.time_ns.total > 1e9
