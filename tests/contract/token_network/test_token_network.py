"""The whole token network, in Amaranth's simulator: latency, throughput, no count lost between its nodes."""

import pytest
from t3hdl.config import preset
from t3hdl.token_network.network import TokenNetwork

from tests.contract.bench import bench_around
from tests.contract.token_network.scene import run_random_traffic, token

FOUR_BANKS = {"tracker_banks": 4, "tracker_sets": 16, "row_index_bits": 2, "blocks": 64}


@pytest.mark.parametrize("sizes", [{}, {"leaf_outputs": 1}, {"node_inputs": 4, "tracker_banks": 1}], ids=str)
def test_latency_and_full_rate(sizes):
    network = TokenNetwork(config=preset("small", **sizes))
    bench = bench_around(network)
    bench.send["token_in.0"].extend(token(row=k, col=k ^ k % 2, wf=k % 2) for k in range(20))
    bench.step(30)
    assert [cycle for cycle, _ in bench.sent["token_in.0"]] == list(range(20))
    assert bench.got["token_out.0"] == [(cycle + network.latency, item) for cycle, item in bench.sent["token_in.0"]]


@pytest.mark.parametrize(
    ("seed", "sizes"),
    [
        (102, {}),
        (104, {"leaf_outputs": 2, **FOUR_BANKS}),
        (105, {"leaf_outputs": 4, **FOUR_BANKS}),
        pytest.param(103, {"slices": 8, "tracker_banks": 1}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_no_count_is_lost_or_doubled_under_random_back_pressure(seed, sizes):
    bench = bench_around(TokenNetwork(config=preset("small", **sizes)), seed=seed)
    run_random_traffic(bench)
    assert bench.idle_checks > 50
