"""The options that describe a simulation, and what is made of them."""

from collections.abc import Callable
from typing import Any

import click
import opent3
from opent3 import INNER_MULTIPLE, MAX_TP, MODELS, Machine, Options, SizedModel, Workload, parse_settings
from opent3.options import usable_cores

from ..start.completion import values
from .machine_options import machine_options
from .own_model import model_of, own_model_options, phase_option
from .sizes import refuse_sizes, size_options, sizes_of


def names(context: click.Context, parameter: click.Parameter, text: str) -> tuple[str, ...]:
    """The names of an option that takes several, separated by commas; each once."""
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    if "" in names:
        raise ValueError(f"{parameter.opts[0]} must be names separated by commas, not {text!r}")
    if len(set(names)) != len(names):
        raise ValueError(f"{parameter.opts[0]} must name each once, not {text!r}")
    return names


def simulation_options(command: Callable) -> Callable:
    """The options that `run`, `compare` and `bench` share."""
    options = (
        click.option("--model", shell_complete=values(MODELS), help=f"Model: {', '.join(MODELS)}. [default: t-nlg]"),
        click.option("--sublayer", shell_complete=values(INNER_MULTIPLE),
                     help=f"Sublayer: {', '.join(INNER_MULTIPLE)}; or one of --hf. "
                          "[default: fc2; with --hf the last of a forward pass]"),
        own_model_options,
        phase_option,
        click.option("--tp", type=int, default=8,
                     help=f"Tensor-parallel GPUs, 2 to {MAX_TP}; machine toy: at most 8, as its T3 hardware."),
        size_options,
        machine_options("rtl"),
        click.option("--hardware-preset", help="Hardware configuration, instead of the machine's."),
        click.option("--mirror/--no-mirror", default=None,
                     help="Simulate one GPU and reflect its traffic, as the paper did. [default: no; in bench: yes]"),
        click.option("--threads", type=int, default=usable_cores, show_default="usable cores",
                     help="Threads; the results do not depend on it."),
        click.option("--seed", type=int, default=0, help="Seed of data and samples."),
        click.option("--data-lines", type=int, help="Lines that carry data. [default: all, or a sample if large]"),
        click.option("--contention/--no-contention", default=True,
                     help="Observe what the streams wait for at the memory, for a few percent of the time."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def chosen(options: dict[str, Any]) -> tuple[Workload, Options, SizedModel | None]:
    """Workload, options of the Python API, and the model of --hf if there is one. Raises ValueError for what they may
    not be."""
    machine, own = _machine(options), model_of(options)
    passed = Options(
        machine=machine,
        hardware=options["hardware"],
        mirror=bool(options["mirror"]),
        threads=options["threads"],
        seed=options["seed"],
        data_lines=options["data_lines"],
        contention=options["contention"],
    )
    return _workload(options, own), passed, own


def _machine(options: dict[str, Any]) -> Machine:
    settings = parse_settings(options["settings"])
    if options["hardware_preset"] is not None:
        if "hardware.preset" in settings:
            raise ValueError("give either --hardware-preset or --set hardware.preset, not both")
        settings["hardware.preset"] = options["hardware_preset"]
    return opent3.load_machine(options["machine"], settings)


def _workload(options: dict[str, Any], own: SizedModel | None) -> Workload:
    if own is not None:
        why = "give one of --hf, --model, or --m, --n and --k"
        refuse_sizes(options, why)
        if options["model"]:
            raise ValueError(why)
        return opent3.sublayer_workload(own, options["sublayer"], options["tp"])
    sizes = sizes_of(options)
    if sizes is None:
        return opent3.model_workload(options["model"] or "t-nlg", options["sublayer"] or "fc2", options["tp"])
    if options["model"] or options["sublayer"]:
        raise ValueError("give either --model and --sublayer, or --m, --n and --k, not both")
    return opent3.custom_workload(tp=options["tp"], **sizes)
