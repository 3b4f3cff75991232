"""Testbench of t3_root."""

import cocotb
from bins import Bins
from part_bench import random_traffic

BINS: Bins = {}


@cocotb.test()
async def traffic(dut):
    await random_traffic(dut, BINS)
