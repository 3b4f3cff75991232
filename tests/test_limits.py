"""GEMMs and machines that the simulator or its hardware cannot hold: refused at once, by option, limit and way out."""

import math
from typing import Any, get_args

import annotated_types
import pytest
from system_cases import request
from t3sim.limits import check_memory
from t3sim.machine import load_machine
from t3sim.machine_models import SECTIONS
from t3sim.workload import custom_workload

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
        if field.annotation in (int, float):
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
    if key == "hardware.overrides" and value == {} or key.startswith("variation.") and value == {"value": []}:
        return  # these are legal
    with pytest.raises(ValueError, match=key.partition(".")[2]):
        load_machine("toy", {key: value})


@pytest.mark.parametrize(
    ("size", "overrides", "message"),
    [
        ((256, 200, 512, 16), {}, r"^--tp must be at most 8 on machine 'toy', not 16: .*\.overrides\.descriptors=16"),
        ((1_000_000, 32, 32, 8), {}, r"^--m must be at most 131040, not 1000000: .* numbers 4095 tiles of 32"),
        ((32, 1_000_000, 32, 8), {}, r"^--n must be at most 131040, not 1000000"),
        ((4_000_000, 4_000_000, 32, 8), {}, r"at most 1048576 workgroup tiles, but .* has 15625000000 of 32 x 32"),
        ((256, 1_048_577, 32, 8), {"gpu.tiles": [[1024, 128]]}, "--n must be at most 524160, not 1048577"),
        ((4_000_000, 32_000, 4_000_000, 2), {"gpu.tiles": [[1024, 128]]}, r"must fit into 8 TiB of addresses"),
        ((4096, 4096, 32, 2), {}, r"a chunk of this output takes 1048576 updates, .*\.chunk_count_bits to at least 21"),
    ],
)  # fmt: skip
def test_what_the_hardware_cannot_hold_is_refused_with_the_option_that_helps(size, overrides, message):
    with pytest.raises(ValueError, match=message):
        request(size, "t3", overrides)


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
    from t3sim.allocate import new_gpu
    from t3sim.hardware import open_hardware
    from t3sim.plan import Plan
    from t3sim.sizes import Sizes

    overrides = {"llc.capacity_kib": 4096, "link.latency_ns": 20000, "dma.buffer_kib": 4096, "gpu.cus": 64}
    for policy in ("t3", "sequential"):
        plan = Plan(request((256, 256, 512, 4), policy, overrides))
        hardware = open_hardware(plan.request.machine.hardware.config(), "golden")
        try:
            gpu = new_gpu(plan, 0, hardware, None)
            arrays = [getattr(gpu, name) for name in gpu.FIELDS]
            sizes = Sizes(plan, hardware.config, gpu.p[0])
        finally:
            hardware.close()
        taken = sum(array.nbytes for array in arrays)
        assert 0.8 * taken < sum(sizes.memory.values()) < 1.6 * taken
