"""Cases of the fuzzer: sweeps, and the tables of a model, with :func:`small_workload` in place of the paper's sizes."""

from random import Random

from t3sim.inputs.workload import Workload, model_workload

from tests.fuzz.case import NO_INTEGERS, NO_NAMES, Case
from tests.fuzz.outputs import GOOD
from tests.fuzz.settings import KEYS, NO_NUMBERS

TOY = ("sweep", "--machine", "toy", "--models", "t-nlg", "--sublayers", "op", "--tp", "8")
GEMM = ("sweep", "--machine", "toy", "--m", "64", "--n", "64", "--k", "64", "--tp", "2,4")
GOOD_VARY = ("link.gb_s=10,20", "dma.block=tile,chunk", "link.gb_s=10, 2e1", "link.gb_s=20", 'dma.block="chunk","tile"')
BAD_VARY = (
    "", "=", "link.gb_s", "link.gb_s=", "link.gb_s=,", "link.gb_s=20,20", "link.gb_s=20,,40", "link.gb_s=[20, 40]",
    "link.gb_s=20,nan", "link.gb_s=inf", "link.gb_s=20,-1", "link.gb_s=20,word", "gb_s=20,40", "link.gb=20,40",
    "🦀.🦀=1,2", "link.gb_s=20,2026-11-23", "link.gb_s={}", "link.gb_s=" + "[" * 2000, "link.gb_s=12:00:00,20",
    "link.gb_s=" + ",".join(map(str, range(1, 300))), "link.gb_s=\x1b[31m", "link.gb_s=1\n2", "link.gb_s=\udcff",
    "gpu.tiles=[[32, 32]],[[3, 3]]", "variation.clock_scale=[1],[1, 1]", "hardware.preset=small,nope", "link.gb_s=20,]",
    "link.gb_s=true,20", "link.gb_s=1e400,20", "link.gb_s=20,{a=nan}", "link.gb_s=20, # forty", "link.gb_s=[[[]]]",
    "link.gb_s='20','40'", "link.gb_s=2026-11-23T12:00:00Z,20", "hbm.nCL=4096.5,14", "a" * 5000,
)  # fmt: skip


def small_workload(model: str, sublayer: str, tp: int) -> Workload:
    """A toy in place of a model's GEMM, if that exists."""
    model_workload(model, sublayer, tp)
    return Workload(model=model, sublayer=sublayer, tp=2, m=64, n=64, k=16)


def good(random: Random) -> Case:
    """A few runs, which are kept: the same come again."""
    target, expected, prepare = random.choice(GOOD)
    policies = ("--policies", random.choice(("t3", "t3,t3-mca", "ideal-overlap")))
    work = random.choice((TOY, TOY, GEMM))
    arguments = (*work, "--vary", random.choice(GOOD_VARY), *policies, "--jobs", "1", f"--out={target}")
    return Case(arguments=arguments, expected=expected, prepare=prepare, out=target)


def model(random: Random) -> Case:
    """The tables of a whole model."""
    phase = random.choice(("training", "prompt"))
    more = random.choice(((), ("--attention", "fused"), ("--attention", "unfused"), ("--model", "mega-gpt-2")))
    return Case(arguments=("model", "--machine", "toy", "--jobs", "1", "--phase", phase, *more), expected="accepted")


def vary(random: Random) -> Case:
    """Values that cannot be."""
    return Case(arguments=(*TOY, "--vary", random.choice(BAD_VARY)), expected="refused")


def vary_any_key(random: Random) -> Case:
    """Every key with a value that no key takes, beside one that may be good."""
    wrong = random.choice(("nan", "-1e308", "{ x = nan }", str(1 << 80), "2026-11-23", "[[[[4]]]]", "\x00"))
    return Case(arguments=(*TOY, "--vary", f"{random.choice(KEYS)}=4,{wrong}"), expected="refused")


def repeated(random: Random) -> Case:
    """One key twice, or more machines than a sweep may have."""
    tenfold = ",".join(map(str, range(1, 21)))
    many = ("--vary", f"link.gb_s={tenfold}", "--vary", f"gpu.swizzle_rows={tenfold}")
    twice = ("--vary", "link.gb_s=20,40", "--vary", "link.gb_s=60")
    return Case(arguments=(*TOY, *random.choice((many, twice))), expected="refused", says="--vary")


def which(random: Random) -> Case:
    """Names in the lists of a sweep."""
    option = random.choice(("--models", "--sublayers", "--tp", "--policies", "--variants"))
    wrong = random.choice((*NO_NAMES, "t-nlg,t-nlg", ",", "t3,", "8,8", "8,nan", "0", "1", "-8", "65", *NO_INTEGERS))
    vary = () if option == "--variants" else ("--vary", "link.gb_s=20,-40")
    return Case(arguments=(*TOY, *vary, option, wrong), expected="refused")


def neither_or_both(random: Random) -> Case:
    """One of two options is needed, and not both."""
    more = random.choice(
        ((), ("--vary", "link.gb_s=20", "--assumptions"), ("--vary", "link.gb_s=20", "--variants", "x"))
    )
    return Case(arguments=(*TOY, *more), expected="refused", says="--vary")


def setting(random: Random) -> Case:
    """A value for all runs."""
    key = random.choice(("link.gb_s", "gpu.cus", "hbm.nCL", "llc.ways", "arbiter.starvation_quantum"))
    wrong = f"{key}={random.choice([text for text in NO_NUMBERS if 'four' not in text])}"
    return Case(arguments=(*TOY, "--vary", "dma.block=tile,chunk", "--set", wrong), expected="refused")


SWEEPS = {good: 1, model: 1, vary: 6, vary_any_key: 3, repeated: 1, which: 4, neither_or_both: 1, setting: 3}
"""Generators, and how often each is taken."""
