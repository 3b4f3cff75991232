"""The validation page: what it measures is right, what is cheap to measure is up to date, and results are embedded."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from t3sim.inputs.machine.files import load_machine
from t3sim.run.ideal import COMPUTED
from t3sim.run.request import Policy
from t3sim.study.reproduction import FigureRecord, Reproduction, RunRecord
from t3sim.study.sources import digest_for
from t3sim.study.sweep import Geomeans, SweepRecord, SweptVariant

from docs.pages import validation
from docs.pages.__main__ import main as pages
from docs.pages.texts.ring_model import ASTRA_REGRESSION, ASTRA_REGRESSION_NS, AstraRing, pass_ns
from docs.pages.validated.checks import LINK_SETTINGS, closed_form_rows, path_ns, ring_pass
from docs.pages.validated.reproduced import published_section, reproduced_section
from tests.support.crafted_records import crafted

PAGE = validation.PAGE.read_text(encoding="utf-8")


def sections() -> dict[str, str]:
    return dict(part.split("\n\n", 1) for part in PAGE.split("\n## ")[1:])


def test_the_page_has_every_section_in_order():
    titles = list(sections())
    assert set(titles) == {*validation.SECTIONS, validation.PUBLISHED}
    assert titles[-1] == "What was not validated"


@pytest.mark.parametrize("title", validation.CHEAP)
def test_what_needs_no_simulation_is_up_to_date(title):
    text = sections()[title].rstrip("\n")
    assert text == validation.SECTIONS[title]().rstrip("\n"), "old page: run python -m docs.pages validation"


def test_the_published_results_are_those_that_are_kept():
    text = published_section(validation.KEPT, validation.KEPT_SENSITIVITY, validation.PAGE.parent)
    assert sections()[validation.PUBLISHED].rstrip("\n") == text.rstrip("\n")


def test_there_is_a_table_for_each_machine_that_claims_to_be_the_paper_s():
    machines = [line.split("`")[1] for line in sections()[validation.PUBLISHED].splitlines() if line[:5] == "### M"]
    assert machines == ["paper", "paper-accelsim"]


def test_every_closed_form_of_the_page_holds():
    rows = [line for line in sections()["Closed forms of the traffic"].splitlines() if "`" in line and line[0] == "|"]
    assert len(rows) == 25
    assert all(row.endswith("| 0 |") for row in rows)


@pytest.mark.long
def test_closed_forms_hold_now():
    wrong = [row for row in closed_form_rows() if row.measured != row.expected]
    assert not wrong


# The ring


def test_astra_sim_s_published_number_comes_out_exactly():
    assert ASTRA_REGRESSION.all_reduce_ns == ASTRA_REGRESSION_NS == 117_780


def test_astra_sim_s_model_is_the_plain_ring_without_its_extras():
    model = AstraRing(size_bytes=8 << 30, npus=8, gb_s=1e9 / 2**30, latency_ns=500, splits=1,
                      local_memory_gb_s=1e30, endpoint_delay_ns=0)  # fmt: skip
    plain = pass_ns(gpus=8, chunk_bytes=1 << 30, gb_s=1, latency_ns=500)
    assert model.memory_ns == model.endpoint_ns == 0
    assert model.all_reduce_ns == 2 * plain


@pytest.mark.parametrize(("change", "extra"), [({"latency_ns": 900}, 400), ({"gb_s": 5.0}, 49)])
def test_one_packet_takes_what_link_and_latency_add(change, extra):
    """272 bytes with the header: 54 ns instead of 5 at a tenth of the rate."""
    assert ring_pass(2, 1, **change).all_gather_ns - ring_pass(2, 1).all_gather_ns == pytest.approx(extra, abs=1)


def test_packets_follow_each_other_at_the_link_s_rate():
    few, many = ring_pass(2, 64), ring_pass(2, 512)
    assert many.all_gather_ns - few.all_gather_ns == pytest.approx(448 * 272 / 50, abs=20)


def test_a_step_takes_the_link_s_time_and_a_fixed_rest():
    path = path_ns(load_machine("paper", LINK_SETTINGS))
    for gpus, rows in ((2, 256), (4, 64), (4, 256)):
        assert 0.6 * path < ring_pass(gpus, rows).rest_per_step_ns < 1.4 * path


# Published results


def figure(**values) -> FigureRecord:
    content = {
        "name": "a", "table": "t", "title": "A", "unit": "x", "published": 1.3, "low": 1.27, "high": 1.33,
        "band": "target", "measured": 1.31, "own_rule": 1.32, "verdict": "inside", "note": "", "source": "s",
    }  # fmt: skip
    return FigureRecord.model_validate(content | values)


def run(mirror: bool, total: float, policy: Policy = "t3", sublayer: str = "fc2") -> RunRecord:
    result = crafted(
        "t3", mirror=mirror, workload__sublayer=sublayer, time_ns__total=total, time_ns__gemm=total / 2,
        contention__dram__bus_use=0.3 if mirror else 0.25, contention__cu_stall_ns__loads=total / 100,
        contention__compute__lines=1000, contention__compute__blocked_by_other_stream_cycles=20,
        contention__compute__blocked_by_full_queue_cycles=1500,
    )  # fmt: skip
    ideal = {"contention": None} if policy in COMPUTED else {}
    return RunRecord(variant="base", speedup=None, result=result.model_copy(update={"policy": policy, **ideal}))


def write(folder: Path, **changes) -> Path:
    """A record of t3 reproduce in ``folder``, with these fields changed."""
    below = figure(
        title="B", unit="%", measured=-20.0, own_rule=-19.5, low=None, high=-19.0, verdict="outside", note="the cause"
    )
    content = {
        "sources": digest_for("golden"), "machine": "paper", "settings": {"link.gb_s": 75}, "hardware": "golden",
        "quick": False, "seed": 0, "tables": [], "models": [], "failures": [],
        "runs": [run(False, 200_000.0), run(True, 190_000.0)],
        "figures": [figure(), below, figure(title="C", measured=None, verdict="not run")],
    }  # fmt: skip
    record = Reproduction(**content | changes)
    (folder / "reproduce.json").write_text(record.model_dump_json(by_alias=True))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "speedups.png").touch()
    return write(tmp_path)


def test_results_are_put_beside_the_published_ones_with_causes_and_charts(folder):
    text = reproduced_section("paper", folder, folder.parent)
    assert "| A | 1.30x | 1.31x | 1.32x | 1.27x to 1.33x | yes |" in text
    assert "| B | 1.3 % | -20.0 % | -19.5 % | at most -19.0 % | **no** |" in text
    assert "- B: the cause" in text
    assert "| C |" not in text
    assert "`link.gb_s=75`" in text
    assert "| t-nlg fc2 TP 8 | t3 | 200.0 | 190.0 | -5.00% |" in text
    assert f"[speedups]({folder.name}/speedups.png)" in text


def test_row_conflicts_at_tp_32_are_told_by_who_closes_whose_rows(folder):
    dram = {
        "contention__dram__row_hits": 1_000_000, "contention__dram__row_misses": 0,
        "contention__dram__row_conflicts": 1_000_000,
        "contention__dram__conflicts": {"gemm_read": {"gemm_write": 100_000, "rs_read": 200_000},
                                        "rs_write": {"gemm_read": 300_000, "ag_read": 400_000}},
    }  # fmt: skip
    for_tp = {"workload__model": "palm", "workload__sublayer": "op", "workload__tp": 32}
    runs = [RunRecord(variant="base", speedup=None, result=crafted("t3", **dram, **for_tp))]
    text = reproduced_section("paper", write(folder, runs=runs), folder.parent)
    assert "| palm op TP 32 | t3 | 2.0 M | 50.0 | 5.0 | 10.0 | 15.0 | 20.0 |" in text


def test_a_record_of_another_simulator_and_without_the_own_rule_says_so(folder):
    assert "earlier version" not in reproduced_section("paper", folder, folder.parent)
    write(folder, sources="0123456789abcdef", figures=[figure(own_rule=None)])
    text = reproduced_section("paper", folder, folder.parent)
    assert "**These results are from an earlier version of the simulator.**" in " ".join(text.split())
    assert "| A | 1.30x | 1.31x | 1.27x to 1.33x | yes |" in text and "own rule" not in text


def test_a_figure_inside_its_band_keeps_its_note(folder):
    write(folder, figures=[figure(note="the machine was derived from it")])
    text = reproduced_section("paper", folder, folder.parent)
    assert "Inside, and to be known:\n\n- A: the machine was derived from it\n" in text


@pytest.mark.parametrize(("settings", "told"), [({"arbiter.mca": "paper"}, True), ({"link.gb_s": 75}, False)])
def test_the_cause_of_a_machine_is_told_of_that_machine_alone(folder, settings, told):
    """What the record says of a figure that is still published does not count: it may be found wrong, or explained."""
    miss = figure(name="t3-geomean", title="t3", verdict="outside", note="as it was recorded")
    write(folder, figures=[miss], settings=settings)
    text = reproduced_section("paper", folder, folder.parent)
    assert ("- t3: here the streams hardly hurt each other" in text) == told
    assert ("- t3: cause not known" in text) != told


def test_assumptions_are_listed_with_what_they_move(folder):
    def variant(name: str, mca: float, change: float) -> SweptVariant:
        means = Geomeans(speedups={"t3": 1.2, "t3-mca": mca}, gemm_reads=1.5, data_movement=0.78)
        changes = {"t3-mca": change}
        return SweptVariant(name=name, machine="paper", settings={}, why="reason", geomeans=means, changes=changes,
                            runs=[])  # fmt: skip

    path = folder / "sensitivity.json"
    record = SweepRecord(
        sources="0" * 16, machine="paper", settings={}, hardware="golden", seed=0, failures=[],
        variants=[variant("base", 1.3, 0), variant("slow", 1.17, -10)],
    )  # fmt: skip
    path.write_text(record.model_dump_json(by_alias=True))
    text = published_section({"paper": folder}, path, folder.parent)
    assert "| slow | reason | 1.200x (+0.0 %) | 1.170x (-10.0 %) | 1.50x (+0.0 %) | 0.78 (+0.0 %) |" in text


def test_without_results_the_section_says_how_to_get_them():
    text = reproduced_section("paper-accelsim", Path("nowhere"), Path())
    assert "`t3 reproduce --machine paper-accelsim -o docs/results/nowhere`" in text


def test_what_the_streams_cost_each_other_is_measured_in_the_runs(folder):
    text = " ".join(reproduced_section("paper", folder, folder.parent).split())
    assert "at TP 8 and 16, the DRAM's data bus is in use for 25.0 to 30.0 % of the time" in text
    assert "wait for loads 2.0 to 2.0 % of the GEMM's time" in text
    assert "waits 0.0 to 0.0 memory clocks for communication's turn and 1.5 to 1.5 for room in the DRAM queue" in text


def test_waits_that_were_not_observed_are_not_told(folder):
    unseen = run(False, 200_000.0)
    write(folder, runs=[unseen.model_copy(update={"result": unseen.result.model_copy(update={"contention": None})})])
    assert "What the streams cost" not in reproduced_section("paper", folder, folder.parent)


def test_a_reduction_near_memory_is_held_against_a_run_of_its_own_kind(folder):
    plain, near = COMPUTED
    runs = [
        run(False, 103.0, plain, "op"), run(False, 100.0, near, "op"), run(True, 105.0, plain, "op"),
        run(False, 90.0, plain), run(False, 90.0, near), run(True, 102.0, plain), run(True, 100.0, near),
    ]  # fmt: skip
    write(folder, runs=runs)
    text = " ".join(reproduced_section("paper", folder, folder.parent).split())
    assert (
        "`ideal-overlap-nmc` over `ideal-overlap`: 3.0% for t-nlg op TP 8, 2.0% for t-nlg fc2 TP 8 (mirrored)." in text
    )
    assert "At the other 1 sublayers the GEMM hides either reduction." in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("[]", "is not a record of this version"),
        ("{}", "has format None"),
    ],
)
def test_files_that_are_not_of_reproduce_are_refused_in_one_line(monkeypatch, folder, content, message):
    path = folder / "reproduce.json"
    path.unlink() if content is None else path.write_text(content)
    monkeypatch.setattr(validation, "KEPT", {"paper": folder})
    result = CliRunner().invoke(pages, ["validation"])
    assert result.exit_code == 1
    assert message in result.stderr and result.stderr.count("\n") == 1
