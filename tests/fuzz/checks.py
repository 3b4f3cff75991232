"""What must hold after a case of the fuzzer, told from its output and its folder alone."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.machine.settings import parse_setting
from t3sim.study.sweep import axes_of

from tests.fuzz.case import Case
from tests.fuzz.outputs import EARLIER
from tests.fuzz.tree import Tree, changes, digest

MANIFEST = "t3-manifest.json"
LONGEST_MESSAGE = 3000
"""Characters of a message: a value of thousands must not be repeated."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a command line. ``error``: an exception that is no exit."""

    code: int
    stdout: str
    stderr: str
    error: BaseException | None = None
    hung: bool = False


Fault = tuple[str, str]
"""A column of the table, and what is wrong."""


def faults(case: Case, outcome: Outcome, place: Path, before: Tree, after: Tree) -> Iterator[Fault]:
    """All that is wrong with the outcome of a case."""
    if outcome.hung:
        yield "hangs", "not done in time"
    elif outcome.error is not None or "Traceback" in outcome.stdout + outcome.stderr:
        yield "tracebacks", repr(outcome.error)
    elif outcome.code in case.codes:
        if case.expected == "refused":
            yield "wrong acceptances", "it must be refused"
        yield from _accepted(case, outcome, place, before, after)
    else:
        if case.expected == "accepted":
            yield "wrong refusals", outcome.stderr[-300:]
        yield from _refused(case, outcome, before, after)


def _refused(case: Case, outcome: Outcome, before: Tree, after: Tree) -> Iterator[Fault]:
    """One message, exit code 2, nothing printed or written."""
    changed = [name for name in changes(before, after) if not (case.kept and f"{name}/".startswith(f"{case.kept}/"))]
    if changed:
        yield "half-written", ", ".join(changed[:5])
    if outcome.code != 2:
        yield "wrong acceptances", f"exit code {outcome.code}: {outcome.stderr[-300:]}"
    if outcome.stdout:
        yield "bad messages", f"on stdout: {outcome.stdout[:100]!r}"
    usage = outcome.stderr.startswith("Usage: ")
    count = len(re.findall(r"^Error: ", outcome.stderr, re.MULTILINE))
    message = outcome.stderr[outcome.stderr.rfind("\nError: ") + 1 :].removesuffix("\n")
    if usage and count <= 1:  # click's words, in which an unknown option stands as it was typed
        return
    if count != 1 or not message.startswith("Error: ") or not message.isprintable() or len(message) > LONGEST_MESSAGE:
        yield "bad messages", f"{count} errors; {message[:300]!r} of {len(message)}"
    if case.says.lower() not in message.lower():
        yield "bad messages", f"does not name {case.says}: {message[:300]!r}"


def _accepted(case: Case, outcome: Outcome, place: Path, before: Tree, after: Tree) -> Iterator[Fault]:
    """Right results, and a whole output that left everything else as it was."""
    rows = re.findall(r"^\s*mismatches\s+(.*)$", outcome.stdout, re.MULTILINE)
    simulated = case.arguments[0] in ("run", "compare") and not {"-h", "--help"} & {*case.arguments}
    if simulated and (not rows or set(" ".join(rows).split()) - {"0", "-"}):
        yield "wrong acceptances", f"mismatches: {rows}"
    folder = Path(os.path.realpath(place / case.out)) if case.out is not None else None
    if case.file and not (place / case.file).is_file():
        yield "half-written", f"{case.file} is missing"
    if folder is None or not folder.is_relative_to(place):
        if changed := [name for name in changes(before, after) if name != case.file]:
            yield "half-written", f"nothing was to be written, but {changed[:5]} changed"
        return
    yield from _whole(folder, str(folder.relative_to(place)), before, after)
    for path in folder.rglob("result.json"):
        yield from _result(path, json.loads(path.read_text("utf-8")))
    for path in folder.rglob("sweep.json"):
        if failures := json.loads(path.read_text("utf-8"))["failures"]:
            yield "wrong acceptances", f"{failures}"
    if "--machine" in case.arguments:
        for path in folder.rglob("config.toml"):
            yield from _machine(case, path)


def _whole(folder: Path, inside: str, before: Tree, after: Tree) -> Iterator[Fault]:
    """The manifest names every new file with its digest, and nothing else has changed but what was ours before."""
    prefix = "" if inside == "." else f"{inside}/"
    try:
        files: dict[str, list[str]] = json.loads((folder / MANIFEST).read_text("utf-8"))["files"]
    except (OSError, ValueError, KeyError) as error:
        yield "half-written", f"no manifest: {error!r}"
        return
    for name, digests in files.items():
        if not (folder / name).is_file() or [digest(folder / name)] != digests:
            yield "half-written", f"{name} is not as the manifest says"
    allowed = {f"{prefix}{name}" for name in (*files, MANIFEST)}
    for name in changes(before, after):
        kind, old = after.get(name, ("", ""))[0], before.get(name)
        ours = name in allowed or (old is not None and _in_manifest(old, name, prefix))
        made = old is None and kind.startswith("folder") and any(file.startswith(f"{name}/") for file in allowed)
        if not (ours or made):
            yield "half-written", f"{name}: {old} became {after.get(name)}"


def _in_manifest(old: tuple[str, str], name: str, prefix: str) -> bool:
    """Whether it is a file of the earlier output of a scene, or a folder of such files."""
    known = {f"{prefix}{item}" for item in (*EARLIER, "compare.json")}
    return name in known or (old[0].startswith("folder") and any(item.startswith(f"{name}/") for item in known))


def _result(path: Path, result: dict[str, Any]) -> Iterator[Fault]:
    """A record that adds up."""
    check, times = result["data_check"], result["time_ns"]
    if check is not None and check["mismatches"] != 0:
        yield "wrong acceptances", f"{path.name}: {check}"
    if False in result["identities"].values():
        yield "wrong acceptances", f"{path.name}: {result['identities']}"
    if not result["identities"] and "ideal" not in result["policy"]:
        yield "wrong acceptances", f"{path.name}: no identities"
    if not 0 < times["total"] < float("inf") or times["total"] < max(times["gemm"], times["all_gather"]):
        yield "wrong acceptances", f"{path.name}: {times}"


def _machine(case: Case, path: Path) -> Iterator[Fault]:
    """The written machine is the one of the command line; of a sweep, the first."""
    pairs = list(zip(case.arguments, case.arguments[1:], strict=False))
    settings = dict(parse_setting(value) for option, value in pairs if option == "--set")
    varied = axes_of(value for option, value in pairs if option == "--vary")
    settings |= {key: values[0][1] for key, values in varied.items()}
    name = [value for option, value in pairs if option == "--machine"][-1]
    drop = {"name", "sources", "settings"}
    asked = load_machine(name, settings).model_dump(exclude=drop)
    if load_machine(path).model_dump(exclude=drop) != asked:
        yield "half-written", "config.toml reads back as another machine"
