"""Cases of the fuzzer: strange surroundings, some in a process of their own, and pairs of runs."""

from pathlib import Path
from random import Random

from tests.fuzz.case import TOY, Case
from tests.fuzz.options import usage
from tests.fuzz.settings import setting

UNUSABLE = (
    "file", "file/cache", "/dev/null", "/dev/null/cache", "/proc/x", "n" * 300, "a/" * 1500, "a/" * 2500,
    "~nobody-of-this-name/cache",
    "~nobody-of-this-name", "circle", "circle/cache",
)  # fmt: skip
"""What OPENT3_CACHE cannot be."""


def _surroundings(place: Path) -> None:
    (place / "file").write_text("mine")
    (place / "circle").symlink_to("circle")
    (place / "cache").mkdir()


def doctor(random: Random) -> Case:
    """The doctor says what is wrong with a cache folder, and is not taken ill itself."""
    cache = random.choice((*UNUSABLE, "cache", "./cache/../cache"))
    tools = random.choice(({}, {"CXX": "nonsense"}, {"CXX": ""}, {"PATH": "/nowhere"}, {"CXX": "🦀 [/b]"}))
    environment = {"OPENT3_CACHE": cache, **tools}
    return Case(
        arguments=("doctor",), expected="accepted", codes=(0, 1), prepare=_surroundings, environment=environment
    )


def no_cache(random: Random) -> Case:
    """A run in a process that has nowhere to keep its kernels."""
    environment = {"OPENT3_CACHE": random.choice(UNUSABLE)}
    return Case(arguments=("run", *TOY), expected="refused", prepare=_surroundings, environment=environment, apart=True)


def apart(random: Random) -> Case:
    """A command line that a process of its own refuses like any other."""
    case = random.choice((usage, usage, setting))(random)
    while case.expected != "refused" or any("\x00" in word or len(word) > 100_000 for word in case.arguments):
        case = setting(random)
    return Case(arguments=case.arguments, expected="refused", apart=True)


PROCESSES = {doctor: 14, no_cache: 1, apart: 1}
"""Generators, and how often each is taken."""


def slower_link(random: Random) -> Case:
    """A link of a half, or less, of the bandwidth: the run takes as long, or longer."""
    fast = random.choice((1.0, 5.0, 20.0, 100.0, 1000.0))
    slow = fast / random.choice((2, 4, 10, 100))
    sizes = (
        "--m",
        str(random.choice((64, 96))),
        "--n",
        "64",
        "--k",
        str(random.choice((16, 64))),
        "--tp",
        random.choice("234"),
    )
    policy = ("--policy", random.choice(("t3", "t3-mca", "sequential", "sequential-nmc")))
    common = ("run", *TOY, *sizes, *policy)
    return Case(
        arguments=(*common, "--set", f"link.gb_s={slow}", "--out", "slow"),
        out="slow",
        expected="accepted",
        faster=(*common, "--set", f"link.gb_s={fast}", "--out", "fast"),
    )


PAIRS = {slower_link: 1}
"""Generators, and how often each is taken."""
