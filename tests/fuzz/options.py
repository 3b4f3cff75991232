"""Cases of the fuzzer: options and arguments of every command."""

from random import Random

import click
from t3hdl.config import PRESETS
from t3sim.cli import main as cli

from tests.fuzz.case import NO_INTEGERS, NO_NAMES, SMALLEST, TOY, Case, run_of

QUICK_PARTS = ("leaf", "root", "monitor", "crossing")
"""Parts of the hardware whose Verilog takes half a second."""


def commands() -> dict[tuple[str, ...], click.Command]:
    """Every command that does something, by the words that call it."""
    found: dict[tuple[str, ...], click.Command] = {}
    for name, command in cli.main.commands.items():
        if isinstance(command, click.Group):
            found |= {(name, inner): item for inner, item in command.commands.items()}
        else:
            found[(name,)] = command
    return found


COMMANDS = commands()


def usage(random: Random) -> Case:
    """A command line that click cannot take apart: nothing can begin."""
    words, command = random.choice(list(COMMANDS.items()))
    options = [item for item in command.params if isinstance(item, click.Option)]
    kinds = [_unknown] + [_valueless, _flag_with_value, _no_number] * bool(options)
    wrong = random.choice(kinds)(random, options)
    return Case(arguments=(*words, *wrong), expected="refused")


def _unknown(random: Random, options: list[click.Option]) -> tuple[str, ...]:
    return (random.choice(("--no-such", "--no-such=4", "-z", "--🦀", "--[bold]", "---", "--\x1b[31m", "--tp\n")),)


def _valueless(random: Random, options: list[click.Option]) -> tuple[str, ...]:
    """The value of the last option is missing."""
    named = [item for item in options if not item.is_flag]
    return (random.choice(named).opts[0],) if named else _unknown(random, options)


def _flag_with_value(random: Random, options: list[click.Option]) -> tuple[str, ...]:
    flags = [item for item in options if item.is_flag]
    value = random.choice(("", "1", "false", "🦀"))
    return (f"{random.choice(flags).opts[0]}={value}",) if flags else _unknown(random, options)


def _no_number(random: Random, options: list[click.Option]) -> tuple[str, ...]:
    numbers = [item for item in options if isinstance(item.type, click.types.IntParamType)]
    return (random.choice(numbers).opts[0], random.choice(NO_INTEGERS)) if numbers else _unknown(random, options)


def helped(random: Random) -> Case:
    """Help and version."""
    words = random.choice([*COMMANDS, ("validate",), ()])
    return Case(
        arguments=random.choice(((*words, random.choice(("-h", "--help"))), ("--version",))), expected="accepted"
    )


def groups(random: Random) -> Case:
    """A command that does not exist."""
    prefix = random.choice(((), ("validate",)))
    return Case(arguments=(*prefix, random.choice((*NO_NAMES, "runn", "RUN", "4"))), expected="refused")


def names(random: Random) -> Case:
    """The name of something that does not exist, in a run."""
    option = random.choice(("--model", "--sublayer", "--policy", "--hardware", "--hardware-preset", "--machine"))
    wrong = random.choice(NO_NAMES)
    if option in ("--model", "--sublayer"):
        if not wrong:  # as if it were not given
            return Case(arguments=("run", "--tp", "1", option, wrong), expected="refused", says="tp")
        return Case(arguments=("run", "--machine", "toy", option, wrong), expected="refused", says=option[2:])
    says = option[2:].replace("-", " ").removeprefix("hardware ")
    return Case(arguments=run_of(random, option, wrong), expected="refused", says=says)


def presets(random: Random) -> Case:
    """A hardware preset that may not fit to the toy, with as many channels or not."""
    preset = random.choice(tuple(PRESETS))
    channels = str(random.choice((4, PRESETS[preset].slices)))
    more = ("--hardware-preset", preset, "--set", f"hbm.channels={channels}")
    return Case(arguments=run_of(random, *more), expected="either")


def comparison(random: Random) -> Case:
    """Policies of a comparison."""
    good = ("sequential,t3", "t3-mca", "ideal-overlap", "sequential,ideal-overlap,t3")
    bad = ("", ",", "t3,", "t3,t3", "t3 t3-mca", "t4", "T3", "t3;t3-mca", "🦀", "t3,\x1b[31m", ",".join(["t3"] * 999))
    if random.random() < 0.5:
        return Case(arguments=("compare", *TOY, "--policies", random.choice(good)), expected="accepted")
    return Case(arguments=("compare", *TOY, "--policies", random.choice(bad)), expected="refused", says="polic")


