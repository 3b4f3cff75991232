"""The options that say on which machine, and with which T3 hardware, a command simulates."""

from collections.abc import Callable
from typing import Any

import click
from opent3 import BACKENDS, Backend, preset_names

from ..start.completion import values, values_or_files

HARDWARE = "T3 hardware: rtl (compiled Verilog; needs a C++ compiler) or golden (a model in Python, the same cycles)."


def hardware_option(default: Backend) -> Callable[[Any], Any]:
    """The option ``--hardware``."""
    return click.option("--hardware", default=default, shell_complete=values(BACKENDS), help=HARDWARE)


def machine_options(hardware: Backend) -> Callable[[Any], Any]:
    """The options ``--machine``, ``--set`` and ``--hardware``, whose default is ``hardware``."""
    options = (
        click.option("--machine", default="paper", shell_complete=values_or_files(preset_names()),
                     help=f"Machine: {', '.join(preset_names())}, or a TOML file."),
        click.option("--set", "settings", multiple=True, metavar="SECTION.KEY=VALUE",
                     help="Change one machine value, such as link.gb_s=75 or hardware.tracker_banks=8; repeatable."),
        hardware_option(hardware),
    )  # fmt: skip

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
