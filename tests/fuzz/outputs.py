"""Cases of the fuzzer: where results go, and what is there already."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from t3sim.common.output import output_folder

from tests.fuzz.case import TOY, Case, Expected, nothing
from tests.fuzz.options import QUICK_PARTS

Scene = tuple[str, Expected, Callable[[Path], None]]
"""The target as it is typed, what is expected of it, and what is there."""
POLICIES = ("t3-mca", *["ideal-overlap"] * 4)
"""Mostly one without a timeline, which takes longest to draw."""
EARLIER = ("result.json", "config.toml", "timing.json", "t3/result.json", "t3/deep/old.txt", "bench.json")
"""Files of an earlier output."""


def _earlier(place: Path) -> None:
    """An earlier output in ``out``."""
    with output_folder(place / "out") as folder:
        for name in EARLIER:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"old {name}")


def _earlier_with_notes(place: Path) -> None:
    _earlier(place)
    for name in ("notes.txt", "t3/notes.txt", ".git/HEAD", "t3/deep/notes 🦀.txt"):
        (place / "out" / name).parent.mkdir(exist_ok=True)
        (place / "out" / name).write_text("mine")
    (place / "out" / "link").symlink_to("/nowhere")


def _earlier_edited(name: str, place: Path) -> None:
    _earlier(place)
    (place / "out" / name).write_text("edited")


def _earlier_linked(place: Path) -> None:
    _earlier(place)
    (place / "out/config.toml").rename(place / "mine.toml")
    (place / "out/config.toml").symlink_to(place / "mine.toml")


def _earlier_without(place: Path) -> None:
    _earlier(place)
    (place / "out/config.toml").unlink()


def _in_the_way(name: str, place: Path) -> None:
    """An earlier output without ``name``, in whose place a folder of the user's is now."""
    with output_folder(place / "out") as folder:
        (folder / "compare.json").write_text("old")
    (place / "out" / name).mkdir()
    (place / "out" / name / "mine").write_text("mine")


def _users(names: tuple[str, ...], place: Path) -> None:
    """A folder ``out`` of the user's."""
    for name in names:
        (place / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "out" / name).write_text("{}")


def _manifest(text: str, place: Path) -> None:
    _users(("thesis.tex",), place)
    (place / "out" / "t3-manifest.json").write_text(text)


def _folder(name: str, place: Path) -> None:
    (place / name).mkdir()


def _file(name: str, place: Path) -> None:
    (place / name).write_text("mine")


def _link(name: str, target: str, place: Path) -> None:
    (place / "real").mkdir()
    (place / name).symlink_to(target)


def _read_only(place: Path) -> None:
    (place / "closed").mkdir(mode=0o555)


def _pipe(place: Path) -> None:
    os.mkfifo(place / "out")


NAMES = (
    "out", "out/", "./out", "a/b/c/out", "z[/b]", "[bold]out", ":warning:", "🦀", "a\nb", "\x1b[31m", "n" * 255, "out ",
    " out", "'out'", "-out", "d/" * 400, "a/../out", "%s", "~", "\u202eout", "x/./y//z",
)  # fmt: skip
GOOD: tuple[Scene, ...] = (
    *((name, "accepted", nothing) for name in NAMES),
    ("out", "accepted", partial(_folder, "out")),
    (".", "accepted", nothing),
    *(("out", "accepted", scene) for scene in (_earlier, _earlier_with_notes, _earlier_without)),
    ("link", "accepted", partial(_link, "link", "real")),
    ("link/deep/out", "accepted", partial(_link, "link", "real")),
    ("closed/out", "either", _read_only),
    ("\udcff", "either", nothing),
)
MANIFEST_FILES = ("result.json", "bench.json", "sweep.json", "compare.json", "t3-manifest.json")
FORGED_MANIFESTS = (
    "{}", "nonsense", '{"schema_version": 1, "files": {"../thesis.tex": []}}', "[" * 3000, "",
    '{"files": {"/etc/passwd": ["0"]}}', '{"files": {"thesis.tex": ["0"]}}', '{"files": {"thesis.tex": []}}', "\x00",
)  # fmt: skip
BAD: tuple[Scene, ...] = (
    ("/", "refused", nothing), ("/proc/x", "refused", nothing), ("/proc", "refused", nothing),
    ("/dev/null", "refused", nothing),
    ("/dev/null/out", "refused", nothing), ("n" * 300, "refused", nothing), ("n" * 300 + "/out", "refused", nothing),
    ("a/b/" + "n" * 300, "refused", nothing), ("d/" * 2000, "refused", nothing),
    ("file", "refused", partial(_file, "file")),
    ("file/a/b", "refused", partial(_file, "file")), ("out", "refused", _pipe),
    (".", "refused", partial(_file, "file")),
    ("link", "refused", partial(_link, "link", "nowhere")), ("link/out", "refused", partial(_link, "link", "nowhere")),
    ("link", "refused", partial(_link, "link", "link")), ("link", "refused", partial(_link, "link", "/proc/x")),
    *(("out", "refused", partial(_users, (name, "src/thesis.tex"))) for name in MANIFEST_FILES),
    *(("out", "refused", partial(_users, (name,))) for name in (".git/HEAD", "thesis.tex", ".hidden", "a/b/c")),
    *(("out", "refused", partial(_manifest, text)) for text in FORGED_MANIFESTS),
    *(("out", "refused", partial(_earlier_edited, name)) for name in EARLIER), ("out", "refused", _earlier_linked),
)  # fmt: skip


def output(random: Random) -> Case:
    """A run, or Verilog, with any target."""
    target, expected, prepare = random.choice(GOOD if random.random() < 0.35 else BAD)
    command = ("run", *TOY, "--policy", random.choice(POLICIES))
    if random.random() < 0.3:
        named = random.choice(((), ("--prefix", "left_"), ("--prefix=",), ("--init-memories",)))
        command = ("verilog", "--preset", "small", "--part", random.choice(QUICK_PARTS), *named)
    says = "--out" if expected == "refused" else ""
    return Case(arguments=(*command, f"--out={target}"), expected=expected, prepare=prepare, out=target, says=says)


def comparison(random: Random) -> Case:
    """A comparison, which has folders in its folder."""
    target, expected, prepare = random.choice(GOOD)
    arguments = ("compare", *TOY, "--policies", "sequential,t3", f"--out={target}")
    return Case(arguments=arguments, expected=expected, prepare=prepare, out=target)


def refused_run(random: Random) -> Case:
    """A run that is refused, with a good target: nothing may be made for it."""
    target, _, prepare = random.choice(GOOD)
    wrong = random.choice(("--set=link.gb_s=nan", "--tp=1", "--machine=nope", "--policy=x", "--data-lines=-1"))
    return Case(arguments=("run", *TOY, f"--out={target}", wrong), expected="refused", prepare=prepare, out=target)


def late(random: Random) -> Case:
    """A user's folder where a file or folder of the new output goes, which is seen when the results are there: they are
    kept beside it."""
    prepare = partial(_in_the_way, random.choice(("result.json", "timing.json", "config.toml")))
    return Case(arguments=("run", *TOY, "--out=out"), expected="refused", prepare=prepare, kept="out/t3-output")


OUTPUTS = {output: 20, comparison: 1, refused_run: 6, late: 1}
"""Generators, and how often each is taken."""
