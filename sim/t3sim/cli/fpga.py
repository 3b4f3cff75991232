"""``t3 fpga``: the hardware as a self-checking bitstream for a board."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from t3hdl.config import preset as hardware_preset

from t3sim.common.fitted_table import FittedTable
from t3sim.common.json_text import json_text
from t3sim.common.output import output_folder, write_atomically

from .console import fpga_progress, plain_console, say_where
from .errors import FOLDER, Failure, Interrupted, Mismatch
from .many import jobs_option

if TYPE_CHECKING:
    from t3fpga.build.platforms import Board, Pin


@click.command()
@click.option("--board", "name", required=True, help="Board: ulx3s, ecpix5, icebreaker, hx8k.")
@click.option("--preset", help="Configuration.  [default: the board's]")
@click.option("--seed", type=click.IntRange(0), default=1, help="Seed of place and route: same seed, same bytes.")
@click.option("--seeds", "number", type=click.IntRange(1), default=1, help="Seeds to try, from --seed on.")
@jobs_option("Seeds")
@click.option("--program", is_flag=True, help="Then load the bitstream into the board, which is connected by USB.")
@click.option("--out", "-o", type=FOLDER, help="Folder.  [default: out/BOARD-PRESET]")
def fpga(name: str, preset: str | None, seed: int, number: int, jobs: int, program: bool, out: Path | None) -> None:
    """Build a bitstream of the hardware that tests itself on a board.

    Yosys and nextpnr come from PyPI (extra `fpga`). The folder gets the bitstream of the fastest seed, fpga.json (what
    it uses and what limits its clock) and the programs' logs. A target that is missed is said and does not change the
    exit code; exit code 1 if the board's own oscillator is too fast; then nothing is loaded.
    """
    from t3fpga.build.build import Build
    from t3fpga.build.platforms import BOARDS
    from t3fpga.build.tools import ToolError, Tools

    if name not in BOARDS:
        raise ValueError(f"--board must be one of {', '.join(BOARDS)}, not {name!r}")
    board = BOARDS[name]
    preset = preset or board.presets[0]
    config = hardware_preset(preset)
    out = out or Path("out") / f"{name}-{preset}"
    if program:
        _check_programmer(board)
    build = Build(board=name, preset=preset, config=config, seeds=range(seed, seed + number))
    try:
        build.check()
        with (
            output_folder(out) as folder,
            tempfile.TemporaryDirectory(prefix="t3-fpga-") as work,
            Tools() as tools,
            fpga_progress(Console(stderr=True), f"{name} {preset}", 1 + number) as show,
        ):
            record = build.run(Path(work), tools, show, jobs)
            _keep(Path(work), folder, record)
    except ToolError as error:
        raise Failure(str(error)) from error
    _print(record, board, out)
    fmax = record["fmax_mhz"][str(record["seed"])]
    if fmax < record["oscillator_mhz"]:
        raise Mismatch(
            f"the board's oscillator of {record['oscillator_mhz']:g} MHz is too fast for this bitstream, which is good "
            f"for {fmax:g} MHz: try other seeds or a smaller preset"
        )
    if program:
        _program(board, out, record)


def _keep(work: Path, folder: Path, record: Mapping[str, Any]) -> None:
    """What of the work folder becomes output."""
    shutil.copyfile(work / record["bitstream"]["file"], folder / record["bitstream"]["file"])
    for log in work.glob("*.rpt"):
        shutil.copyfile(log, folder / "synthesis.log")
    for log in work.glob("seed-*/*.tim"):
        shutil.copyfile(log, folder / f"{log.parent.name}.log")
    write_atomically(folder / "fpga.json", json_text(record))


def _print(record: Mapping[str, Any], board: "Board", out: Path) -> None:
    from t3fpga.build.build import verdict

    console = plain_console()
    device = f"{record['device']}, speed grade {record['speed_grade']}"
    console.print(
        f"{record['title']} ({device}), preset {record['preset']}: {record['design']}", soft_wrap=True, highlight=False
    )
    table = FittedTable("", "used", "there", "share")
    for resource, number in record["used"].items():
        share = f"{number['used'] / number['available']:.0%}" if number["available"] else ""
        table.add_row(resource.replace("_", " "), f"{number['used']:,}", f"{number['available']:,}", share)
    console.print(table)
    speeds = ", ".join(f"{fmax:g} (seed {seed})" for seed, fmax in record["fmax_mhz"].items())
    median = f"median {record['median_fmax_mhz']:g}, target {record['target_mhz']:g}: {verdict(record)}"
    console.print(f"Fmax in MHz: {speeds}; {median}", soft_wrap=True, highlight=False)
    path = record["critical_path"]
    length = f"{path['logic_ns']:g} ns of logic and {path['routing_ns']:g} ns of routing"
    console.print(f"its longest path, {length}: {path['from']} to {path['to']}", soft_wrap=True, highlight=False)
    leds = ", ".join(f"{name}: {_words(getattr(board, name))}" for name in ("running", "passed", "failed"))
    console.print(f"{leds}; button: {board.button_text}; 115200 baud, 8N1", soft_wrap=True, highlight=False)
    say_where(out)


def _words(pin: "Pin") -> str:
    """A pin as amaranth-boards names it."""
    return " ".join(map(str, pin))


def _programmer(board: "Board") -> str:
    """The program that loads a bitstream; amaranth-boards looks for it in the same way."""
    return os.environ.get(board.programmer.upper(), board.programmer)


def _check_programmer(board: "Board") -> None:
    from t3fpga.build.platforms import PROGRAMMERS

    if shutil.which(_programmer(board)) is None:
        raise Failure(
            f"--program needs {board.programmer}, and {_programmer(board)!r} is not on the PATH: "
            f"apt install {PROGRAMMERS[board.programmer]}, or set {board.programmer.upper()}; without --program the "
            "bitstream is only built"
        )


def _program(board: "Board", out: Path, record: Mapping[str, Any]) -> None:
    from amaranth.build.run import LocalBuildProducts

    try:
        board.make_platform().toolchain_program(LocalBuildProducts(out), Path(record["bitstream"]["file"]).stem)
    except KeyboardInterrupt as error:
        raise Interrupted(f"interrupted while {_programmer(board)} loaded the bitstream, which is in {out}") from error
    except subprocess.CalledProcessError as error:
        raise Failure(
            f"{_programmer(board)} failed with status {error.returncode}: is the {board.title} connected, and may you "
            f"use its USB port? The bitstream is in {out}"
        ) from error
