"""Cases of the fuzzer: machine values on the command line. Each key's bounds are those that its field declares."""

import math
from collections.abc import Iterable
from random import Random
from typing import Any, Literal, get_args, get_origin

from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.machine.machine import SECTIONS

from tests.fuzz.case import Case, run_of

KEYS = tuple(f"{section}.{key}" for section, model in SECTIONS.items() for key in model.model_fields)
LISTS = ("variation.start_skew_ns", "variation.clock_scale", "variation.link_gb_s")
OTHERS = (*LISTS, "gpu.tiles", "hardware.preset", "hardware.dtypes")
"""Keys that take no single number, switch or choice of the machine."""
PLAIN = tuple(key for key in KEYS if key not in OTHERS)
STEPS = {"gpu.store_bytes_per_clock": 32, "llc.line_bytes": 32}
"""Numbers that must be multiples."""
LARGE = {"egress_buffer_kib", "rx_buffer_kib", "buffer_kib", "capacity_kib", "outstanding_lines_per_cu", "cus"}
"""Keys with which the simulator's memory grows: not to their bound, so that the fuzzer runs beside others."""
NO_NUMBERS = (
    "", " ", "nan", "inf", "-inf", "+nan", "1e400", "-1e400", "-1", "-0.5", "-1e308", "true", "false", '"4"', "four",
    "[4]", "[]", "[[4, 4]]", "{}", "{ value = nan }", '{ value = 4, unit = "parsecs" }', "{ value = 4, colour = 1 }",
    "2026-11-23", "12:00:00", "2026-11-23T12:00:00Z", str(1 << 64), str(-(1 << 64)), "9" * 4000, "9" * 5000,
    "[" * 2000, "[" * 2000 + "]" * 2000, "{a=" * 2000, "0x", "0b2", "1_", "'", '"""', "🦀", "½", "\x00", "\x1b[31m",
    "4\n5",
    "\udcff", "4 # four", "# four", "=4", "4=4", "[bold]4[/bold]", "..", "\u202e4", "é",
)  # fmt: skip
"""What no number of a machine may be; the two with a comment are TOML, and their comment may be dropped."""
COMMENTED = ("4 # four",)


def split(keys: Iterable[str]) -> list[tuple[str, str, str]]:
    """Each key with its section and its name."""
    return [(key, *key.split(".")) for key in keys]  # type: ignore[misc]


def own_values() -> dict[str, Any]:
    """The toy's value of each plain key."""
    machine = load_machine("toy")
    places = {"hardware": machine.hardware.config()}
    return {key: getattr(places.get(section) or getattr(machine, section), name) for key, section, name in split(PLAIN)}


OWN = own_values()
INDEPENDENT = tuple(
    key
    for key in PLAIN
    if isinstance(OWN[key], int | float) and not isinstance(OWN[key], bool) and not key.startswith("hbm.n")
)
"""Numbers but the timings of the DRAM, which bound each other: few of their combinations are legal."""


