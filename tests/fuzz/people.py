"""Cases of the fuzzer: what people look at (reports, traces, waves), and models and machines of their own."""

import json
import tempfile
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from t3sim.inputs.machine.files import preset_names

from tests.fuzz.case import GOLDEN, NO_INTEGERS, NO_NAMES, TOY, Case
from tests.support.model_configs import CONFIGS
from tests.support.report_folders import compare_folder, run_folder

FOLDERS = {"run": run_folder, "compare": compare_folder}
ODD_VALUES: tuple[Any, ...] = (0, -1, 1e308, 0.5, 1 << 70, None, "", "🦀", "nan", [], {}, True, [[[]]], {"a": 1})


@cache
def folder_files(kind: str) -> dict[str, bytes]:
    """The files of an output folder."""
    with tempfile.TemporaryDirectory() as place:
        folder = FOLDERS[kind](Path(place) / "out")
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _write(files: dict[str, bytes], place: Path) -> None:
    for name, content in files.items():
        (place / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "out" / name).write_bytes(content)


def shown(random: Random) -> Case:
    """A report or an explanation of what t3 wrote."""
    kind = random.choice(tuple(FOLDERS))
    prepare = partial(_write, folder_files(kind))
    if random.random() < 0.5:
        more = random.choice(((), ("--json",)))
        return Case(arguments=("explain", "out", *more), expected="accepted", prepare=prepare)
    if random.random() < 0.5:
        return Case(arguments=("report", "out"), expected="accepted", prepare=prepare, out="out")
    return Case(arguments=("report", "out", "-o", "r.html"), expected="accepted", prepare=prepare, file="r.html")


def damaged(random: Random) -> Case:
    """The same of a folder in which something is wrong."""
    kind = random.choice(tuple(FOLDERS))
    files = dict(folder_files(kind))
    name = random.choice([name for name in files if name.endswith((".json", ".toml")) and "manifest" not in name])
    files[name] = _damaged(random, files[name], name)
    arguments = random.choice((("explain", "out"), ("explain", "out", "--json"), ("report", "out", "-o", "r.html")))
    file = "r.html" if "r.html" in arguments else ""
    return Case(arguments=arguments, expected="either", prepare=partial(_write, files), file=file)


def _damaged(random: Random, content: bytes, name: str) -> bytes:
    how = random.choice(("value", "value", "value", "key", "cut", "byte", "other"))
    if how == "cut":
        return content[: random.randrange(len(content))]
    if how == "byte":
        at = random.randrange(len(content))
        return content[:at] + random.randbytes(1) + content[at + 1 :]
    if how == "other" or not name.endswith(".json"):
        return random.choice((b"", b"{}", b"[]", b"null", b"4", b"\xff", b"[" * 5000, b'{"schema": 7}'))
    record = json.loads(content)
    _spoil(random, record, drop=how == "key")
    return json.dumps(record).encode()


def _spoil(random: Random, record: Any, *, drop: bool) -> None:
    """Changes or drops one value, however deep."""
    while True:
        keys = list(record) if isinstance(record, dict) else range(len(record))
        key = random.choice(list(keys))
        inner = record[key]
        if not (isinstance(inner, dict | list) and inner) or random.random() < 0.1:
            break
        record = inner
    if drop:
        del record[key]
    else:
        record[key] = random.choice(ODD_VALUES)


def nothing_to_show(random: Random) -> Case:
    """A folder that is none of t3's."""
    words = random.choice((("explain",), ("report",), ("report", "out", "-o", "r.html"), ("explain", "out", "out")))
    return Case(arguments=(*words, *([random.choice(NO_NAMES)] if len(words) == 1 else [])), expected="refused")


def traced(random: Random) -> Case:
    """A trace among the files of a run."""
    command = random.choice((("run", "--policy", "t3-mca"), ("compare", "--policies", "sequential,t3")))
    name = random.choice(("out/t.pftrace", "out/[bold].pftrace", "out/🦀.pftrace", "./out/../out/deep/t.pftrace"))
    arguments = (command[0], *TOY, *command[1:], "--out", "out", "--trace", name)
    return Case(arguments=arguments, expected="accepted", out="out")


def no_trace(random: Random) -> Case:
    """A trace that cannot be written, or of what is not simulated."""
    wrong = random.choice(("", "t.json", "/", "..", "nowhere/t.pftrace", "n" * 300 + ".pftrace", "/dev/full", "t"))
    if random.random() < 0.2:
        return Case(arguments=("run", *TOY, "--policy", "ideal-overlap", "--trace", "t.pftrace"), expected="refused")
    return Case(arguments=("run", *TOY, "--trace", wrong), expected="refused", says="trace")


