"""The testbench of a part with a golden model: random traffic in episodes, each from reset, everything checked."""

from collections.abc import Callable, Mapping
from typing import Any

from t3hdl.config import T3Config
from t3hdl.export.verilog import PARTS
from t3sim.hardware.golden.backend import golden_hardware

from tb.bench_run import BenchRun
from tb.checks import OutputChecks, check_streams
from tb.cocotb.player import Player
from tb.coverage_bins import Coverage, CoverageBins, stream_bins
from tb.episodes import episodes
from tb.words import Ports, Stream, Trace, all_streams


def transactions(trace: Trace, streams: list[Stream]) -> int:
    """Items that moved, and pulses that were given in."""
    count = sum(int((trace.is_set(stream.valid) & trace.is_set(stream.ready)).sum()) for stream in streams)
    pulses = [port for port in trace.ports.words.inputs if port.endswith("_valid") and not port.startswith("bus_")]
    return count + sum(int(trace.is_set(port).sum()) for port in pulses)


async def random_traffic(
    dut: Any, bins: Callable[[T3Config], CoverageBins], rare: Mapping[str, int], pulsed: tuple[str, ...] = ()
) -> None:
    """Play random traffic into ``dut`` and the golden model of the same part; count ``bins`` and those of streams.

    ``rare`` as for :class:`~tb.coverage_bins.Coverage`. Streams in ``pulsed`` never move back to back.
    """
    job = BenchRun.here()
    hardware = golden_hardware(job.config)
    ports = Ports.of(PARTS[job.part](job.config).signature)
    streams, checks = all_streams(ports), OutputChecks(ports)
    names = [stream.name for stream in streams if stream.name != "bus"]
    coverage = Coverage({**bins(job.config), **stream_bins(names, pulsed)}, rare)
    player = Player(dut, ports.words.output_words)
    await player.start()
    for start, inputs, expected in episodes(hardware, job.part, job.seed, job.cycles):
        await player.reset()
        outputs, unknown = await player.play(inputs)
        trace = Trace(ports, inputs, outputs)
        checks.check_known(trace, unknown, start)
        checks.check_equal(trace, expected, start)
        check_streams(trace, streams, start)
        coverage.sample(trace, transactions(trace, streams))
    coverage.save(job.report_path(), part=job.part, simulator=job.simulator, seed=job.seed)
    hardware.close()
