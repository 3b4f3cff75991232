"""The page of what boards came to: ``python -m docs.pages.boards`` builds them all, which takes hours of
every core, keeps each record as ``docs/results/fpga/BOARD-PRESET.json`` and writes ``docs/results/boards-results.md``.
A record is kept after every seed, and seeds that it has are not placed again, unless the design or a tool has changed.
"""

import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import click
from opent3.options import usable_cores
from t3fpga.build.build import Build, Record, verdict
from t3fpga.build.platforms import BOARDS
from t3fpga.build.tools import ToolError, Tools
from t3hdl.config import PRESETS
from t3sim.cli.errors import Failure
from t3sim.common.json_text import json_text
from t3sim.common.output import write_atomically

from docs.pages import RESULTS
from docs.pages.shared.hardware import measured_on
from docs.pages.shared.markdown import paragraph, table

PAGE = RESULTS / "boards-results.md"
KEPT = PAGE.parent / "fpga"
_BEFORE = KEPT / "before"
"""Records of the hardware before accesses were bursts: its targets were 75 and 100 MHz with both presets."""
SEEDS = 3
"""Places of each netlist: seeds 1 to this."""
STEPS = 8
"""Longest critical path that is shown in full; a longer one is cut in its middle."""

HEAD = """\
# Boards: area, clock, and what limits it

What [the self-test](../guides/boards.md) came to on each board. `make fpga` builds all of them and writes this page;
*Fmax* is nextpnr's, from the slow corner of its timing model, for seeds from 1 on. What a build uses, and its longest
path, are those of its fastest seed, whose bitstream `t3 fpga` keeps. A target is met if the median of the seeds reaches
it, with one seed if that one does. *Met by the fastest seed, missed by the median*: most placements do not reach it,
and after the next change of the design none may. A board runs at its oscillator, and a bitstream is fast enough to be
loaded if its Fmax is at least that. `SelfTest` is a whole unit, `TrackerTest` is [tracker and trigger
alone](../guides/boards.md#tracker-and-trigger-alone), `TrackerOnlyTest` [the tracker
alone](../guides/boards.md#the-tracker-alone). Records: `docs/results/fpga`.
"""

BEFORE_TEXT = (
    "A hardware from before accesses were bursts that carry their epoch, and a tile counted once "
    "(`docs/results/fpga/before`); nextpnr was asked for 75 and 100 MHz times 1.25 there, for 80 and 120 with `fpga` "
    "today."
)

AREA_TEXT = (
    "LUTs and flip-flops of each part, counted by the names that cells have after synthesis of the whole design: what "
    "is optimised across parts is gone, and a LUT between two parts counts for the one whose wire it drives. "
    "`self-test` is everything around the unit."
)

PATH_TEXT = (
    "The longest path of the fastest seed, from register to register, in the design's own names; the time of what lies "
    "between two named signals stands at the first."
)


def names() -> list[tuple[str, str]]:
    """Board and preset of every build, board by board."""
    return [(board, preset) for board in BOARDS for preset in BOARDS[board].presets]


def _begun(board: str, preset: str) -> Record | None:
    """The record of a build as far as it got."""
    path = _path(board, preset)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _path(board: str, preset: str) -> Path:
    return KEPT / f"{board}-{preset}.json"


def page() -> str:
    """The text of :data:`PAGE`, from the records that are kept; what has none is named. Raises Failure if all lack."""
    records = {name: record for name in names() if (record := _begun(*name))}
    if not records:
        raise Failure(f"{KEPT} has no record: make fpga builds every board and keeps its record")
    before = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(_BEFORE.glob("*.json"))]
    missing = [f"{BOARDS[board].title} `{preset}`" for board, preset in names() if (board, preset) not in records]
    return text(list(records.values()), before, missing)


def text(records: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]], missing: Sequence[str] = ()) -> str:
    """The page of these records, of those of the hardware before, and of the builds that have no record."""
    sections = {
        "Builds": _builds(records),
        "Area of each part": _areas(records),
        "What limits the clock": _paths(records),
        "Before bursts": paragraph(BEFORE_TEXT) + _builds(before),
    }
    tools = ", ".join(f"{name} {version}" for name, version in sorted(_tools(records).items()))
    hardware = measured_on(*(record.get("hardware") for record in records))
    head = HEAD + "\n" + paragraph(f"Made with {tools}.") + hardware.rstrip() + "\n"
    if missing:
        head += "\n" + paragraph(f"**Not built for this hardware yet**: {', '.join(missing)}.").rstrip() + "\n"
    return head + "".join(f"\n## {title}\n\n{text.rstrip()}\n" for title, text in sections.items())


