"""Runs the testbenches: ``python -m tb.bench --help``, or ``make tb``.

Per part and simulator the generated Verilog is built once; then each seed is one simulator process. Prints a table of
transactions and coverage, writes it as JSON, and exits with status 1 if a run failed or if a bin stayed empty that runs
of this length should hit.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
from opent3.options import usable_cores
from t3hdl.config import PRESETS, preset
from t3sim.hardware.golden.backend import golden_hardware

from tb.bench_run import BenchRun
from tb.report import Report
from tb.simulators import SIMULATORS, SimulatorError, Source, build, require, simulate

BENCHES = tuple(sorted(path.stem.removeprefix("tb_") for path in Path(__file__).parent.glob("cocotb/tb_*.py")))
"""Parts that have a testbench."""


def several(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    """A comma-separated list, each element one of the choices in the default."""
    legal = str(parameter.default).split(",")
    names = value.split(",")
    for name in names:
        if name not in legal:
            raise click.BadParameter(f"{name!r} is not among {', '.join(legal)}")
    return names


@click.command(help="Random testbenches of the generated Verilog, under Verilator and Icarus.")
@click.option("--parts", default=",".join(BENCHES), callback=several, show_default=True)
@click.option("--simulators", default=",".join(SIMULATORS), callback=several, show_default=True)
@click.option("--seeds", default=1, show_default=True, type=click.IntRange(1), help="Number of seeds: 1, 2, ...")
@click.option(
    "--cycles", default=4000, show_default=True, type=click.IntRange(1), help="Cycles per part, simulator and seed."
)
@click.option("--preset", "size", default="small", type=click.Choice(list(PRESETS)), show_default=True)
@click.option("--out", default="build/tb", type=click.Path(path_type=Path), show_default=True)
@click.option(
    "--jobs",
    default=usable_cores,
    show_default="usable cores",
    type=click.IntRange(1),
    help="Processes at the same time.",
)
@click.option(
    "--bins/--no-bins",
    default=True,
    help="Whether an empty bin is a failure, if runs are long enough.",
)
def main(
    parts: list[str], simulators: list[str], seeds: int, cycles: int, size: str, out: Path, jobs: int, bins: bool
) -> None:
    """Build, run, report."""
    out = out.absolute()
    try:
        for simulator in simulators:
            require(simulator)
    except SimulatorError as error:
        raise click.ClickException(str(error)) from error
    config = preset(size)
    sources = {part: Source(part, config) for part in parts}  # not in threads: Amaranth numbers its objects
    golden_hardware(config).close()  # compiled once, here, and not by every simulator process
    report = Report(out / "coverage.json", size, seeds, cycles)
    with ThreadPoolExecutor(jobs) as pool:
        pairs = [(part, simulator) for part in parts for simulator in simulators]
        built = dict(zip(pairs, pool.map(lambda pair: _try(build, sources[pair[0]], pair[1], out), pairs), strict=True))
        tasks = []
        for (part, simulator), folder in built.items():
            if isinstance(folder, SimulatorError):
                report.fail(str(folder))
                continue
            for seed in range(1, seeds + 1):
                place = out / "runs" / f"{part}-{simulator}-{seed}"
                job = BenchRun(
                    part=part,
                    simulator=simulator,
                    seed=seed,
                    cycles=cycles,
                    preset=size,
                    report=str(place / "coverage.json"),
                )
                tasks.append((job, folder, place))
        for (job, *_), failure in zip(tasks, pool.map(lambda task: _try(simulate, *task), tasks), strict=True):
            report.add(job) if failure is None else report.fail(str(failure))
    report.print()
    report.write()
    sys.exit(report.failed(bins))


def _try(action, *arguments):
    """The result of the action, or the SimulatorError that it raises."""
    try:
        return action(*arguments)
    except SimulatorError as error:
        return error


if __name__ == "__main__":
    main()
