"""Cases of the fuzzer: sizes and counts of a run."""

from random import Random

from tests.fuzz.case import GOLDEN, NO_INTEGERS, SMALLEST, Case, run_of

TILE = 32
"""Rows and columns of the toy's workgroup tile."""
MAX = 1 << 22
TOO_SMALL = (0, -1, -7, -(1 << 31), -(1 << 63), -(1 << 64), -(10**400))
TOO_LARGE = (MAX + 1, 1 << 31, 1 << 32, 1 << 63, 18446744073709551615, 18446744073709551616, 10**400)
LEGAL = {"--seed": (0, 1, (1 << 64) - 1), "--threads": (1, 2, 3, 64), "--data-lines": (0, 1, 7, 100_000, 1 << 62)}
ILLEGAL = {"--seed": (-1, 1 << 64, 10**400), "--threads": (0, -1, -(1 << 64)), "--data-lines": (-1, -(10**400))}


def sizes(random: Random) -> Case:
    """A GEMM whose sizes and degree are all legal, or one is not."""
    m, n, tp = random.randint(1, 130), random.randint(1, 130), random.randint(2, 8)
    k = random.choice((tp - 1, tp, tp + 1, random.randint(tp, 80)))
    given = {"--m": str(m), "--n": str(n), "--k": str(k), "--tp": str(tp)}
    fits = -(-m // TILE) * -(-n // TILE) >= tp and k >= tp
    says = "smallest legal"
    if random.random() < 0.5:
        says, fits = random.choice(("--m", "--n", "--k", "--tp")), False
        given[says] = _bad_size(random, says)
        says = says.removeprefix("--")
    policy = random.choice(("t3-mca", "t3", "sequential"))
    arguments = ("run", *GOLDEN, *(word for item in given.items() for word in item), "--policy", policy)
    return Case(arguments=arguments, expected="accepted" if fits else "refused", says="" if fits else says)


def _bad_size(random: Random, name: str) -> str:
    degrees = (1, 65, 1024) if name == "--tp" else ()
    return random.choice((*NO_INTEGERS, *map(str, (*TOO_SMALL, *TOO_LARGE, *degrees))))


def paper_machines(random: Random) -> Case:
    """A small GEMM on the machines of the paper's size, with any threads."""
    m, n, k, tp = random.randint(256, 300), random.randint(256, 300), random.randint(4, 80), random.randint(2, 4)
    machine, threads = random.choice(("paper", "paper-accelsim", "paper-samsung")), random.choice("123")
    sizes = ("--m", str(m), "--n", str(n), "--k", str(k), "--tp", str(tp))
    arguments = ("run", "--machine", machine, "--hardware", "golden", "--threads", threads, *sizes)
    return Case(arguments=arguments, expected="accepted")


def large_outputs(random: Random) -> Case:
    """Every size by itself is legal, but the output has too many tiles."""
    m, n = (str(random.randint(1 << 20, MAX)) for _ in "mn")
    return Case(
        arguments=("run", *GOLDEN, "--m", m, "--n", n, "--k", "64", "--tp", "2"), expected="refused", says="--m"
    )


def missing_sizes(random: Random) -> Case:
    """Some of the three sizes."""
    given = random.sample((("--m", "64"), ("--n", "64"), ("--k", "16")), random.randint(1, 2))
    arguments = ("run", *GOLDEN, "--tp", "2", *(word for item in given for word in item))
    return Case(arguments=arguments, expected="refused", says="missing")


def counts(random: Random) -> Case:
    """Seed, threads, lines with data."""
    name = random.choice(tuple(LEGAL))
    good = random.random() < 0.4
    value = str(random.choice(LEGAL[name] if good else (*NO_INTEGERS, *ILLEGAL[name])))
    policy = random.choice(("t3-mca", "sequential"))
    arguments = ("run", *GOLDEN, *SMALLEST, "--policy", policy, name, value)
    says = "" if good else name.split("-")[-1]
    return Case(arguments=arguments, expected="accepted" if good else "refused", says=says)


def mirrored_data(random: Random) -> Case:
    """A mirrored neighbour has no data."""
    lines = str(random.choice(LEGAL["--data-lines"]))
    return Case(arguments=run_of(random, "--mirror", "--data-lines", lines), expected="refused", says="--data-lines")


SIZES = {sizes: 8, paper_machines: 1, large_outputs: 1, missing_sizes: 1, counts: 3, mirrored_data: 1}
"""Generators, and how often each is taken."""
