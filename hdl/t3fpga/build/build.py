"""From a board and a configuration to a bitstream: Amaranth writes the files, Yosys and nextpnr do the work."""

import hashlib
import json
import os
import shutil
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from t3hdl.config import T3Config
from t3hdl.export.identity import hardware_identity

from .netlist import area, critical_path, fmax_mhz, over_utilised, used
from .platforms import BOARDS, Board, OnBoard
from .tools import ToolError, Tools, versions

CONSTRAINT = 1.25
"""nextpnr is asked for the target times this, so that it goes on improving what is already good enough."""

TIMING_WEIGHTS = {"ecp5": 400, "ice40": 100}
"""Of critical wires in nextpnr's placer, which has 10 by default and with that pulls apart what wide enables connect:
wires are then most of the longest paths. Tried on ULX3S, preset ``fpga``, seed 1: 60 gives 64.8 MHz, 200 78.5, 400 82.5
in a quarter of an hour each; with 100 the router was not through after 35 minutes. No optimum was sought, and nothing
tried for iCE40, which is far from its limit."""

_COLLECT = "proc\nmemory_collect\nsetattr -set ram_style "
MEMORIES = {
    "ecp5": _COLLECT
    + '"distributed" t:$mem_v2 r:SIZE<=128 %i r:SIZE>=128 r:WIDTH>=64 %i %d r:WR_PORTS=0 %d a:ram_style %d',
    "ice40": _COLLECT + '"block" t:$mem_v2 r:WIDTH>=128 %i',
}
"""For Yosys. ECP5: block RAM has its data 5.8 ns after the clock edge, distributed RAM, at this depth, before that,
unless it is both as deep and as wide as the tile marks, whose cells lie far apart; what is only read becomes logic.
iCE40 has no other memory: a wide table of few rows would become flip-flops, of which there are fewer to spare."""

Record = dict[str, Any]
"""The contents of ``fpga.json``: of the fastest seed, whose bitstream is kept, and Fmax of all of them."""

Show = Callable[[str, str], None]
"""Told which step (``synthesis``, ``seed 1``) a build is in, and how far it is; nothing when the step is over."""


class DoesNotFitError(ToolError):
    """The design needs more than the device has; the message has both numbers."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """One seed's result: nextpnr's report and the bitstream."""

    seed: int
    report: dict[str, Any]
    bitstream: Path

    @property
    def fmax(self) -> float:
        """MHz."""
        return fmax_mhz(self.report)


@dataclass(frozen=True, kw_only=True)
class Build:
    """What is built: a board's test of one configuration, placed once for each seed."""

    board: str
    preset: str
    config: T3Config
    seeds: Sequence[int]

    def check(self) -> None:
        """Raises ToolError if a program is missing, or if the environment would change the build."""
        _check_environment()
        versions(_family(_platform(BOARDS[self.board])))

    def run(
        self, folder: Path, tools: Tools, show: Show, jobs: int = 1,
        begun: Record | None = None, keep: Callable[[Record], None] = lambda record: None,
    ) -> Record:  # fmt: skip
        """Fills ``folder`` and returns the record of ``fpga.json``; ``jobs`` seeds at a time.

        ``begun`` is a record of earlier: its seeds are not placed again if it is of this very build. ``keep`` is told
        the record of all seeds so far whenever there is one more.

        Raises DoesNotFitError, ToolError (also for an environment that would change the build), and ValueError if the
        board's test cannot run on this configuration.
        """
        self.check()
        board = BOARDS[self.board]
        platform = _platform(board)
        tool_versions = versions(_family(platform))
        name = f"t3_{self.board}"
        commands = self._prepare(board, platform, name, folder)
        show("synthesis", "begins")
        tools.run(commands[0], folder, partial(show, "synthesis"))
        show("synthesis", "")
        netlist = folder / f"{name}.json"
        build = self._inputs(board, platform, tool_versions, netlist)
        record = None
        if begun and _of(begun, build, self.seeds):
            record = begun | {"hardware": build["hardware"]}
            if record != begun:
                keep(record)
        seeds = [seed for seed in self.seeds if not record or str(seed) not in record["fmax_mhz"]]
        place = partial(self._place, commands[1:], name, folder, platform, tools, show)
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for placement in pool.map(place, seeds):
                    result = build | _result(placement, _family(platform), build["area"])
                    record = combined(record, result) if record else result
                    if record["seed"] == placement.seed:
                        shutil.copyfile(placement.bitstream, folder / placement.bitstream.name)
                    keep(record)
            except BaseException:
                tools.stop()
                raise
        assert record, "at least one seed"
        return record

    def _prepare(self, board: Board, platform: Any, name: str, folder: Path) -> list[list[str]]:
        """Writes the design, its constraints and scripts; returns the commands: synthesis, placement, packing."""
        clock = f"{platform.default_clk}_0__io"
        test = board.test(self.preset)
        megahertz = test.target_mhz * CONSTRAINT
        weight = TIMING_WEIGHTS[_family(platform)]
        design = test.design(config=self.config, clock_hz=round(platform.default_clk_frequency))
        plan = platform.prepare(
            OnBoard(board, design),
            name,
            emit_src=False,  # no paths of this machine
            verbose=True,
            script_after_read=MEMORIES[_family(platform)],
            nextpnr_opts=f"--report report.json --timing-allow-fail --placer-heap-timingweight {weight}",
            add_preferences=f'FREQUENCY PORT "{clock}" {megahertz} MHZ;',  # ECP5; the later one holds
            add_constraints=f"set_frequency {clock} {megahertz}",  # iCE40
        )
        plan.extract(folder)
        return json.loads(plan.files[f"build_{name}.json"])["commands"]

    def _place(
        self, commands: Sequence[Sequence[str]], name: str, folder: Path, platform: Any, tools: Tools, show: Show,
        seed: int,
    ) -> Placement:  # fmt: skip
        """Place, route and pack with one seed, in a folder of its own."""
        own = folder / f"seed-{seed}"
        own.mkdir()
        for suffix in (".json", ".lpf", ".pcf"):
            if (folder / f"{name}{suffix}").exists():
                shutil.copyfile(folder / f"{name}{suffix}", own / f"{name}{suffix}")
        placement, packing = commands
        tell = partial(show, f"seed {seed}")
        tell("begins")
        try:
            tools.run([*placement, "--seed", str(seed)], own, tell)
        except ToolError as error:
            log = own / f"{name}.tim"  # not there if nextpnr failed before it began one
            excess = over_utilised(log.read_text() if log.exists() else "", _family(platform))
            if not excess:
                raise
            need = ", ".join(f"{needed:,} {name} of {there:,}" for name, (needed, there) in excess.items())
            raise DoesNotFitError(
                f"preset {self.preset!r} does not fit on {BOARDS[self.board].title} ({platform.device}): "
                f"it needs {need.replace('_', ' ')}; choose a smaller preset or board"
            ) from error
        tools.run(packing, own, tell)
        tell("")
        (bitstream,) = (path for path in (own / f"{name}.bit", own / f"{name}.bin") if path.exists())
        return Placement(seed=seed, report=json.loads((own / "report.json").read_text()), bitstream=bitstream)

    def _inputs(self, board: Board, platform: Any, tool_versions: dict[str, str], netlist: Path) -> Record:
        """What of a record does not depend on the seeds; two builds in which it is the same place the same netlist."""
        return {
            "board": self.board,
            "title": board.title,
            "device": platform.device,
            "package": platform.package,
            "speed_grade": board.speed_grade,
            "preset": self.preset,
            "parameters": asdict(self.config),
            "hardware": hardware_identity(),
            "design": board.test(self.preset).design.__name__,
            "oscillator_mhz": platform.default_clk_frequency / 1e6,
            "target_mhz": board.test(self.preset).target_mhz,
            "constraint_mhz": board.test(self.preset).target_mhz * CONSTRAINT,
            "timing_weight": TIMING_WEIGHTS[_family(platform)],
            "netlist_sha256": _sha256(netlist),
            "area": area(netlist),
            "tools": tool_versions,
        }


