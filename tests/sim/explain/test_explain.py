"""Explanations of records whose answer is known, and of toy runs."""

import json
import re
from pathlib import Path

import pytest
from t3sim.common.json_text import json_text
from t3sim.explain import causes
from t3sim.explain.case import Case, Finding
from t3sim.explain.folder import explain, read_records, to_json
from t3sim.explain.rules import ANY, SIMULATED, findings
from t3sim.run.ideal import ideal_overlap
from t3sim.run.records import Comparison
from t3sim.run.result import Result, StreamContention, Waits, write_result

from tests.support.crafted_records import crafted
from tests.support.sample_result import sample_run
from tests.support.system_cases import EVEN, run


def found(record: Result, alone: Result | None = None) -> dict[str, Finding]:
    """Findings by rule."""
    every = findings(Case(record=record, alone=alone))
    assert len({item.rule for item in every}) == len(every)
    return {item.rule: item for item in every}


def limit_of(record: Result) -> str:
    return named_limit(found(record)["limit"].text)


def named_limit(text: str) -> str:
    """Of the sentence that names it."""
    name = re.search(r"the limit is (compute|memory|the link|none)", text)[1]
    return {"the link": "link", "none": "rest"}.get(name, name)


def test_the_causes_of_waits_are_those_of_the_record():
    blocked = {name for name in StreamContention.model_fields if name.startswith("blocked_by_")}
    assert set(causes.FIELDS.values()) == blocked
    assert set(causes.TITLES) == set(causes.SHORT) == set(causes.FIELDS) == set(Waits.model_fields)


def test_compute_bound():
    every = found(crafted())
    assert every["gemm_bound"].text.endswith("compute is the GEMM's bound.")
    assert "the limit is compute" in every["limit"].text
    assert limit_of(crafted()) == "compute"
    # 1000 ns of compute: half would go, but under the GEMM there are 300 ns of link, which then decide
    assert every["limit"].figures["compute_gain_ns"] == 500.0
    assert every["limit"].figures["compute_ns"] == 1000.0


def test_a_gain_of_compute_ends_where_the_reduce_scatter_does():
    figures = found(crafted(contention__link_busy_ns=1000.0))["limit"].figures
    assert figures["compute_gain_ns"] == pytest.approx(1000 - 600)


def test_what_is_exposed_is_what_comes_behind_the_gemm_whatever_gaps_there_are():
    """1000 ns of GEMM, 400 ns of all-gather: 300 ns come between them, though the link rests in some of them."""
    record = crafted(time_ns__total=1700.0, time_ns__reduce_scatter=800.0, time_ns__exposed_communication=450.0)
    assert Case(record=record).exposed_reduce_scatter == 300.0


def test_a_faster_link_shortens_all_of_the_reduce_scatter_as_far_as_it_is_exposed():
    """As much of the link's time lies in both collectives: 480 ns of 600, 320 ns of 400."""
    record = crafted(contention__link_busy_ns=800.0, time_ns__total=1500.0, time_ns__exposed_communication=500.0)
    assert found(record)["limit"].figures["link_gain_ns"] == pytest.approx(min(100, 480 / 2) + 320 / 2)


@pytest.mark.parametrize(("bus", "reason"), [(0.9, "by its bandwidth"), (0.2, "by its latency more than")])
def test_memory_bound(bus, reason):
    record = crafted(contention__cu_stall_ns={"loads": 500.0, "stores": 200.0}, contention__dram__bus_use=bus)
    every = found(record)
    assert "memory is the GEMM's bound" in every["gemm_bound"].text and reason in every["gemm_bound"].text
    assert "50 % of the time for inputs and 20 % for its stores" in every["gemm_bound"].text
    assert limit_of(record) == "memory"
    assert every["limit"].figures["memory_ns"] == 700.0


def test_memory_that_slows_a_compute_bound_gemm_down():
    text = found(crafted(contention__cu_stall_ns={"loads": 200.0, "stores": 0.0}))["gemm_bound"].text
    assert "compute is the GEMM's bound, and memory slows it down" in text


def test_link_bound_sequential():
    record = crafted("sequential", contention__link_busy_ns=940.0, time_ns__gemm=500.0, time_ns__total=1500.0)
    every = found(record)
    # 60 bytes of the reduce-scatter, of which an eighth is not on the link, and 40 of the all-gather
    scatter = 940 * 52.5 / 92.5
    assert every["link"].figures["reduce_scatter"] == pytest.approx(scatter / 600)
    assert "the bound of the reduce-scatter and of the all-gather" in every["link"].text
    assert limit_of(record) == "link"


def test_link_bound_tail_counts_as_the_links():
    """With overlap a reduce-scatter longer than the GEMM comes behind it."""
    changes = {
        "time_ns__total": 3400.0, "time_ns__reduce_scatter": 2900.0, "time_ns__exposed_communication": 2400.0,
    }  # fmt: skip
    busy = crafted(contention__link_busy_ns=4500.0, **changes)
    assert "bound of the reduce-scatter" in found(busy)["link"].text
    assert limit_of(busy) == "link"
    assert found(busy)["limit"].figures["link_ns"] == 2000 + 400
    idle = crafted(contention__link_busy_ns=500.0, **changes)
    assert limit_of(idle) == "rest"
    assert "none of the three" in found(idle)["limit"].text