def _tools(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The versions of each tool, more than one if boards were built at different times."""
    versions: dict[str, dict[str, None]] = {}
    for record in records:
        for name, version in record["tools"].items():
            versions.setdefault(name, {})[version] = None
    return {name: " and ".join(found) for name, found in versions.items()}


def _builds(records: Sequence[Mapping[str, Any]]) -> str:
    heads = (
        "board", "device", "preset", "design", "LUTs:", "flip-flops:", "block RAMs:", "DSPs:",
        "oscillator:", "Fmax (MHz):", "median:", "target:", "",
    )  # fmt: skip
    rows = [
        (
            record["title"],
            f"{record['device']}, {record['speed_grade']}",
            f"`{record['preset']}`",
            f"`{record['design']}`",
            *(_share(record["used"][name]) for name in ("luts", "flip_flops", "block_rams", "dsps")),
            f"{record['oscillator_mhz']:g}",
            ", ".join(f"{fmax:.1f}" for fmax in record["fmax_mhz"].values()),
            f"{record['median_fmax_mhz']:.1f}",
            f"{record['target_mhz']:g}",
            verdict(record).replace("missed", "**missed**"),
        )
        for record in records
    ]
    cells = [
        f"{record['title']} {_share(record['used']['logic_cells'])}"
        for record in records
        if "logic_cells" in record["used"]
    ]
    text = "A logic cell of iCE40 has one LUT and one flip-flop, which often cannot share it; cells taken: "
    text += ", ".join(cells) + "."
    return table(heads, rows) + ("\n" + paragraph(text) if cells else "")


def _share(number: Mapping[str, int]) -> str:
    if not number["available"]:
        return "0"
    return f"{number['used']:,} ({number['used'] / number['available']:.0%})"


def _areas(records: Sequence[Mapping[str, Any]]) -> str:
    parts = list(dict.fromkeys(part for record in records for part in record["area"]))
    heads = ("part", *(f"{record['board']} `{record['preset']}`:" for record in records))
    rows = [(part, *(_size(record["area"].get(part)) for record in records)) for part in parts]
    return paragraph(AREA_TEXT) + table(heads, rows)


def _size(part: Mapping[str, int] | None) -> str:
    """LUTs / flip-flops, and block RAMs if there are any."""
    if part is None:
        return ""
    memories = f" + {part['block_rams']} RAM" if part["block_rams"] else ""
    return f"{part['luts']:,} / {part['flip_flops']:,}{memories}"


def _paths(records: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for record in records:
        path = record["critical_path"]
        steps = [f"`{step['name']}` {step['logic_ns'] + step['routing_ns']:.1f}" for step in path["steps"]]
        if len(steps) > STEPS:
            half = STEPS // 2
            steps = [*steps[:half], f"({len(steps) - STEPS} more)", *steps[-half:]]
        rows.append(
            (
                f"{record['title']} `{record['preset']}`",
                f"{path['logic_ns']:.1f} + {path['routing_ns']:.1f}",
                "; ".join(steps),
            )
        )
    return paragraph(PATH_TEXT) + table(("build", "logic + routing (ns):", "from, through (ns)"), rows)


def build_all(jobs: int, seeds: int) -> None:
    """Builds every board with seeds 1 to ``seeds``, ``jobs`` at a time, and keeps the records; a line for each step."""
    begin = time.monotonic()
    with Tools() as tools, ThreadPoolExecutor(jobs) as pool:
        try:
            runs = [pool.submit(_build, board, preset, seeds, tools, begin) for board, preset in names()]
            for run in as_completed(runs):
                run.result()
        except BaseException:
            tools.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _build(board: str, preset: str, seeds: int, tools: Tools, begin: float) -> None:
    def show(step: str, phase: str) -> None:
        if phase in ("", "begins"):
            state = phase or "done"
            click.echo(f"{time.monotonic() - begin:6.0f} s  {board} {preset}: {step} {state}")

    build = Build(board=board, preset=preset, config=PRESETS[preset], seeds=range(1, seeds + 1))

    def keep(record: Record) -> None:
        write_atomically(_path(board, preset), json_text(record))

    with tempfile.TemporaryDirectory(prefix="t3-fpga-") as folder:
        build.run(Path(folder), tools, show, begun=_begun(board, preset), keep=keep)


@click.command()
@click.option(
    "--jobs", type=click.IntRange(1), default=usable_cores, show_default="usable cores", help="Builds at a time."
)
@click.option("--seeds", type=click.IntRange(1), default=SEEDS, show_default=True, help="Places of each netlist.")
def main(jobs: int, seeds: int) -> None:
    """Build all boards and write the page."""
    KEPT.mkdir(exist_ok=True)
    try:
        build_all(jobs, seeds)
    except ToolError as error:
        raise Failure(str(error)) from error
    write_atomically(PAGE, page())
    click.echo(f"written: {os.path.relpath(PAGE)}")


if __name__ == "__main__":
    main()