REFUSED = (
    "bench --hardware golden --quick", "bench --quick --m 64", "bench --quick --model t-nlg", "bench --threads 1",
    "bench --tp 1", "bench --machine nope", "bench --quick --machine toy", "bench --set gpu.cus=nan", "doctor x",
    "reproduce --only nope", "reproduce --only=", "reproduce --quick --only tp64", "reproduce --hardware fpga",
    "reproduce --jobs 0", "reproduce --machine nope", "reproduce --set gpu.cus=inf", "reproduce --set x",
    "reproduce --machine toy --set link.gb_s=-1", "reproduce --only tp32 --set variation.clock_scale=[1,1]",
    "model --model nope", "model --tp 0", "model --tp 1", "model --tp 65", "model --tp -4", "model --phase nope",
    "model --attention nope", "model --phase nope --optimizer", "model --hardware nope", "model --machine nope",
    "model --set link.gb_s=nan", "model --set link.gb_s", "model --jobs 0", "model --jobs 2.5", "model x",
    "model --tp 18446744073709551616", "fpga", "fpga --board nope", "fpga --board=", "fpga --board ulx3s --preset nope",
    "fpga --board ulx3s --seeds 0", "fpga --board ulx3s --seed -1", "fpga --board ulx3s --jobs 0", "fpga x",
    "fpga --board ulx3s --program", "prove nope", "prove --list --jobs 2", "prove --list -o out",
    "prove --jobs 0",
    "prove --list nope", "prove --quick --list nope tracker", "faults --faults 0", "faults --faults 10000001",
    "faults --classes nope", "faults --classes=", "faults --classes bits,bits", "faults --classes bits,,dma",
    "faults --seed -1", "faults --jobs 0", "faults --repeat nope", "faults --repeat bits", "faults --repeat bits:",
    "faults --repeat bits:-1", "faults --repeat bits:1.5", "faults --repeat :1", "faults --repeat bits:²",
    "faults --repeat bits:1 --faults 9", "faults --repeat bits:1 -o out", "faults --repeat bits:1 --classes dma",
    "faults --repeat bits:1 --jobs 2", "run --m 64 --n 64 --k 64 --model palm", "run --tp 1", "run x", "compare x",
    "verilog", "verilog -o out --preset nope", "verilog -o out --part nope", "verilog -o out --part=",
    "verilog --part leaf", "verilog -o out --part leaf --prefix 1", "verilog -o out --part leaf --prefix -",
    "verilog -o out --part leaf --prefix é_", "verilog -o out --part leaf --init-memories=1",
    "validate hbm --traces x", "validate hbm --reference x", "validate alu --exhaustive --random 4",
    "validate alu --random -1", "validate alu --random 1 --seed -1", "validate alu --random 1 --dtype nope",
    "validate alu --random 1 --op nope", "validate alu --exhaustive --dtype fp32", "validate alu --alone-every 0",
    "validate alu --threads 0 --random 1", "validate alu --random 1 --preset nope", "validate alu --dtype fp16",
    "validate alu --random 1 --set nmc_lanes=3", "validate alu --random 1 --set x=1", "validate alu --random 1.5",
    "validate alu", "validate alu --op add", "validate hbm x", "validate", "validate alu --random 1 --set nmc_lanes",
    "validate alu --random 1 --seed 18446744073709551616", "validate alu --dtype fp16 --op nope",
    "validate gpu --from x", "validate gpu --from x --machine toy", "validate gpu --from x --machine toy --rates 4",
    "validate gpu --machine nope", "validate gpu --machine toy --tolerance 0", "validate gpu --tolerance 0.1",
    "validate gpu --rates x", "validate gpu --rates 1,1", "validate gpu --rates=-1", "validate gpu --samples 0",
)  # fmt: skip
"""Command lines that may not begin, whatever the reason."""


def refused(random: Random) -> Case:
    """A command that may not begin."""
    line = random.choice(REFUSED)
    return Case(arguments=tuple(line.split()), expected="refused", environment={"PATH": "/nowhere"})


CHEAP = ("prove --list", "prove --quick --list", "prove --list trigger", "prove --quick --list tracker nmc")


def cheap(random: Random) -> Case:
    """A command that is done in a moment."""
    return Case(arguments=tuple(random.choice(CHEAP).split()), expected="accepted")


def ends_refused(random: Random) -> Case:
    """Any options of a run, in any order, and at the end what refuses them all."""
    words: list[str] = []
    for item in random.sample(COMMANDS[("run",)].params, random.randint(1, 6)):
        words.append(item.opts[0])
        if not getattr(item, "is_flag", False):
            words.append(random.choice((*NO_NAMES, *NO_INTEGERS, "4", "t-nlg", "gpu.cus=4")))
    return Case(arguments=("run", *words, *SMALLEST, "--tp", "1"), expected="refused")


def hardware_parameters(random: Random) -> Case:
    """The hardware's parameters, written as Verilog."""
    part, out = random.choice(QUICK_PARTS), "out"
    good = (
        "protect=true",
        "slices=8",
        "blocks=8",
        "tracker_sets=8",
        "row_index_bits=1",
        "node_inputs=1",
        "event_queue=3",
    )
    bad = (
        "slices=3", "slices=0", "slices=-4", "slices=nan", "slices=4.0", "slices=true", "slices='4'", "slices=[4]",
        f"slices={1 << 64}", "slices=", "slices", "=4", "x=4", "protect=1", "protect=maybe", "dtypes=[]", "dtypes=4",
        'dtypes=["fp64"]', 'dtypes=["bf16", "fp16"]', "dtypes=[4]", "dtypes=[[]]", "count_on=x", "count_on=4",
        "blocks=1e9",
        "blocks=2026-11-23", "🦀=4", "slices=🦀", "slices=\x1b[31m", "slices=" + "[" * 2000, "tile_count_bits=inf",
        "row_index_bits=99", "chunk_window=64", "tracker_banks=8", "slices.x=4", "wavefronts=\udcff", "a" * 5000,
        "nmc_latency=" + "9" * 5000, "__class__=4", "dtypes={}", "slices={}", "descriptors=65",
    )  # fmt: skip
    arguments = ("verilog", "--preset", "small", "--part", part, "-o", out, "--set")
    if random.random() < 0.3:
        return Case(arguments=(*arguments, random.choice(good)), expected="either", out=out)
    return Case(arguments=(*arguments, random.choice(bad)), expected="refused", out=out)


OPTIONS = {
    usage: 8, helped: 1, groups: 1, names: 4, presets: 1, comparison: 2, refused: 10, cheap: 1, ends_refused: 5,
    hardware_parameters: 4,
}  # fmt: skip
"""Generators, and how often each is taken."""