def test_link_that_is_no_bound():
    every = found(crafted())
    assert every["link"].figures == {"reduce_scatter": pytest.approx(0.5), "all_gather": pytest.approx(0.5)}
    assert "not the bound of either" in every["link"].text


def test_nothing_overlapped():
    every = found(crafted("sequential"))
    assert every["overlap"].text.startswith("Nothing overlaps")
    assert every["overlap"].figures == {"hidden_ns": 0.0, "most_ns": 600.0}
    never = found(crafted(time_ns__total=2000.0, time_ns__exposed_communication=1000.0))["overlap"]
    assert never.text.startswith("None of the reduce-scatter") and never.figures["hidden"] == 0


def test_all_and_some_overlapped():
    assert found(crafted())["overlap"].figures == {"hidden_ns": 600.0, "behind_ns": 0.0, "hidden": 1.0}
    some = found(crafted(time_ns__total=1550.0, time_ns__exposed_communication=550.0))["overlap"]
    assert "75 % is hidden" in some.text and "150.0 ns (10 % of the run) come behind it" in some.text


def test_blocked_by_the_tracker():
    assert "tracker" not in found(crafted())
    stream = crafted().contention.communication.model_dump()
    waiting = stream | {"blocked_by_tracker_cycles": 30, "blocked_by_full_queue_cycles": 10}
    every = found(crafted(contention__communication=waiting))
    assert "75 % of what lines waited at memory slices was for the tracker" in every["tracker"].text
    rarely = stream | {"blocked_by_tracker_cycles": 1, "blocked_by_full_queue_cycles": 99}
    assert "tracker" not in found(crafted(contention__communication=rarely))


def test_overflow_of_the_tracker_matters_if_blocks_wait_for_it():
    changes = {"tracker__overflowed_chunks": 3}
    assert "tracker" not in found(crafted(**changes))
    text = found(crafted(blocks__by_chunk=8, blocks__by_tile=32, **changes))["tracker"].text
    assert "3 chunks overflowed the tracker, so that 8 of 40 blocks waited" in text


def test_stores_held_because_of_the_window():
    assert "chunk_window" in found(crafted(contention__window_stall_ns=20.0))["tracker"].text
    assert "tracker" not in found(crafted(contention__window_stall_ns=1.0))


def test_threshold_matters_if_communication_comes_after_the_gemm():
    stream = crafted().contention.communication.model_dump() | {"blocked_by_threshold_cycles": 50}
    assert "threshold" not in found(crafted(contention__communication=stream))
    late = crafted(contention__communication=stream, time_ns__total=1550.0, time_ns__exposed_communication=550.0)
    assert "100 % of what communication waited" in found(late)["threshold"].text
    assert "of the reduce-scatter came after the GEMM" in found(late)["threshold"].text


@pytest.mark.parametrize(
    ("policy", "compute_first", "said"),
    [("t3-mca", False, True), ("t3-mca", True, False), ("t3-mca", None, False), ("t3", False, False)],
)
def test_an_arbiter_that_lets_the_streams_take_turns_is_named(policy, compute_first, said):
    record = crafted(policy=policy, contention__compute_first=compute_first)
    assert ("arbitration" in found(record)) is said


@pytest.mark.parametrize(("tp", "why"), [(2, "stores of the neighbour's GEMM"), (4, "done with the reduce-scatter")])
def test_and_why_it_does(tp, why):
    record = crafted(policy="t3-mca", contention__compute_first=False, workload__tp=tp)
    assert why in found(record)["arbitration"].text


def test_a_gemm_that_is_longer_than_alone():
    alone = crafted("sequential", time_ns__gemm=960.0)
    record = crafted(contention__cu_stall_ns={"loads": 30.0, "stores": 0.0})
    text = found(record, alone)["gemm_stretch"].text
    assert text.startswith("The GEMM is 40.00 ns (4 %) longer than alone (960.0 ns)")
    assert "waited 30.00 ns longer for inputs" in text
    shorter = found(crafted(time_ns__gemm=900.0), alone)["gemm_stretch"].text
    assert "shorter than alone" in shorter
    assert "gemm_stretch" not in found(crafted()), "without a run alone"


def test_why_lines_of_the_gemm_wait():
    stream = crafted().contention.compute.model_dump()
    stream |= {"blocked_by_other_stream_cycles": 60, "blocked_by_full_queue_cycles": 40}
    text = found(crafted(contention__compute=stream))["memory_waits"].text
    assert "60 % of the 100 memory clocks" in text and "the other stream's turn" in text
    assert "memory_waits" not in found(crafted())


