"""Testbench of t3_leaf: the first level of the token network."""

from typing import Any

from t3hdl.config import T3Config

from tb.cocotb.part_bench import random_traffic
from tb.cocotb.time_limit import bench_test
from tb.cocotb.token_node_bins import RARE, node_bins
from tb.coverage_bins import CoverageBins


def bins(config: T3Config) -> CoverageBins:
    """What can happen in the first level of the token network."""
    return node_bins(config.node_inputs, config.roots)


@bench_test
async def traffic(dut: Any) -> None:
    """Random tokens of few tiles."""
    await random_traffic(dut, bins, RARE)
