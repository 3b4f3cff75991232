"""Testbench of t3_leaf: the first level of the token network."""

from typing import Any

import cocotb
from bins import Bins
from node_bins import RARE, node_bins
from part_bench import random_traffic
from t3hdl.config import T3Config


def bins(config: T3Config) -> Bins:
    """What can happen in the first level of the token network."""
    return node_bins(config.node_inputs, 1)


@cocotb.test()
async def traffic(dut: Any) -> None:
    """Random tokens of few tiles."""
    await random_traffic(dut, bins, RARE)
