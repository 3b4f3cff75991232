"""The command line ``t3``. An expected error is one message on stderr and exit code 2; Ctrl-C is exit code 130."""

import errno
import signal
from typing import Any

import click
from opent3 import SimulationError, __version__

from t3sim.common.cache import BuildError
from t3sim.common.user_input import one_line

from .doctor import doctor
from .errors import Failure, Interrupted
from .explain import explain
from .faults import faults
from .fpga import fpga
from .machine import machine
from .model import model
from .prove import prove
from .report import report
from .reproduce import reproduce
from .simulation.bench import bench
from .simulation.map import arbitration_map
from .simulation.run import compare, run
from .simulation.waves import waves
from .start.completion import completion
from .start.demo import demo
from .sweep import sweep
from .validate import validate
from .verilog import verilog

GROUPS = {
    "First minutes": (demo, doctor, completion),
    "Simulation": (run, compare, model, sweep, arbitration_map, reproduce, machine),
    "Results": (report, explain, waves),
    "Hardware": (verilog, prove, fpga),
    "Checks of the simulation": (validate, faults, bench),
}
"""All commands, by the heading under which `t3 --help` lists them."""


class _Commands(click.Group):
    """Turns expected errors of any command into one message, and lists the commands in groups."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list for `t3 --help`."""
        width = max(len(str(command.name)) for group in GROUPS.values() for command in group)
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{command.name:{width}}", command.get_short_help_str(90)) for command in group])

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
        if error.errno in (errno.EFBIG, errno.EDQUOT):  # of a write, which knows no name
            return f"the output is larger than a limit lets it be ({error.strerror}): raise it, or choose another --out"
        return one_line(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    if isinstance(error, BuildError):  # may hold what a compiler said
        return str(error)
    return one_line(str(error))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="t3")
@click.option("--traceback", is_flag=True, help="On an error, show where in the program it came from.")
def main(traceback: bool) -> None:
    """OpenT3: the T3 hardware (tracking and triggering in the memory controller), its co-simulation and its checks.

    `t3 demo` is the place to begin; `t3 COMMAND --help` explains a command.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: programs that we started end, too


for commands in GROUPS.values():
    for command in commands:
        main.add_command(command)


if __name__ == "__main__":
    main()