WAVES = ("waves", *TOY, "--from-ns", "100")
NO_WAVES = (
    ("--to-ns", "90"), ("--to-ns", "100"), ("--to-ns", "nan"), ("--to-ns", "inf"), ("--to-ns", "1e300"), (),
    ("--to-ns", "-1"), ("--to-ns", "99.99"), ("--to-ns", "130", "--gpu", "2"), ("--to-ns", "130", "--gpu", "-1"),
    ("--to-ns", "130", "--around", "1"), ("--to-ns", "130", "--policy", "ideal-overlap"), ("--to-ns", "1e7"),
    ("--to-ns", "130", "--format", "ghw"), ("--to-ns", "130", "--internals"), ("--to-ns", "130", "--no-golden"),
    ("--to-ns", "130", "--parts", "nmc"), ("--to-ns", "130", "--parts", ""), ("--to-ns", "130", "--parts", "slice.4"),
    ("--to-ns", "130", "--parts", "slice,slice.1"), ("--to-ns", "130", "--parts", "slice.²"),
    ("--to-ns", "130", "--parts", "🦀"),
)  # fmt: skip


def waves(random: Random) -> Case:
    """Ports of the golden model in a window, or a window that cannot be."""
    if random.random() < 0.5:
        return Case(arguments=(*WAVES, *random.choice(NO_WAVES), "-o", "out"), expected="refused", out="out")
    parts = random.choice(("tracker", "tracker,trigger", "slice.0,root", " monitor , leaf", "slice,matcher"))
    policy = ("--policy", random.choice(("t3", "t3-mca", "sequential")))
    arguments = (*WAVES, "--to-ns", str(random.choice((101, 130.5, 400))), "--parts", parts, *policy, "-o", "out")
    return Case(arguments=arguments, expected="accepted", out="out")


TINY = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "vocab_size": 100, "intermediate_size": 128,
}  # fmt: skip
OWN = ("run", "--hf", "c.json", "--batch", "1", "--sequence", "64", "--tp", "2", *GOLDEN)


def _config(content: bytes, place: Path) -> None:
    (place / "c.json").write_bytes(content)


def own_model(random: Random) -> Case:
    """A model of one's own, as it is or with a value that is wrong."""
    values = CONFIGS["llama-3-8b"] | TINY
    sublayer = ("--sublayer", random.choice(("op", "fc2")))
    if random.random() < 0.3:
        prepare = partial(_config, json.dumps(values).encode())
        return Case(arguments=(*OWN, *sublayer), expected="accepted", prepare=prepare)
    if random.random() < 0.3:
        content = random.choice((b"", b"{", b"[]", b"4", b"\xff", b"{}", b'{"model_type": "bert"}', b"[" * 5000))
        return Case(arguments=(*OWN, *sublayer), expected="refused", prepare=partial(_config, content), says="c.json")
    key = random.choice(tuple(values))
    changed = values | {key: random.choice(ODD_VALUES)}
    if random.random() < 0.2:
        del changed[key]
    prepare = partial(_config, json.dumps(changed).encode())
    return Case(arguments=(*OWN, *sublayer), expected="either", prepare=prepare)


def own_amounts(random: Random) -> Case:
    """How much a model of one's own is given, where that cannot be."""
    content = json.dumps(CONFIGS["llama-3-8b"] | TINY).encode()
    option = random.choice(("--batch", "--sequence", "--phase"))
    wrong = random.choice(("0", "-1", str(1 << 64), *NO_INTEGERS))
    prepare = partial(_config, content)
    return Case(arguments=(*OWN, option, wrong), expected="refused", prepare=prepare, says=option[2:])


def machines(random: Random) -> Case:
    """Presets shown, and a machine file begun."""
    preset = random.choice(preset_names())
    name = random.choice(("mine", "mine.toml", "[bold]", "🦀", "m m"))
    made = name if name.endswith(".toml") else f"{name}.toml"
    return random.choice((
        Case(arguments=("machine", "list"), expected="accepted"),
        Case(arguments=("machine", "show", preset), expected="accepted"),
        Case(arguments=("machine", "show", preset, "--set", "link.gb_s=40"), expected="accepted"),
        Case(arguments=("machine", "show", preset, "--set", "link.gb_s=nan"), expected="refused", says="gb_s"),
        Case(arguments=("machine", "show", random.choice(NO_NAMES)), expected="refused", says="machine"),
        Case(arguments=("machine", "new", name, "--base", preset), expected="accepted", file=made),
        Case(arguments=("machine", "new", "x/y/z"), expected="refused"),
        Case(arguments=("machine", "new", "mine", "--base", "nope"), expected="refused"),
    ))  # fmt: skip


def demo(random: Random) -> Case:
    """The demonstration."""
    if random.random() < 0.8:
        return Case(arguments=("demo", "--hardware", random.choice(NO_NAMES[1:])), expected="refused", says="hardware")
    return Case(arguments=("demo", "-o", "out"), expected="accepted", out="out")


PEOPLE = {
    shown: 4, damaged: 12, nothing_to_show: 2, traced: 2, no_trace: 2, waves: 8, own_model: 8, own_amounts: 2,
    machines: 4, demo: 1,
}  # fmt: skip
"""Generators, and how often each is taken."""
