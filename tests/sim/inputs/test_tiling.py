"""The choice of the workgroup tile: a rule of shape and machine alone."""

from itertools import permutations

import pytest
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.tiling import choose_tiling, predict
from t3sim.inputs.workload import INNER_MULTIPLE, custom_workload, model_workload
from t3sim.run.plan import RunPlan
from t3sim.run.request import RunRequest

PAPER = load_machine("paper")
FC2 = model_workload("t-nlg", "fc2", 8)
"""8192 x 4256, 2128 columns of the inner dimension on each GPU."""

SHAPE = (FC2.m, FC2.n, 2128)


def chosen(workload, **settings):
    """Rows and columns of the tile that the paper's machine with ``settings`` chooses."""
    overrides = {f"gpu.{key}": value for key, value in settings.items()}
    tiling = choose_tiling(workload, load_machine("paper", overrides))
    return tiling.rows, tiling.cols


def test_prediction_is_the_documented_sum():
    tiling = predict(SHAPE, PAPER, (128, 128))
    assert (tiling.workgroups, tiling.waves) == (64 * 34, 28)
    matrix = 2 * 128 * 128 * 32 / 1024  # clocks of a slab
    load = 2 * (128 + 128) * 32 / 64
    latency = (50 + 100 + 14 + 14 + 2 + 50) * 1.4  # fabric, cache, activate, read, burst, fabric
    store = 128 * 256 / 64
    wave = 67 * max(matrix, load, latency + load) + latency + load + store
    assert tiling.predicted_ns == pytest.approx(28 * wave / 1.4)


def test_a_slab_takes_what_limits_it():
    slow_path = load_machine("paper", {"llc.bytes_per_clock_per_cu": 8})
    waves, slabs = 28, 67
    assert predict(SHAPE, slow_path, (128, 128)).predicted_ns == pytest.approx(
        waves * (slabs * (322 + 2048) + 322 + 2048 + 512) / 1.4
    )
    two_ahead = load_machine("paper", {"llc.bytes_per_clock_per_cu": 8, "gpu.prefetch_slabs": 2})
    assert predict(SHAPE, two_ahead, (128, 128)).predicted_ns == pytest.approx(
        waves * (slabs * 2048 + 322 + 2048 + 512) / 1.4
    )
    none_ahead = load_machine("paper", {"gpu.prefetch_slabs": 0})
    assert predict(SHAPE, none_ahead, (128, 128)).predicted_ns == pytest.approx(
        waves * (slabs * (322 + 256 + 1024) + 322 + 256 + 512) / 1.4
    )


def test_workgroups_of_a_cu_share_its_matrix_unit():
    two = load_machine("paper", {"gpu.workgroups_per_cu": 2})
    tiling = predict(SHAPE, two, (128, 128))
    assert tiling.waves == 14
    # 13 waves of 160, and 96 that are left: some CU has two of them.
    assert tiling.predicted_ns == pytest.approx(14 * (67 * 2048 + 322 + 256 + 512) / 1.4)


def test_largest_tile_near_the_fastest_is_chosen():
    times = {tile: predict(SHAPE, PAPER, tile).predicted_ns for tile in PAPER.gpu.tiles}
    assert min(times, key=times.__getitem__) == (128, 64), "the case needs a smaller tile that is somewhat faster"
    assert chosen(FC2) == (128, 128)
    assert chosen(FC2, tile_margin=0.0) == (128, 64)
    assert chosen(FC2, tiles=[[64, 64]]) == (64, 64)
    assert chosen(FC2, tiles=[[64, 128], [128, 64]], tile_margin=1.0) == (128, 64), "of equal area: more rows"


def test_an_output_of_few_tiles_gets_smaller_ones():
    # 40 tiles of 128 x 128 leave half of the CUs idle, 80 tiles of half the size take half the time.
    assert chosen(custom_workload(1024, 640, 16384, 8)) in ((128, 64), (64, 128))


def test_a_tile_with_fewer_workgroups_than_gpus_is_no_candidate():
    small = custom_workload(128, 256, 4096, 4)
    assert chosen(small, tile_margin=1.0) in ((128, 64), (64, 128))
    with pytest.raises(
        ValueError,
        match=r"at least one 64 x 64 tile for each of 16 GPUs, but 128 x 256 has 8: the "
        r"smallest legal n for m = 128 is 449$",
    ):
        choose_tiling(custom_workload(128, 256, 4096, 16), PAPER)


@pytest.mark.parametrize("sublayer", INNER_MULTIPLE)
def test_rule_depends_on_shape_and_machine_alone(sublayer):
    named = model_workload("mega-gpt-2", sublayer, 16)
    anonymous = custom_workload(named.m, named.n, named.k, named.tp)
    for menu in permutations([list(tile) for tile in PAPER.gpu.tiles]):
        assert choose_tiling(named, PAPER) == choose_tiling(anonymous, load_machine("paper", {"gpu.tiles": list(menu)}))


def test_plan_uses_the_chosen_tile():
    machine = load_machine("paper", {"gpu.tiles": [[64, 128]]})
    plan = RunPlan(RunRequest(workload=FC2, machine=machine, policy="t3"))
    assert (plan.grid.tile_rows, plan.grid.tile_cols, plan.grid.wavefront_rows) == (64, 128, 8)
    assert plan.grid.tiles == plan.request.tiling.workgroups