def test_which_traffic_closes_whose_rows():
    assert "row_conflicts" not in found(crafted()), "9 % of the lines are not worth a word"
    finding = found(crafted(contention__dram__row_hits=300))["row_conflicts"]
    assert finding.text.startswith(
        "In DRAM 22 % of the lines found another row open in their bank. Most often (67 % of these) GEMM reads closed "
        "rows of RS writes;"
    )
    assert finding.figures == {"conflicts": 90 / 400, "most": 60 / 90}
    own = {"contention__dram__row_hits": 300, "contention__dram__conflicts": {"rs_read": {"rs_read": 90}}}
    assert "RS reads closed rows of their own" in found(crafted(**own))["row_conflicts"].text
    older = {"contention__dram__row_hits": 300, "contention__dram__conflicts": None}
    assert "row_conflicts" not in found(crafted(**older))


def test_time_against_the_bound():
    alone = crafted("sequential")
    assert found(crafted(), alone)["bound"].figures == {"bound_ns": 1400.0, "above": 0.0}
    assert "10 % above" in found(crafted(time_ns__total=1540.0), alone)["bound"].text
    assert "5 % below" in found(crafted(time_ns__total=1330.0), alone)["bound"].text


@pytest.mark.parametrize(
    "changes",
    [{"data_check__mismatches": 12}, {"identities": {"gemm_write_closed_form": False, "no_hardware_error": None}}],
)
def test_a_wrong_result_is_not_explained(changes):
    every = found(crafted(**changes))
    assert set(every) == {"wrong_result"}
    said = "12 of 1048576 output elements" if "data_check__mismatches" in changes else "gemm_write_closed_form"
    assert said in every["wrong_result"].text


def test_an_ideal_policy_says_what_decides():
    run_alone = sample_run("sequential")
    every = found(ideal_overlap("ideal-overlap", run_alone, run_alone).record)
    assert set(every) == {"computed", "parts_of_the_time"}
    assert "The GEMM decides, as it is 800.0 us longer" in every["computed"].text


def test_every_rule_says_what_it_looks_at():
    assert all(rule.__doc__ for rule in (*ANY, *SIMULATED))


@pytest.mark.parametrize("policy", ["sequential", "sequential-pipelined", "sequential-nmc", "t3", "t3-mca"])
def test_toy_runs_are_explained_in_whole_sentences(policy):
    record, alone = run(EVEN, policy).record, run(EVEN, "sequential").record
    every = found(record, alone if policy != "sequential" else None)
    for item in every.values():
        assert re.fullmatch(r"[A-Z].*\.", item.text, re.DOTALL), item.text
        assert "nan" not in item.text and "inf" not in item.text.replace("information", "")
    figures = every["limit"].figures
    parts = [figures[f"{name}_ns"] for name in ("compute", "memory", "link", "rest")]
    assert sum(parts) == pytest.approx(record.time_ns.total, rel=0.01)
    for share in every["link"].figures.values():
        assert 0 < share < 1
    # the toy's cache misses all the time, and its CUs are fast
    assert figures["memory_ns"] > figures["compute_ns"]
    assert named_limit(every["limit"].text) == "memory"
    shares = [figures[f"{name}_share"] for name in ("compute", "memory", "link", "rest")]
    assert sum(shares) == pytest.approx(1, rel=0.01)


def test_a_slow_link_is_found_in_a_toy_run():
    slow, fast = (run(EVEN, "sequential", {"link.gb_s": rate}).record for rate in (2, 200))
    assert found(slow)["link"].figures["reduce_scatter"] > 0.9
    assert limit_of(slow) == "link"
    assert found(fast)["link"].figures["reduce_scatter"] < 0.3
    assert limit_of(fast) == "memory"


def test_slow_cus_are_found_in_a_toy_run():
    record = run(EVEN, "sequential", {"gpu.flop_per_clock_per_cu": 64}).record
    assert limit_of(record) == "compute"


def test_folders_of_runs_and_comparisons(tmp_path: Path):
    write_result(crafted(), tmp_path / "result.json")
    assert [record.policy for record in read_records(tmp_path)] == ["t3-mca"]
    runs = {"sequential": crafted("sequential"), "t3-mca": crafted()}
    content = Comparison(speedup_over_sequential={"sequential": 1.0, "t3-mca": 1.2}, runs=runs)
    (tmp_path / "compare.json").write_text(json_text(content.model_dump(by_alias=True)))
    explained = explain(read_records(tmp_path))
    assert list(explained) == ["sequential", "t3-mca"]
    assert "bound" in {item.rule for item in explained["t3-mca"]}
    machine = json.loads(json_text(to_json(explained)))
    assert machine["schema"] == 1
    assert machine["runs"]["t3-mca"][0].keys() == {"rule", "text", "figures"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("other.json", "{}", "must be the --out folder"),
        ("result.json", "{}", "has format None"),
        ("result.json", '{"schema": 1}', "not a record of this version: policy: Field required"),
        ("result.json", "\x00", "not JSON, or was cut off"),
        ("compare.json", '{"schema": 1, "speedup_over_sequential": {}, "runs": {}}', "runs: Dictionary should have"),
        ("compare.json", '{"schema": 1, "speedup_over_sequential": {"t3": 1.0}, "runs": {"t3": 1}}', "runs.t3"),
    ],
)
def test_what_is_no_record_is_one_message(tmp_path: Path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match="t3 run|again") as error:
        read_records(tmp_path)
    assert message in str(error.value) and "\n" not in str(error.value)
