"""No access waits for the tracker at the memory's rate, nor when GEMMs store fast; one that does is seen."""

import io
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from opent3.tables import tracker_table
from rich.console import Console
from t3hdl.config import preset
from t3sim.cli import main as cli
from t3sim.validation.memory_rate import measure
from t3sim.validation.memory_rate.contexts import CONTEXTS
from t3sim.validation.memory_rate.measure import LARGE, SMALL, cause_of, hardware_of, simulated, streamed
from t3sim.validation.memory_rate.record import TrackerWaits
from t3sim.validation.memory_rate.regimes import REGIMES
from t3sim.validation.memory_rate.streams import Streamed, stream

TOY = [regime for regime in REGIMES if regime.machine == "toy"]
BY_NAME = {contexts.name: contexts for contexts in CONTEXTS}


@pytest.mark.parametrize("contexts", CONTEXTS, ids=lambda contexts: contexts.name)
def test_two_contexts_never_wait_on_small_hardware(contexts):
    config = preset("small")
    row = streamed(contexts, "small", config, stream(config, contexts.jobs(config), "golden"))
    assert (row.blocked, row.cause) == (0, "")
    assert row.lines > 10_000 and (row.overflowed_chunks > 0 or contexts.addends == 1)


def test_the_one_output_of_a_leaf_is_named():
    """On the FPGA's hardware all tokens go through one output, and short bursts are sometimes more than that."""
    config = preset("fpga")
    contexts = BY_NAME["64 columns"]
    row = streamed(contexts, "fpga", config, stream(config, contexts.jobs(config), "golden"))
    assert 0 < row.blocked < row.lines / 20
    assert row.cause.endswith("a token each; 1 output of the leaves passes 1 at most")


@pytest.mark.long
@pytest.mark.parametrize("contexts", CONTEXTS, ids=lambda contexts: contexts.name)
def test_compiled_rtl_streams_as_its_golden_model(contexts):
    config = preset("small")
    rtl, golden = (stream(config, contexts.jobs(config), backend) for backend in ("rtl", "golden"))
    assert rtl == golden


@pytest.mark.slow
@pytest.mark.parametrize("contexts", CONTEXTS, ids=lambda contexts: contexts.name)
def test_the_papers_banks_count_what_the_papers_machine_makes(contexts):
    """Short bursts at the rate of memory alone, which no source of the machine reaches, are more than the banks count;
    with tiles of 64 columns some wait when memory takes what has gathered in its queues."""
    config = preset("paper")
    row = streamed(contexts, "paper", config, stream(config, contexts.jobs(config), "golden"))
    too_short = contexts.name in ("unaligned", "short rows", "64 columns", "64 columns, as made")
    assert (row.blocked > 0) == too_short
    cause = "the sources make" if contexts.paced else "memory can take"
    assert row.cause.startswith(cause) == too_short


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "name"), [(9, "64 columns, as made"), (32, "unaligned"), (32, "short rows")])
def test_a_deeper_token_queue_takes_in_what_comes_at_once(depth, name):
    """Where the banks count more than comes on average, a queue of 32 tokens is deep enough; at the sources' rate,
    one of 9."""
    (config,) = (config for _, settings, config in hardware_of(["paper"]) if settings == f"token_queue={depth}")
    assert config == preset("paper", token_queue=depth)
    row = streamed(BY_NAME[name], "paper", config, stream(config, BY_NAME[name].jobs(config), "golden"))
    assert (row.blocked, row.cause) == (0, "") and row.lines > 500_000


def test_deeper_token_queues_are_measured_of_the_papers_hardware_alone():
    assert [(where, settings) for where, settings, _ in hardware_of(SMALL)] == [(preset, "") for preset in SMALL]
    settings = [settings for where, settings, _ in hardware_of(LARGE) if where == "paper"]
    assert settings == ["", "token_queue=9", "token_queue=16", "token_queue=32"]