def text(value: Any) -> str:
    """``value`` as it is typed."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def bounds(key: str) -> tuple[float, float, bool, bool]:
    """Least and greatest value of a number, and whether each is itself legal."""
    section, name = key.split(".")
    found = {}
    for limit in SECTIONS[section].model_fields[name].metadata:
        found |= {word: getattr(limit, word) for word in ("ge", "gt", "le", "lt") if hasattr(limit, word)}
    return found.get("ge", found.get("gt")), found.get("le", found.get("lt")), "ge" in found, "le" in found


def setting(random: Random) -> Case:
    """One value of the machine."""
    key = random.choice(PLAIN)
    value = OWN[key]
    how = random.choice(("own", "inside", "wrong", "beyond"))
    if how == "own":
        return set_to(random, key, text(value), "accepted")
    if isinstance(value, bool) or get_origin(_type_of(key)) is Literal:
        return _choice(random, key, how)
    if how == "wrong":
        wrong = random.choice(NO_NUMBERS)
        return set_to(random, key, wrong, "either" if wrong in COMMENTED else "refused")
    if how == "beyond":
        return set_to(random, key, text(_beyond(random, key)), "refused")
    return set_to(random, key, text(_inside(random, key)), "either")


def _type_of(key: str) -> Any:
    section, name = key.split(".")
    kind = SECTIONS[section].model_fields[name].annotation
    given = [inner for inner in get_args(kind) if inner is not type(None)]
    return given[0] if type(None) in get_args(kind) else kind


def _choice(random: Random, key: str, how: str) -> Case:
    """A switch, or one of several words."""
    legal = ("true", "false") if isinstance(OWN[key], bool) else get_args(_type_of(key))
    if how == "inside":
        return set_to(random, key, random.choice(legal), "either")
    return set_to(random, key, random.choice([word for word in NO_NUMBERS if word not in legal]), "refused")


def _beyond(random: Random, key: str) -> Any:
    """Just outside the bounds, or far."""
    low, high, low_legal, high_legal = bounds(key)
    if isinstance(OWN[key], int):
        return random.choice((low - 1, high + 1, 2 * high + 1, -high, high + (1 << 64), 1.5, float(OWN[key])))
    below = math.nextafter(low, -math.inf) if low_legal else low
    above = math.nextafter(high, math.inf) if high_legal else high
    return random.choice((below, above, -high, 10 * high, 1e308))


def _inside(random: Random, key: str) -> Any:
    """At a bound or between; other values of the machine may forbid it all the same."""
    low, high, _, _ = bounds(key)
    if key.split(".")[1] in LARGE:
        high = min(high, 512)
    if isinstance(OWN[key], int):
        exponent = random.uniform(math.log2(low + 1), math.log2(high + 1))
        value = random.choice((low, low + 1, high, high - 1, min(high, max(low, round(2**exponent - 1)))))
        return max(low, value - value % STEPS.get(key, 1))
    return random.choice((low, high, math.nextafter(low, high), math.nextafter(high, low), random.uniform(low, high)))


def set_to(random: Random, key: str, value: str, expected: str) -> Case:
    """A run with ``key`` set; a refusal names the key, unless the text has no form or cannot be repeated."""
    says = key.split(".")[1] if expected == "refused" and value.isprintable() and len(value) < 1000 else ""
    return Case(arguments=run_of(random, "--set", f"{key}={value}"), expected=expected, says=says)  # type: ignore[arg-type]


def several(random: Random) -> Case:
    """Several legal values at once, sometimes written down."""
    chosen = random.sample(INDEPENDENT, random.randint(2, 8))
    settings = [word for key in chosen for word in ("--set", f"{key}={text(_inside(random, key))}")]
    out = random.choice((None, None, None, None, None, "out"))
    written = () if out is None else ("--out", out)
    return Case(arguments=run_of(random, *settings, *written), expected="either", out=out)


def per_gpu(random: Random) -> Case:
    """A list with a value for each GPU."""
    key, gpus = random.choice(LISTS), random.choice((2, 3, 4))
    low, high = {"start_skew_ns": (0, 1e8), "clock_scale": (1e-3, 10.0), "link_gb_s": (1e-4, 1e6)}[key.split(".")[1]]
    values: list[Any] = [random.choice((low, high, 1, 2.5, random.uniform(low, min(high, 100)))) for _ in range(gpus)]
    expected, says = "accepted", ""
    if random.random() < 0.6:
        expected, says = "refused", key
        _spoil(random, values, low, high)
    shown = random.choice(("[]", shown_list(values))) if expected == "accepted" else shown_list(values)
    sizes = ("--m", "64", "--n", "64", "--k", "16", "--tp", str(gpus), "--set", f"{key}={shown}")
    return Case(arguments=run_of(random, *sizes), expected=expected, says=says)  # type: ignore[arg-type]


def _spoil(random: Random, values: list[Any], low: float, high: float) -> None:
    """One value too many or too few, or one that may not be."""
    how = random.choice(("more", "fewer", "bad"))
    if how == "more":
        values.append(1)
    elif how == "fewer":
        values.pop()
    else:
        bad = ("nan", "inf", "-inf", -1, 2 * high, low - 1, "true", '"1"', "[1]", "{}", "2026-11-23", 1 << 64, "[[1]]")
        values[random.randrange(len(values))] = random.choice(bad)


def shown_list(values: list[Any]) -> str:
    """A TOML array of values that are numbers or text already."""
    return f"[{', '.join(map(str, values))}]"


def tiles(random: Random) -> Case:
    """The menu of workgroup tiles."""
    good = ("[[32, 32]]", "[[16, 16]]", "[[2, 16]]", "[[64, 32], [32, 64]]", "[[1024, 128]]")
    bad = (
        "", "[]", "[[]]", "[32, 32]", "[[32]]", "[[32, 32, 32]]", "[[32, 32], [32, 32]]", "[[0, 32]]", "[[-32, 32]]",
        "[[1025, 32]]", "[[32, 0]]", "[[32, 8]]", "[[32, 144]]", "[[32.0, 32]]", "[[nan, 32]]", '[["32", 32]]',
        "[[true, 32]]", "[[3, 32]]", "32", "nan", "[[32, 32], 4]", "{}", "2026-11-23", f"[[32, {1 << 64}]]", "[" * 2000,
        '"[[32, 32]]"', "[[2026-11-23, 32]]", "[{}]", "[[[32, 32]]]",
    )  # fmt: skip
    if random.random() < 0.3:
        return set_to(random, "gpu.tiles", random.choice(good), "either")
    return set_to(random, "gpu.tiles", random.choice(bad), "refused")


def malformed(random: Random) -> Case:
    """A setting with no form, or of nothing that exists."""
    wrong = random.choice((
        "", "=", ".", "=.", ".=", "gpu", "gpu.", "gpu.cus", ".cus=4", "gpu=4", "gpu.=4", "gpu.cuss=4", "gpus.cus=4",
        "gpu.cus.cus=4", "GPU.cus=4", "name=x", "sources.x=1", "base=toy", "settings.x=1", "[bold].x=1", "🦀.🦀=🦀",
        "gpu.cus\n=4", "\x1b[31m.x=1", "\udcff.x=1", "hardware.x=1", "gpu.__class__=4", "variation.x=[]", "a" * 5000,
        "hardware.preset=x", "hardware.preset=4", "hardware.preset=[]", "hardware.overrides={}",
        "hardware.overrides.blocks=8", "hardware.=4", "hardware.slices=3",
        "hardware.slices=nan",
        "hardware.protect=4", 'hardware.count_on="x"', "hardware.dtypes=[]",
        "hardware.dtypes=[4]", "hardware.descriptors=1", "hardware.blocks=inf",
        f"hardware.slices={1 << 64}", "hardware.slices.x=4",
        "hardware.event_queue=2026-11-23", "hardware.wavefronts=true",
    ))  # fmt: skip
    return Case(arguments=run_of(random, "--set", wrong), expected="refused")


SETTINGS = {setting: 24, several: 6, per_gpu: 6, tiles: 2, malformed: 4}
"""Generators, and how often each is taken."""
