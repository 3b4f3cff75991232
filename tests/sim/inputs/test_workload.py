"""Workloads: the paper's tables, the split of K, and refusals that name the smallest legal value."""

import pytest
from t3sim.inputs.workload import INNER_MULTIPLE, MODELS, custom_workload, model_workload

SIZES = {
    ("mega-gpt-2", "op", 8): (16384, 3072, 3072, 384),
    ("t-nlg", "fc2", 8): (8192, 4256, 17024, 2128),
    ("t-nlg", "ip", 16): (8192, 4256, 12768, 798),
    ("gpt-3", "fc1", 32): (4096, 12288, 49152, 1536),
    ("palm", "op", 32): (4096, 18432, 18432, 576),
    ("mt-nlg", "ip", 32): (4096, 20480, 61440, 1920),
}


@pytest.mark.parametrize(("name", "sizes"), SIZES.items())
def test_sizes_are_the_papers(name, sizes):
    workload = model_workload(*name)
    assert (workload.m, workload.n, workload.k, workload.k_of(0)) == sizes
    assert workload.k_range == (sizes[3], sizes[3])


def test_every_model_has_every_sublayer():
    assert list(MODELS) == ["mega-gpt-2", "t-nlg", "gpt-3", "palm", "mt-nlg", "1t", "10t"]
    for model in MODELS:
        for sublayer, multiple in INNER_MULTIPLE.items():
            workload = model_workload(model, sublayer, 8)
            assert workload.k == multiple * workload.n


@pytest.mark.parametrize(("k", "tp"), [(17, 4), (16, 4), (19, 4), (64, 64), (101, 7)])
def test_k_is_split_without_remainder(k, tp):
    workload = custom_workload(512, 512, k, tp)
    parts = [workload.k_of(gpu) for gpu in range(tp)]
    assert sum(parts) == k
    assert (min(parts), max(parts)) == workload.k_range == (k // tp, -(-k // tp))
    assert parts == sorted(parts, reverse=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("t-nlgg", "fc2", 8), r"model must be one of mega-gpt-2, .*not 't-nlgg'; did you mean 't-nlg'\?"),
        (("T-NLG", "fc2", 8), r"not 'T-NLG'; did you mean 't-nlg'\?"),
        (("xyz", "fc2", 8), r"model must be one of .*, not 'xyz'$"),
        (("t-nlg", "fc3", 8), r"sublayer must be one of op, fc2, fc1, ip, not 'fc3'; did you mean"),
        (("t-nlg", "fc2", 1), r"tp must be in 2 to 64 GPUs, not 1"),
        (("t-nlg", "fc2", 65), r"tp must be in 2 to 64 GPUs, not 65"),
    ],
)
def test_bad_names_and_degrees_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        model_workload(*arguments)


def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match="n must be in 1 to 4194304 elements, not 0"):
        custom_workload(64, 0, 64, 4)
    with pytest.raises(ValueError, match="the smallest legal k is 8, not 7"):
        custom_workload(64, 64, 7, 8)


@pytest.mark.parametrize(("m", "n", "tp"), [(128, 128, 2), (100, 300, 8), (129, 128, 8), (1, 1, 64)])
def test_the_smallest_legal_output_is_named(m, n, tp):
    workload = custom_workload(m, n, 64, tp)
    with pytest.raises(ValueError, match=f"for each of {tp} GPUs") as caught:
        workload.check_tiles([(128, 128)])
    least = int(str(caught.value).rsplit(" ", 1)[1])
    custom_workload(m, least, 64, tp).check_tiles([(128, 128)])
    with pytest.raises(ValueError, match="smallest legal"):
        custom_workload(m, least - 1, 64, tp).check_tiles([(128, 128)])


def test_one_tile_of_the_menu_that_is_small_enough_is_enough():
    menu = [(128, 128), (64, 128), (64, 64)]
    custom_workload(64, 193, 64, 4).check_tiles(menu)
    with pytest.raises(ValueError, match=r"one 64 x 64 tile .* 64 x 192 has 3: .* n for m = 64 is 193$"):
        custom_workload(64, 192, 64, 4).check_tiles(menu)