def test_every_hardware_has_a_row_for_each_regime_with_its_settings(monkeypatch):
    tracked = dict.fromkeys(("updates", "overflowed", "unmatched", "over_count", "over_total"), 0) | {"updates": 6}
    depths, seen = [], []

    def streamed_at_once(config, jobs, hardware):
        depths.append(config.token_queue)
        return Streamed(cycles=9, bursts=2, lines=6, held=0, left=0, tracked=tracked)

    monkeypatch.setattr(measure, "stream", streamed_at_once)
    found = measure.measure("golden", LARGE, [], seen.append)
    wanted = [(where, settings) for where, settings, _ in hardware_of(LARGE) for _ in CONTEXTS]
    assert [(row.where, row.settings) for row in found.rows] == wanted
    assert seen == list(range(1, len(wanted) + 1))
    assert depths == [depth for depth in (8, 8, 9, 16, 32) for _ in CONTEXTS]
    shown = io.StringIO()
    Console(width=200, file=shown).print(tracker_table(found))
    assert "  paper, token_queue=16  " in shown.getvalue()


def test_what_paced_sources_make_is_less_than_what_memory_takes_of_its_queues():
    """Of the paper's machine: four bursts of stores, and bursts of three lines that a link of 4.7 lines brings."""
    contexts, config = BY_NAME["64 columns, as made"], preset("paper")
    assert cause_of(contexts, config, bursts=1, lines=3) == (
        "the sources make 5.6 bursts per cycle at most, but memory takes what has gathered in its queues, up to 10.7 "
        "in a cycle, a token each; 8 banks count 8 at most"
    )


def test_a_bank_that_is_too_slow_shows():
    """Memory takes nearly three tokens per cycle, and there is one bank."""
    config = preset("small", slices=16, node_inputs=4, tracker_banks=1)
    row = streamed(BY_NAME["64 columns"], "small", config, stream(config, BY_NAME["64 columns"].jobs(config), "golden"))
    assert row.blocked > row.lines / 2
    assert row.cause == "memory can take 2.9 bursts per cycle on average, a token each; 1 bank counts 1 at most"


@pytest.mark.parametrize("wrong", [{"updates": 5}, {"over_count": 1}, {"unmatched": 1}, {"over_total": 1}])
def test_lines_that_are_not_counted_stop_the_measurement(wrong):
    tracked = {"updates": 6, "overflowed": 0, "unmatched": 0, "over_count": 0, "over_total": 0}
    found = Streamed(cycles=9, bursts=2, lines=6, held=0, left=0, tracked=tracked)
    assert streamed(CONTEXTS[0], "small", preset("small"), found).lines == 6
    with pytest.raises(ValueError, match=r"of 6 lines of two contexts \(aligned, small\), with errors"):
        streamed(CONTEXTS[0], "small", preset("small"), replace(found, tracked=tracked | wrong))


@pytest.mark.parametrize("regime", TOY, ids=lambda regime: regime.name)
def test_no_access_waits_on_the_toy_machine(regime):
    row = simulated(regime, "golden")
    assert (row.blocked, row.cause) == (0, "")
    assert row.overflowed_chunks > 0 and row.lines > 1000


def test_waits_for_one_bank_are_seen_in_a_run():
    """The same GEMM without a wait, on hardware whose tracker takes one token per cycle."""
    narrow = ("hardware.tracker_banks=1", "hardware.leaf_outputs=1", "hardware.token_queue=2")
    row = simulated(replace(TOY[-1], settings=(*TOY[-1].settings, *narrow)), "golden")
    assert row.blocked > 100 and row.cause == "a burst waits at a slice whose token waits"


@pytest.mark.slow
@pytest.mark.parametrize("regime", REGIMES, ids=lambda regime: f"{regime.machine} {regime.name}")
def test_no_access_waits_in_any_regime(regime):
    assert simulated(regime, "golden").blocked == 0


def test_the_command_shows_and_keeps_every_row(monkeypatch, tmp_path):
    monkeypatch.setattr(measure, "CONTEXTS", CONTEXTS[-1:])
    result = CliRunner().invoke(cli.main, ["validate", "tracker", "--quick", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    record = TrackerWaits.model_validate(json.loads((tmp_path / "out" / "tracker.json").read_text()))
    assert [row.where for row in record.rows] == [*SMALL, *["machine toy"] * len(TOY)]
    assert record.hardware["version"].count(".") == 2 and len(record.hardware["netlist"]) == 16
    assert all(row.regime in result.stdout for row in record.rows)


def test_unknown_hardware_is_refused_as_by_all_commands():
    result = CliRunner().invoke(cli.main, ["validate", "tracker", "--hardware", "fpga"])
    assert (result.exit_code, result.stderr) == (2, "Error: --hardware must be one of rtl, golden, not 'fpga'\n")
