"""The command line ``t3``. An expected error is one message on stderr and exit code 2; Ctrl-C is exit code 130."""

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from t3hdl.config import PRESETS

from t3sim import __version__
from t3sim.common.cache import BuildError
from t3sim.common.output import output_folder, write_atomically
from t3sim.common.user_input import one_line
from t3sim.inputs.machine.files import hardware_with, load_machine, parse_settings, preset_names
from t3sim.inputs.workload import INNER_MULTIPLE, MAX_TP, MODELS, Workload, custom_workload, model_workload
from t3sim.run.request import BACKENDS, COMPARED, POLICIES, Policy, RunRequest, SimulationError
from t3sim.run.result import Result, json_text

from .console import plain_console, progress, step_progress
from .errors import OUT_FOLDER, Failure, Interrupted, Mismatch, refuse_given
from .faults import faults
from .fpga import fpga
from .model import model
from .prove import prove
from .report import report
from .reproduce import reproduce, say_where
from .sweep import sweep
from .tables import bench_tables, result_table, tiling_text
from .validate import validate


class _Commands(click.Group):
    """Turns expected errors of any command into one message."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted("interrupted; no output was written") from error
        except (ValueError, BuildError, SimulationError, MemoryError, OSError) as error:
            if ctx.params["traceback"] or (isinstance(error, OSError) and error.errno == errno.EPIPE):
                raise
            raise Failure(_message(error)) from error


def _message(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "out of memory: use --machine toy, --mirror, or a smaller GEMM"
    if isinstance(error, OSError) and error.strerror:
        if error.errno == errno.ENOSPC:
            return f"no space left on the disk of {error.filename or 'the output'}: free some, or choose another --out"
        return one_line(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    if isinstance(error, BuildError):  # may hold what a compiler said
        return str(error)
    return one_line(str(error))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="t3")
@click.option("--traceback", is_flag=True, help="On an error, show where in the program it came from.")
def main(traceback: bool) -> None:
    """T3 as open hardware: co-simulate it, emit it as Verilog, check it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: programs that we started end, too