def _result(placement: Placement, family: str, areas: Record) -> Record:
    """What of a record depends on the seed, for one seed."""
    return {
        "fmax_mhz": {str(placement.seed): placement.fmax},
        "median_fmax_mhz": placement.fmax,
        "seed": placement.seed,
        "bitstream": {"file": placement.bitstream.name, "sha256": _sha256(placement.bitstream)},
        "used": used(placement.report, family, areas),
        "critical_path": critical_path(placement.report),
    }


def combined(record: Record, other: Record) -> Record:
    """One record of two of the same build: Fmax of the seeds of both, all else of the fastest; the first, if equal."""
    best = max(record, other, key=lambda one: one["fmax_mhz"][str(one["seed"])])
    fmax = record["fmax_mhz"] | other["fmax_mhz"]
    return best | {
        "fmax_mhz": {seed: fmax[seed] for seed in sorted(fmax, key=int)},
        "median_fmax_mhz": statistics.median(fmax.values()),
    }


def verdict(record: Mapping[str, Any]) -> str:
    """Whether the fastest seed, whose bitstream is kept, reaches the target, and whether the seeds' median does, which
    says what to expect after the next change."""
    target = record["target_mhz"]
    if record["median_fmax_mhz"] >= target:
        return "met"
    return "met by the fastest seed, missed by the median" if max(record["fmax_mhz"].values()) >= target else "missed"


def _of(record: Record, build: Record, seeds: Sequence[int]) -> bool:
    """Whether a record that was read from its file is of this build, and of no other seeds. What of the hardware has
    changed since is not in the build if the design's netlist is the same."""
    inputs = {name: value for name, value in json.loads(json.dumps(build)).items() if name != "hardware"}
    same = all(record.get(name) == value for name, value in inputs.items())
    return same and set(record["fmax_mhz"]) <= set(map(str, seeds))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _check_environment() -> None:
    """Raises ToolError for a variable by which Amaranth overrides an option of the build: these have small letters."""
    for name in os.environ:
        if name.startswith("AMARANTH_") and name.removeprefix("AMARANTH_").islower():
            raise ToolError(
                f"the environment variable {name} changes what is built, and no record would say so: unset it"
            )


def _platform(board: Board) -> Any:
    """Raises ToolError without amaranth-boards."""
    try:
        return board.make_platform()
    except ModuleNotFoundError as error:
        versions("ecp5")  # names what is missing
        raise ToolError(str(error)) from error


def _family(platform: Any) -> str:
    """As in nextpnr's name."""
    return platform.family.lower()
