"""Coverage of the testbenches: random traffic meets every case in time, and the report tells rare from missing."""

import importlib
import importlib.util
import json
from pathlib import Path

import pytest
from t3hdl.config import preset
from t3hdl.export.identity import hardware_identity
from t3hdl.export.verilog import PARTS
from t3sim.hardware.golden.backend import golden_hardware

from tb.bench_run import BenchRun
from tb.coverage_bins import MEDIUM, SHORT, Coverage
from tb.episodes import episodes
from tb.report import Report
from tb.stimulus.parts import STIMULI
from tb.words import Ports, Trace

CONFIG = preset("small")

needs_cocotb = pytest.mark.skipif(
    importlib.util.find_spec("cocotb") is None, reason="no cocotb: pip install 'opent3[dev]'"
)


def hits(part: str, seed: int) -> dict[str, int]:
    """How often each bin is hit by what a run of medium length plays: the golden model alone shows it."""
    hardware, ports = golden_hardware(CONFIG), Ports.of(PARTS[part](CONFIG).signature)
    coverage = Coverage(importlib.import_module(f"tb.cocotb.tb_{part}").bins(CONFIG), {})
    for _, inputs, outputs in episodes(hardware, part, seed, MEDIUM):
        coverage.sample(Trace(ports, inputs, outputs), 0)
    hardware.close()
    return coverage.hits


@needs_cocotb
@pytest.mark.parametrize("part", STIMULI)
def test_random_traffic_meets_every_case_in_time(part):
    rare = importlib.import_module(f"tb.cocotb.tb_{part}").RARE
    missing = {name for name, count in hits(part, 1).items() if not count and rare.get(name, SHORT) <= MEDIUM}
    assert not missing, "seed 1"


@needs_cocotb
def test_aborts_find_something_to_drop():
    found = hits("tracker", 2)
    assert found["abort with tokens waiting"] and found["abort frees entries"], "seed 2"


# The report


def report(folder: Path, *runs: tuple[str, int, dict[str, int]]) -> Report:
    """What runs (simulator, cycles, hits) of a part give, whose bin ``rare`` is expected from 20000 cycles."""
    whole = Report(folder / "coverage.json", "small", seeds=2, cycles=20_000)
    for number, (simulator, cycles, found) in enumerate(runs):
        job = BenchRun(part="part", simulator=simulator, cycles=cycles, report=str(folder / f"{number}.json"))
        coverage = Coverage({"often": len, "rare": len}, {"rare": MEDIUM})
        coverage.hits |= found
        coverage.save(job.report_path())
        whole.add(job)
    return whole


def test_a_rare_bin_may_be_empty_in_a_short_run(tmp_path, capsys):
    whole = report(tmp_path, ("icarus", 4000, {"often": 3}))
    assert (whole.empty(), whole.failed(bins=True)) == ([], 0)
    assert whole.awaited() == ["part: rare: expected from 20,000 cycles"]
    whole.print()
    assert "not yet hit: part: rare: expected from 20,000 cycles" in capsys.readouterr().out
    whole.write()
    record = json.loads((tmp_path / "coverage.json").read_text())
    part = record["parts"]["part"]
    assert (record["hardware"], record["failures"]) == (hardware_identity(), [])
    assert (record["preset"], record["seeds"], record["cycles"]) == ("small", 2, 20_000)
    assert (part["cycles"], part["expected_from"]) == (4000, {"often": SHORT, "rare": MEDIUM})
    assert "| part | rare | 0 | 20,000 |" in (tmp_path / "coverage.md").read_text()


def test_a_bin_that_is_empty_although_the_runs_are_long_enough_is_a_failure(tmp_path, capsys):
    whole = report(tmp_path, *[("icarus", 10_000, {"often": 3})] * 2)
    assert (whole.empty(), whole.awaited()) == (["part: rare"], [])
    assert (whole.failed(bins=True), whole.failed(bins=False)) == (1, 0)
    whole.print()
    assert "empty bin: part: rare" in capsys.readouterr().out


def test_a_second_simulator_plays_the_same_cycles(tmp_path):
    whole = report(tmp_path, *[(simulator, 10_000, {"often": 3}) for simulator in ("verilator", "icarus")])
    assert (whole.length("part"), whole.failed(bins=True)) == (10_000, 0)


def test_nothing_is_expected_of_a_very_short_run(tmp_path):
    assert report(tmp_path, ("icarus", SHORT - 1, {})).failed(bins=True) == 0


def test_a_rare_bin_must_exist(tmp_path):
    with pytest.raises(ValueError, match="no bins of these names: raer"):
        Coverage({"rare": len}, {"raer": MEDIUM}).save(tmp_path / "coverage.json")
