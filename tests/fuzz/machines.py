"""Cases of the fuzzer: machine files."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from tests.fuzz.case import SMALLEST, Case

RUN = ("run", *SMALLEST, "--hardware", "golden", "--threads", "1")
NAMES = (
    "m.toml", "m", "[bold]m.toml", "z[/b].toml", ":warning:.toml", "🦀.toml", "a\nb.toml", "\x1b[31m.toml",
    "\udcff.toml",
    "m m.toml", "'m'.toml", "%s.toml", "-m.toml", "n" * 240 + ".toml", "toy.toml.toml", "{m}.toml",
)  # fmt: skip
GOOD = (
    'base = "toy"', 'base = "toy"\n', '\ufeffbase = "toy"\n', 'base = "toy"\r\n[gpu]\r\ncus = 8\r\n',
    'base = "toy"\n[link]\ngb_s = 40\n', 'base = "toy"\nlink.gb_s = 40\n',
    'base = "toy"\n[link]\ngb_s = { value = 40 }\n',
    'base = "toy"\n[link]\ngb_s = { value = 40, unit = "GB/s", source = "🦀 [bold]\\u0007" }\n',
    'base = "toy"\n[gpu]\n',
    'base = "toy"\n[hardware]\nblocks = 8\n', 'base = "toy"\n[variation]\nclock_scale = [1, 2.5]\n',
    'base = "toy"\n[gpu]\ntiles = [[16, 16], [32, 32]]\n', 'base = "toy"\n' + "# comment\n" * 30000,
    'base = "toy"\n[gpu]\ntiles = { value = [[32, 32]], unit = "elements" }\n',
)  # fmt: skip
BAD = (
    "", "\n", "\x00", "base", "base =", "base = toy", 'base = "toy', "base = 4", "base = nan", 'base = ["toy"]',
    "base = {}",
    'base = ""', 'base = "nope"', 'base = "."', 'base = "/"', 'base = "/dev/zero"', 'base = "toy.toml"',
    'base = "\\u0000"',
    'base = "toy"\nbase = "toy"', 'base = "toy"\n[gpu]\ncus = 4\ncus = 4', 'base = "toy"\n[gpu]\n[gpu]', 'base = "🦀"',
    'base = "toy"\n[gpus]\ncus = 4', 'base = "toy"\n[gpu]\ncuss = 4', 'base = "toy"\ngpu = 4', 'base = "toy"\ncus = 4',
    'base = "toy"\n["[bold]"]\ncus = 4', 'base = "toy"\n[gpu]\n"[/bold]" = 4', 'base = "toy"\n["🦀"]\n"🦀" = "🦀"',
    'base = "toy"\n["a\\nb"]\ncus = 4', 'base = "toy"\n[gpu]\n"\\u001b[31m" = 4', 'base = "toy"\n[[gpu]]\ncus = 4',
    'base = "toy"\n[gpu]\ncus = nan', 'base = "toy"\n[link]\ngb_s = inf', 'base = "toy"\n[link]\ngb_s = -1',
    'base = "toy"\n[gpu]\ncus = 2026-11-23', 'base = "toy"\n[gpu]\ncus = "four"', 'base = "toy"\n[gpu]\ncus = [[4]]',
    'base = "toy"\n[gpu.cus]\nvalue = 4\nunit = "GB"', 'base = "toy"\n[gpu.cus]\nunit = "CUs"',
    'base = "toy"\n[gpu.cus.x]',
    'base = "toy"\n[gpu]\ncus = ' + "[" * 2000 + "]" * 2000,
    'base = "toy"\n[gpu]\ncus = ' + "{a=" * 2000 + "4" + "}" * 2000,
    'base = "toy"\n[' + "a." * 3000 + "a]\n", 'base = "toy"\n[gpu]\ncus = ' + "9" * 5000,
    'base = "toy"\n[gpu]\ncus = true',
    'base = "toy"\n[name]\nx = 1', 'name = "x"\nbase = "toy"', 'base = "toy"\n[sources]\nx = "y"', "[gpu]\ncus = 4\n",
    'base = "toy"\n[hardware]\npreset = "nope"', 'base = "toy"\n[hardware]\noverrides = 4', '[gpu]\nbase = "toy"',
    'base = "toy"\n[hardware.overrides]\nblocks = 8', 'base = "toy"\n[hardware.blocks]\nvalue = 4\nunit = "x"',
    'base = "toy"\n[hardware]\n"" = 4', 'base = "toy"\n[settings]\nx = 1', 'base = "toy"\n[gpu]\n"" = 4',
    'base = "toy"\n[link]\ngb_s = { value = 40, source = "x", colour = "red" }',
    'base = "toy"\n[gpu]\ncus = { value = {} }',
    "#" * ((1 << 20) + 1), "GIF89a\x00\x01", "{}", '{"base": "toy"}', "<machine/>", "base: toy", 'base = "m.toml"',
    'base = "toy"\n[variation]\nclock_scale = [1, 2, 3]',
    'base = "toy"\n[hardware]\ndtypes = { value = [[]] }',
)  # fmt: skip


def _write(content: bytes, name: str, place: Path) -> None:
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).write_bytes(content)


def _machine(name: str, content: bytes, good: bool) -> Case:
    arguments = (*RUN, f"--machine={name}")
    expected = "accepted" if good else "refused"
    return Case(arguments=arguments, expected=expected, prepare=partial(_write, content, name))


def good(random: Random) -> Case:
    """A file that is a machine, under any name."""
    return _machine(random.choice(NAMES), random.choice(GOOD).encode(), True)


def bad(random: Random) -> Case:
    """A file that is none. It is called m.toml where it is its own base."""
    text = random.choice(BAD)
    return _machine("m.toml" if "m.toml" in text else random.choice(NAMES), text.encode(), False)


def no_text(random: Random) -> Case:
    """Bytes that are no UTF-8, or a good file that is cut off or has one byte changed."""
    if random.random() < 0.3:
        wrong = random.choice(
            (b"\xff", b"\xff\xfe", b'base = "\xc3', b'base = "toy" # \xff', b"\x80" * 100, random.randbytes(99))
        )
        return _machine("m.toml", b"\xff" + wrong, False)
    content = bytearray(random.choice(GOOD[:10]).encode())
    content[random.randrange(len(content))] = random.randrange(256)
    changed = bytes(content[: random.randint(0, len(content))] if random.random() < 0.5 else content)
    case = _machine("m.toml", changed, True)
    return Case(arguments=case.arguments, expected="either", prepare=case.prepare)


def _fill_chain(length: int, last: str, place: Path) -> None:
    for number in range(length - 1):
        (place / f"{number}.toml").write_text(f'base = "{number + 1}.toml"\n')
    (place / f"{length - 1}.toml").write_text(f'base = "{last}"\n')


def chain(random: Random) -> Case:
    """Bases of bases: up to 32 files, the preset included, none of which comes twice."""
    length = random.choice((1, 2, 30, 31, 32, 33, 100, 1500))
    last = random.choice(("toy", "toy", "0.toml", "nope"))
    expected = (
        "accepted" if last == "toy" and length < 31 else "either" if last == "toy" and length == 31 else "refused"
    )
    return Case(arguments=(*RUN, "--machine", "0.toml"), expected=expected, prepare=partial(_fill_chain, length, last))


def _folder(place: Path) -> None:
    (place / "m.toml").mkdir()


def _pipe(place: Path) -> None:
    os.mkfifo(place / "m.toml")


def _link(target: str, place: Path) -> None:
    (place / "m.toml").symlink_to(target)


def _base_of(name: str, place: Path) -> None:
    os.mkfifo(place / "pipe")
    (place / "folder").mkdir()
    (place / "m.toml").write_text(f'base = "{name}"\n')


def _hidden(place: Path) -> None:
    (place / "m.toml").write_text('base = "toy"\n')
    (place / "m.toml").chmod(0)


def no_file(random: Random) -> Case:
    """Something else than a file of some size."""
    kinds: tuple[Callable[[Path], None], ...] = (
        _folder,
        _pipe,
        *(partial(_link, to) for to in ("m.toml", "nowhere", "/dev/zero", "/dev/null", "/proc/self/mem", ".")),
        *(partial(_base_of, name) for name in ("pipe", "folder", "m.toml", "./m.toml", "m.toml/x", "/dev/zero")),
    )
    arguments = (*RUN, "--machine", "m.toml")
    if random.random() < 0.1:
        expected = "either" if os.geteuid() == 0 else "refused"  # root reads everything
        return Case(arguments=arguments, expected=expected, prepare=_hidden)
    return Case(arguments=arguments, expected="refused", prepare=random.choice(kinds), says="machine")


def no_path(random: Random) -> Case:
    """A path to nothing that can be read."""
    wrong = (
        "/dev/zero",
        "/dev/stdin",
        "/dev/tty",
        "/",
        ".",
        "..",
        "/proc/self/mem",
        "x" * 5000,
        "d/" * 2000 + "m",
        "",
        "~",
    )
    return Case(arguments=(*RUN, "--machine", random.choice(wrong)), expected="refused", says="machine")


MACHINES = {good: 4, bad: 10, no_text: 3, chain: 2, no_file: 4, no_path: 1}
"""Generators, and how often each is taken."""