def _simulation_options(command: Callable) -> Callable:
    """The options that `run` and `compare` share."""
    options = (
        click.option("--model", help=f"Model: {', '.join(MODELS)}. [default: t-nlg]"),
        click.option("--sublayer", help=f"Sublayer: {', '.join(INNER_MULTIPLE)}. [default: fc2]"),
        click.option("--tp", type=int, default=8,
                     help=f"Tensor-parallel GPUs, 2 to {MAX_TP}; machine toy has T3 hardware for 8."),
        click.option("--m", type=int, help="Rows of a GEMM of your own (tokens); with --n and --k, without --model."),
        click.option("--n", type=int, help="Columns of its output."),
        click.option("--k", type=int, help="Its whole inner dimension, which is split over the GPUs."),
        click.option("--machine", default="paper", help=f"Machine: {', '.join(preset_names())}, or a TOML file."),
        click.option("--set", "settings", multiple=True, metavar="SECTION.KEY=VALUE", help="Change one machine value."),
        click.option("--hardware", default="rtl", help=f"T3 hardware: {' or '.join(BACKENDS)}."),
        click.option("--hardware-preset", help="Hardware configuration, instead of the machine's."),
        click.option("--mirror/--no-mirror", default=None,
                     help="Simulate one GPU and reflect its traffic, as the paper did. [default: no; in bench: yes]"),
        click.option("--threads", type=int, default=lambda: len(os.sched_getaffinity(0)), show_default="usable cores",
                     help="Threads; the results do not depend on it."),
        click.option("--seed", type=int, default=0, help="Seed of data and samples."),
        click.option("--data-lines", type=int, help="Lines that carry data. [default: all, or a sample if large]"),
        click.option("--out", "-o", type=OUT_FOLDER,
                     help="Folder for results; none are written without it."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def _request(policy: Policy, options: dict[str, Any]) -> RunRequest:
    """The run that the command line describes. Raises ValueError for what it may not be."""
    settings = parse_settings(options["settings"])
    if options["hardware_preset"] is not None:
        if "hardware.preset" in settings:
            raise ValueError("give either --hardware-preset or --set hardware.preset, not both")
        settings["hardware.preset"] = options["hardware_preset"]
    passed = {name: options[name] for name in ("hardware", "threads", "seed", "data_lines")}
    return RunRequest(
        workload=_workload(options),
        machine=load_machine(options["machine"], settings),
        policy=policy,
        mirror=bool(options["mirror"]),
        **passed,
    )


def _workload(options: dict[str, Any]) -> Workload:
    sizes = {name: options[name] for name in ("m", "n", "k")}
    if all(size is None for size in sizes.values()):
        return model_workload(options["model"] or "t-nlg", options["sublayer"] or "fc2", options["tp"])
    missing = [f"--{name}" for name, size in sizes.items() if size is None]
    if missing:
        raise ValueError(f"a GEMM of your own needs --m, --n and --k; missing: {', '.join(missing)}")
    if options["model"] or options["sublayer"]:
        raise ValueError("give either --model and --sublayer, or --m, --n and --k, not both")
    return custom_workload(tp=options["tp"], **sizes)


@main.command()
@_simulation_options
@click.option("--policy", default="t3-mca", help=f"Policy: {', '.join(POLICIES)}.")
def run(policy: Policy, **options: Any) -> None:
    """Co-simulate one policy on one sublayer."""
    from t3sim.run import policies as runs  # here and below, because it takes seconds to import

    request = _request(policy, options)
    with output_folder(options["out"]) as folder:
        result = runs.run(request, _watch)
        if folder is not None:
            runs.write_run(request, result, folder)
    _show(request, [result.record], options["out"])


@main.command()
@_simulation_options
@click.option("--policies", default=",".join(COMPARED), help=f"Of {', '.join(POLICIES)}; separated by commas.")
def compare(policies: str, **options: Any) -> None:
    """Co-simulate several policies on one sublayer and put them side by side."""
    from t3sim.run import policies as runs

    chosen: list[Any] = policies.split(",")
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"--policies must name each policy once, not {policies!r}")
    requests = [_request(policy, options) for policy in chosen]
    with output_folder(options["out"]) as folder:
        results = runs.run_policies(requests[0], chosen, _watch)
        if folder is not None:
            runs.write_comparison(requests[0], results, folder)
    _show(requests[0], [result.record for result in results.values()], options["out"])


def _watch(label: str) -> Any:
    return progress(Console(stderr=True), label)


def _show(request: RunRequest, records: list[Result], out: Path | None) -> None:
    """Prints the table; then fails (exit code 1) if a result does not add up."""
    from t3sim.run import policies as runs

    console = plain_console()
    machine, config = request.machine, request.machine.hardware.preset
    console.print(f"{request.workload.title} on machine {machine.name}, {request.hardware} hardware ({config})")
    console.print(tiling_text(records[0].gemm))
    console.print(result_table(records, runs.speedups(records)))
    say_where(out)
    wrong = [text for record in records for text in runs.failures(record)]
    if wrong:
        raise Mismatch("; ".join(wrong))


QUICK = {"machine": "toy", "m": 256, "n": 200, "k": 512, "tp": 4}
"""What `bench --quick` measures."""


@main.command()
@_simulation_options
@click.option("--quick", is_flag=True, help="A toy machine and GEMM, for a fast look.")
def bench(quick: bool, **options: Any) -> None:
    """Hold the speed of the co-simulation against its targets, in one workload (t3-mca, one thread).

    It runs in mirror mode unless --no-mirror is given. A target that is missed does not change the exit code.
    """
    from t3sim.validation import bench as benches

    if options["mirror"] is None:
        options["mirror"] = True
    if quick:
        refuse_given((*QUICK, "model", "sublayer"), "--quick chooses machine and GEMM itself")
        options |= QUICK
    refuse_given(("threads",), "bench measures on one thread")
    request = _request("t3-mca", options)
    with output_folder(options["out"]) as folder:
        result = benches.bench(request, _watch)
        if folder is not None:
            write_atomically(folder / "bench.json", json_text(result.to_record()))
    console = plain_console()
    console.print(f"{request.workload.title}, t3-mca{', one GPU mirrored' if request.mirror else ''}")
    for table in bench_tables(result):
        console.print()
        console.print(table)
    say_where(options["out"])


@main.command()
@click.option("--preset", default="paper", help=f"Configuration: {', '.join(PRESETS)}.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change one hardware parameter.")
@click.option("--part", "parts", multiple=True, help="Part to write, repeatable.  [default: unit, nmc]")
@click.option("--out", "-o", type=OUT_FOLDER, required=True, help="Folder for the Verilog files.")
def verilog(preset: str, settings: tuple[str, ...], parts: tuple[str, ...], out: Path) -> None:
    """Write the hardware of one GPU as Verilog: t3_unit.v, and t3_nmc.v for each bank group.

    Beside them: t3.f (file list), t3.json (parameters, ports, latencies, registers), t3_assertions.sv (to be bound),
    t3.sdc (constraints), t3.core (FuseSoC), t3.rdl and t3_registers.h (registers).
    """
    from t3hdl.export.verilog import PARTS, STEPS, VerilogError, generate

    config = hardware_with(preset, settings)
    parts = tuple(dict.fromkeys(parts)) or ("unit", "nmc")
    if unknown := [part for part in parts if part not in PARTS]:
        raise ValueError(f"--part must be of {', '.join(PARTS)}, not {', '.join(unknown)}")
    console = Console(stderr=True)
    try:
        with output_folder(out) as folder, step_progress(console, "verilog", len(parts) * len(STEPS)) as show:
            generate(config, folder, parts, show)
    except VerilogError as error:
        raise Failure(str(error)) from error
    say_where(out)


main.add_command(faults)
main.add_command(fpga)
main.add_command(model)
main.add_command(prove)
main.add_command(report)
main.add_command(reproduce)
main.add_command(sweep)
main.add_command(validate)


@main.command()
def doctor() -> None:
    """Check that everything a simulation needs is here; exit code 1 if not."""
    from .doctor import check_all, doctor_table

    checks = check_all()
    plain_console().print(doctor_table(checks))
    if not all(check.ok for check in checks):
        sys.exit(1)


if __name__ == "__main__":
    main()
