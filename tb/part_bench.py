"""The testbench of a part with a golden model: random traffic in episodes, each from reset, everything checked."""

import random
from typing import Any

from checks import Scoreboard, StreamRules
from bins import Bins, Coverage, stream_bins
from job import Job
from model import Model
from part_stimulus import STIMULI
from player import Player
from t3hdl.verilog import PARTS
from t3sim.golden.hardware import golden_hardware
from words import Ports, Trace

EPISODE = 4000
"""Cycles from one reset to the next."""


def transactions(trace: Trace, streams: list[str]) -> int:
    """Items that moved, pulses that were given in, and bus requests that were taken."""
    count = sum(int(trace.moved(stream).sum()) for stream in streams)
    pulses = [port for port in trace.ports.words.inputs if port.endswith("_valid")]
    return count + sum(int(trace.is_set(port).sum()) for port in pulses)


async def random_traffic(dut: Any, bins: Bins) -> None:
    """Play random traffic into ``dut`` and the golden model of the same part; count ``bins`` and those of streams."""
    job = Job.here()
    hardware = golden_hardware(job.config)
    part = hardware.parts()[job.part]
    ports = Ports.of(PARTS[job.part](job.config).signature)
    model, rules, scoreboard = Model(part), StreamRules(ports), Scoreboard(ports)
    coverage = Coverage({**bins, **stream_bins(rules.streams)})
    player = Player(dut, ports.words.output_words)
    await player.start()
    for start in range(0, job.cycles, EPISODE):
        model.reset()
        stimulus = STIMULI[job.part](model, job.config, random.Random(f"{job.part} {job.seed} {start}"))
        inputs, expected = model.run(stimulus, min(EPISODE, job.cycles - start))
        await player.reset()
        outputs, unknown = await player.play(inputs)
        trace = Trace(ports, inputs, outputs)
        scoreboard.check(trace, expected, unknown, start)
        rules.check(trace, start)
        coverage.sample(trace, transactions(trace, rules.streams))
    coverage.save(job.report_path(), part=job.part, simulator=job.simulator, seed=job.seed)
    hardware.close()
