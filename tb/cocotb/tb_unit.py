"""Testbench of t3_unit: jobs in all contexts through AXI4-Lite, with every stream under back-pressure."""

import random
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from t3hdl.config import T3Config
from t3hdl.export.verilog import PARTS
from t3hdl.interface.layouts import BURST_LINES

from tb.bench_run import BenchRun
from tb.cocotb.axi_traffic import plain_master_of
from tb.cocotb.player import PERIOD_NS
from tb.cocotb.time_limit import bench_test
from tb.cocotb.unit.host import Bus, Host
from tb.cocotb.unit.machine import Machine
from tb.cocotb.unit.operator import Operator
from tb.cocotb.watch import Watch
from tb.coverage_bins import MEDIUM, Coverage, CoverageBins, Cycles, rises, stream_bins
from tb.words import Ports, Trace, all_streams

EVENTS = (
    "jobs", "aborts", "abort with traffic", "arm with late traffic", "quiesce", "watchdog", "lock", "locked",
    "waits for a slot", "blocks wait", "blocks fired by tiles", "blocks fired by chunk",
    "debug read of a valid entry", "control refused while busy",
    "interrupt: complete", "interrupt: watchdog", "interrupt: violation", "interrupt: stale_update",
    "interrupt: aborted", "interrupt: locked_write",
)  # fmt: skip
"""What the host counts."""
RARE = dict.fromkeys(
    (
        "host: abort with traffic",
        "host: arm with late traffic",
        "host: debug read of a valid entry",
        "host: interrupt: aborted",
        "host: blocks fired by tiles",
        "host: control refused while busy",
        "host: quiesce",
        "quiet",
    ),
    MEDIUM,
)
"""Cycles from which these bins are expected (see tb/coverage_bins.py)."""


def bins(config: T3Config) -> CoverageBins:
    """What can happen at the unit's ports."""
    slices = range(config.slices)

    def same_tile(trace: Trace) -> Cycles:
        """In one cycle a local update leaves one slice, and a remote update of the same tile another."""
        tiles, local, remote = [], [], []
        for number in slices:
            stream = f"dram.{number}"
            moved = trace.moved(stream) & trace.is_set(f"{stream}.payload", "tagged")
            tiles.append(np.stack([trace.get(f"{stream}.payload", name) for name in ("context", "row", "col", "wf")]))
            local.append(moved & ~trace.is_set(f"{stream}.payload", "stream"))
            remote.append(moved & trace.is_set(f"{stream}.payload", "stream"))
        pairs = [local[i] & remote[j] & (tiles[i] == tiles[j]).all(axis=0) for i in slices for j in slices if i != j]
        return np.logical_or.reduce(pairs)

    def improper(trace: Trace, pulse: str, number: int) -> Cycles:
        """A burst comes back that leaves its aligned block."""
        line, length = (trace.get(f"{pulse}.{number}", field) for field in ("line", "length"))
        return trace.is_set(f"{pulse}_valid.{number}") & (line % BURST_LINES + length >= BURST_LINES)

    return {
        "threshold reached beside a remote update": same_tile,
        "all slices at once": lambda t: np.logical_and.reduce([t.moved(f"dram.{s}") for s in slices]),
        "interrupt": lambda t: rises(t.is_set("interrupt")),
        "quiet": lambda t: rises(t.is_set("quiet")),
        **{
            f"update of {lines} lines": lambda t, n=lines: np.logical_or.reduce(
                [
                    t.moved(f"dram.{s}")
                    & t.is_set(f"dram.{s}.payload", "tagged")
                    & (t.get(f"dram.{s}.payload", "length") == n - 1)
                    for s in slices
                ]
            )
            for lines in range(1, BURST_LINES + 1)
        },
        "burst over the end of its block": lambda t: np.logical_or.reduce(
            [improper(t, f"{side}_refused", s) for s in slices for side in ("compute", "comm")]
        ),
        "every entry in use": lambda t: t.get("entries") == config.tracker_sets * config.tracker_ways,
        "idle": lambda t: t.is_set("idle"),
        "remote store": lambda t: t.moved("route.0") & t.is_set("route.0.payload", "remote"),
        **{
            name: lambda t, w=why: np.logical_or.reduce(
                [t.is_set(f"{side}_{w}_valid.{s}") for s in slices for side in ("compute", "comm")]
            )
            for name, why in (("context violation", "refused"), ("stale update", "stale"))
        },
    }


@bench_test
async def traffic(dut: Any) -> None:
    """Jobs of random geometry until the cycles are over; then everything has come to an end."""
    job = BenchRun.here()
    rng = random.Random(f"unit {job.seed}")
    ports = Ports.of(PARTS["unit"](job.config).signature)
    streams = all_streams(ports)
    names = [stream.name for stream in streams if not stream.name.startswith("axi_")]
    coverage = Coverage({**bins(job.config), **stream_bins(names, pulsed=("command",))}, RARE)
    cocotb.start_soon(Clock(dut.clk, PERIOD_NS, "ns").start())
    dut.in_words.value = 0
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    master = plain_master_of(dut, "axi", dut.clk, dut.rst)
    dut.rst.value = 0
    machine = Machine(ports, job.config, rng)
    watch = Watch(dut, dut.clk, ports, streams, coverage)
    watching = cocotb.start_soon(watch.run(machine))
    host = Host(Bus(master), machine, job.config, dut.clk, rng)
    operator = Operator(host, rng)
    await host.start()
    tasks = [cocotb.start_soon(host.work(context)) for context in range(job.config.contexts)]
    tasks.append(cocotb.start_soon(operator.work()))
    while watch.cycle < job.cycles:
        await ClockCycles(dut.clk, 200)
    host.stopping = True
    for task in tasks:
        await task
    await operator.finish(machine.tracked, machine.refused)
    watching.cancel()
    watch.check()
    coverage.hits |= {f"host: {event}": host.events[event] for event in EVENTS}
    coverage.save(job.report_path(), part=job.part, simulator=job.simulator, seed=job.seed)
