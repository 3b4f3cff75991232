"""``t3 map``: its axes, the machines that it makes of them, what it measures, writes and says."""

import re

import pytest
from click.testing import CliRunner
from opent3 import many, studies
from t3sim.cli import main as cli
from t3sim.common.manifest import MANIFEST
from t3sim.inputs.machine.files import load_machine
from t3sim.run.provenance import Provenance
from t3sim.study.arbitration.axes import Axes, known_axes, plan_of
from t3sim.study.arbitration.gains import gains, rows, verdict, worst_first
from t3sim.study.arbitration.pictures import draw_map, gain_map, heat_maps
from t3sim.study.arbitration.random_gemms import DEGREES, INNER, MOST_OUTPUT, MOST_WORK, OUTPUT, random_points
from t3sim.study.arbitration.record import IMPLIED_PAIR, ArbitrationMap, pipelined_ns
from t3sim.study.arbitration.sentences import nearest, reached, sentences
from t3sim.study.arbitration.table import SHOWN_PAIRS, extremes, most_of, shown_machines, stage_names
from t3sim.study.published import published
from t3sim.study.suite import Suite, custom_point
from t3sim.study.sweep import BASE, Variant

from tests.support.sample_map import sample_gains, sample_map
from tests.support.sample_result import sample_result
from tests.support.toy_evaluation import toy_suite

TOY = ("map", "--machine", "toy", "--models", "t-nlg", "--sublayers", "op", "--tp", "8")


def t3(*arguments: str):
    return CliRunner().invoke(cli.main, arguments)


@pytest.fixture
def toys(monkeypatch):
    monkeypatch.setattr(many, "Suite", lambda **choices: toy_suite(monkeypatch, **choices))


@pytest.mark.parametrize("name", known_axes().changes)
def test_every_change_has_its_reason_and_is_legal_on_the_machine_of_the_paper(name):
    change = known_axes().changes[name]
    assert change.why.endswith(".") and change.settings
    load_machine("paper", change.settings)


@pytest.mark.parametrize("machine", ["paper", "paper-accelsim"])
def test_every_machine_of_a_map_is_legal_and_none_is_there_twice(machine):
    plan = plan_of(known_axes(), machine, {}, quick=False)
    loaded = [load_machine(machine, variant.settings) for variant in plan.variants.values()]
    digests = [(found.machine, found.hardware) for found in map(Provenance.of, loaded)]
    assert len(set(digests)) == len(digests) == len(plan.variants)


def test_of_machines_alike_the_one_with_a_reason_stays():
    whole = plan_of(known_axes(), "paper", {}, quick=False)
    assert "lockstep" in whole.variants and "dispatch-stage + release-performed" not in whole.variants
    accelsim = plan_of(known_axes(), "paper-accelsim", {}, quick=True)
    assert "dispatch-stage" in accelsim.variants and "lockstep" not in accelsim.variants, (
        "stores are waited for already"
    )


def test_what_the_machine_has_already_is_no_change():
    paper, accelsim = (plan_of(known_axes(), name, {}, quick=False) for name in ("paper", "paper-accelsim"))
    assert (paper.singles["release"], accelsim.singles["release"]) == (("release-performed",), ("release-accepted",))
    changed = plan_of(known_axes(), "paper", {"gpu.dispatch": "stage"}, quick=False)
    assert changed.singles["dispatch"] == ("dispatch-free",)


def test_pairs_are_of_different_axes_and_a_quick_map_has_none():
    usual = known_axes().of(())
    whole, quick = (plan_of(usual, "paper", {}, quick=quick) for quick in (False, True))
    sizes = [len(names) for names in whole.singles.values()]
    pairs = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
    singles = 1 + sum(sizes) + len(usual.combinations)
    alike = {"dispatch-stage + release-performed": "lockstep", "starvation-often + threshold-10": "threshold-10"}
    assert len(whole.variants) == singles + pairs - len(alike) and len(quick.variants) == singles
    assert not set(whole.variants) & set(alike) and set(alike.values()) < set(whole.variants)
    assert list(quick.variants) == [name for name in whole.variants if " + " not in name]
    assert "compute-2048 + compute-512" not in whole.variants
    both = whole.variants["queue-126 + dma-4"].settings
    assert both == {"hbm.queue_lines": 126, "dma.lines_per_cycle": 4}


def test_some_axes_alone_keep_the_combinations_that_they_can_make():
    chosen = known_axes().of(("release", "dispatch"))
    assert list(chosen.axes) == ["release", "dispatch"] and list(chosen.combinations) == ["lockstep"]


def test_no_axes_leave_the_machine_as_it_is():
    plan = plan_of(known_axes().of(("none",)), "paper", {}, quick=False)
    assert list(plan.variants) == [BASE] and plan.singles == {}
    with pytest.raises(ValueError, match="--axes must be none alone, or name some of dispatch, .*, not none"):
        known_axes().of(("none", "queue"))


def test_random_gemms_are_legal_different_and_the_first_of_many():
    machine = load_machine("paper")
    points = random_points(machine, 40)
    assert len(set(points)) == 40 and points[:10] == random_points(machine, 10)
    for gemm in map(Suite().workload, points):
        gemm.check_tiles(machine.gpu.tiles)
        assert gemm.tp in DEGREES and OUTPUT[0] <= min(gemm.m, gemm.n) and max(gemm.m, gemm.n) <= OUTPUT[1]
        assert INNER[0] <= gemm.k <= INNER[1] and gemm.m * gemm.n <= MOST_OUTPUT
        assert gemm.m * gemm.n * gemm.k_range[1] <= MOST_WORK
    assert {point.tp for point in points} == set(DEGREES)


def test_random_gemms_are_those_that_a_machine_can_run():
    suite = Suite(machine="toy", hardware="golden")
    for point in random_points(suite.machine_of("base"), 5):
        suite.experiment(point, "t3-mca")
    small = load_machine("toy", {"hardware.chunk_count_bits": 12})
    with pytest.raises(ValueError, match="--random must be at most 0 on machine 'toy', not 1: .*refused: .* --set "):
        random_points(small, 1)


def test_the_gemm_that_arbitration_costs_most_comes_first():
    record = sample_gains()
    gemms = [place.gemm for place in worst_first(record)]
    assert gemms == ["t-nlg fc2 TP 8", "t-nlg op TP 8"] == [row[0] for row in rows(record)]
    assert next(rows(record))[3:5] == ("-2.00", "-")
    said = "in all: 2; of them changed by arbitration: 1; with a loss above 0.1%: 1 (at most 2.00%); with a gain above"
    assert said in verdict(record)
    above = [cell.above_bound for cell in record.machines[0].cells]
    speedup = record.machines[0].cells[0].policies["t3-mca"].speedup
    assert above[0] == pytest.approx(1.5 / speedup - 1) and above[1] == pytest.approx(1.4 / speedup - 1)


def test_a_pipeline_waits_for_one_stage_of_the_shorter_part():
    """600 ns of GEMM in 3 stages, 300 ns of reduce-scatter: its last third comes after the GEMM."""
    alone = sample_result("sequential").time_ns
    times = alone.model_copy(update={"gemm": 600.0, "reduce_scatter": 300.0, "all_gather": 200.0})
    assert pipelined_ns(times, 3) == 600 + 100 + 200 and pipelined_ns(times, 1) == 600 + 300 + 200
    longer = times.model_copy(update={"reduce_scatter": 900.0})
    assert pipelined_ns(longer, 3) == 900 + 200 + 200


def test_gemms_are_held_against_the_pipeline_of_their_stages_where_it_is_known():
    record = sample_gains()
    base = record.machines[0]
    speedup = base.cells[0].policies["t3-mca"].speedup
    assert [cell.above_pipeline for cell in base.cells] == [pytest.approx(1.25 / speedup - 1)] * 2
    for pipeline, near in ((1.05 * speedup, 0), (1.01 * speedup, 2)):
        cells = [cell.model_copy(update={"pipeline": pipeline}) for cell in base.cells]
        changed = record.model_copy(update={"machines": [base.model_copy(update={"cells": cells})]})
        assert verdict(changed).endswith(f"min(GEMM, reduce-scatter) / stages longer than that: {near}.")
        assert [row[7] for row in rows(changed)] == [f"{100 * (pipeline / speedup - 1):+.1f}"] * 2
    unknown = [cell.model_copy(update={"pipeline": None}) for cell in base.cells]
    older = record.model_copy(update={"machines": [base.model_copy(update={"cells": unknown})]})
    assert "pipeline" not in verdict(older) and [row[7] for row in rows(older)] == ["-", "-"]


@pytest.mark.parametrize(("spread", "sure"), [(0.005, 1), (0.03, 0)])
def test_a_loss_that_is_no_more_than_what_a_run_changes_for_nothing_is_said_to_be_so(spread, sure):
    record = sample_gains()
    base = record.machines[0]
    cells = [cell.model_copy(update={"launches": 4, "spread": spread}) for cell in base.cells]
    record = record.model_copy(update={"machines": [base.model_copy(update={"cells": cells})]})
    said = f"with a loss above 0.1%: 1 (at most 2.00%), {sure} of them by more than what 4 launches that differ by some"
    assert said in verdict(record)
    assert next(rows(record))[4] == f"{100 * spread:.2f}"


def test_repeated_launches_are_runs_of_their_own_and_the_record_has_their_means(toys, tmp_path):
    plan = plan_of(known_axes().of(("order",)), "paper-accelsim", {}, quick=False, launches=3)
    assert plan.launches == (3571, 3578, 3584)
    launches = [item.settings["gpu.kernel_launch_ns"] for item in plan.runs().values()]
    assert len(plan.runs()) == 3 * len(plan.variants) and launches == list(plan.launches) * len(plan.variants)
    one, both = (_map_of_none(tmp_path / f"{count}", "--launches", f"{count}") for count in (1, 2))
    cells = [record.machines[0].cells[0] for record in (one, both)]
    assert [cell.launches for cell in cells] == [1, 2] and cells[0].spread == 0
    later = _map_of_none(tmp_path / "later", "--set", "gpu.kernel_launch_ns=7").machines[0].cells[0]
    assert cells[1].gain == pytest.approx((cells[0].gain + later.gain) / 2)
    assert cells[1].spread == pytest.approx(abs(cells[0].gain - later.gain) / 2**0.5)
    t3, first, second = (cell.policies["t3"].compute for cell in (cells[1], cells[0], later))
    assert t3.mean_wait_ns == pytest.approx((first.mean_wait_ns + second.mean_wait_ns) / 2)


def _map_of_none(out, *options: str) -> ArbitrationMap:
    result = t3(*TOY, "--axes", "none", "--jobs", "1", *options, "--out", str(out))
    assert result.exit_code == 0, result.output
    return ArbitrationMap.model_validate_json((out / "map.json").read_bytes())


def test_the_picture_of_gains_has_a_line_for_each_gemm():
    (axes,) = gains(sample_gains()).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["t-nlg op TP 8", "t-nlg fc2 TP 8"]
    t3, mca, pipeline, _ = axes.lines
    assert (t3.get_label(), mca.get_label()) == ("t3", "t3-mca") and len(t3.get_xdata()) == 2
    assert list(pipeline.get_xdata()) == pytest.approx([1.4 / 1.25, 1.5 / 1.25])


@pytest.mark.long
def test_a_map_of_no_axes_has_every_gemm_and_random_ones(toys, tmp_path, monkeypatch):
    drawn = (custom_point(128, 128, 256, 4),)
    monkeypatch.setattr(studies, "random_points", lambda machine, count: drawn[:count])
    out = tmp_path / "out"
    result = t3(*TOY, "--axes", "none", "--random", "1", "--jobs", "1", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert {path.name for path in out.iterdir()} == {"config.toml", "map.json", "gains.png", "gains.svg", MANIFEST}
    assert Provenance.of(load_machine(out / "config.toml")).machine == Provenance.of(load_machine("toy")).machine
    record = ArbitrationMap.model_validate_json((out / "map.json").read_bytes())
    assert record.titles == ["t-nlg op TP 4", "128 x 128 x 256 TP 4"] and record.failures == []
    assert verdict(record) in result.stdout.replace("\n", " ") and "128 x 128 x 256 TP 4" in result.stdout


def test_a_combination_of_a_change_that_no_axis_has():
    axes = {"queue": {"16": Variant(settings={"hbm.queue_lines": 16}, why="Short.")}}
    with pytest.raises(ValueError, match="combination short names queue-17, which no axis has"):
        Axes.model_validate({"axes": axes, "combinations": {"short": {"changes": ["queue-17"], "why": "Shorter."}}})


@pytest.mark.long
def test_a_map_says_what_its_runs_say(toys, tmp_path):
    out = tmp_path / "out"
    result = t3(*TOY, "--axes", "dispatch,release,starvation", "--jobs", "1", "--out", str(out))
    assert result.exit_code == 0, result.output
    charts = ("gain", "pairs", "worth-t-nlg-op-tp-4")
    names = {"config.toml", "map.json", *(f"{chart}.{kind}" for chart in charts for kind in ("png", "svg"))}
    assert {path.name for path in out.iterdir()} == {*names, MANIFEST}
    record = ArbitrationMap.model_validate_json((out / "map.json").read_bytes())
    assert [item.name for item in record.machines][:1] == [BASE] and record.failures == []
    for machine, gemm, cell in record.places():
        assert gemm == "t-nlg op TP 4", "the toy's"
        t3_cell, alone = cell.policies["t3"], cell.policies["sequential"]
        assert cell.worth == pytest.approx(t3_cell.gemm / cell.policies["t3-mca"].gemm)
        for policy in cell.policies.values():
            for stream in (policy.compute, policy.communication):
                for cause, waited in stream.blocked.items():
                    by_stage = [stage[cause] for stage in stream.by_stage]
                    assert sum(by_stage) == pytest.approx(waited, abs=1e-4 * len(by_stage))
            assert len(policy.stages) == len(policy.compute.by_stage) > 2 and policy.stages[0] == 0
        assert cell.pipeline is not None and 1 < cell.pipeline < cell.ideal
        assert alone.gemm_stages == t3_cell.gemm_stages >= 1
        gain = cell.policies["t3-mca"].speedup / t3_cell.speedup
        assert cell.gain == pytest.approx(gain)
        assert (alone.gemm, alone.all_gather, alone.speedup) == (1, 1, 1)
        assert sum(t3_cell.stalls.values()) < t3_cell.gemm
        assert t3_cell.compute.blocked["threshold"] == 0, "only communication waits for the threshold"
        assert machine.name in result.stdout
    stage, performed = (record.at({name}).cells[0] for name in ("dispatch-stage", "release-performed"))
    assert stage.policies["t3"] != record.machines[0].cells[0].policies["t3"]
    assert performed.policies["t3"].stalls["stores"] > 0
    changed = load_machine("toy", record.at({"dispatch-stage", "release-performed"}).settings)
    assert (changed.gpu.dispatch, changed.gpu.store_release) == ("stage", "performed")


def test_the_extremes_are_those_of_the_record():
    record = sample_map()
    said = list(extremes(record))
    lockstep = "worth 1.038 (1.080, 1.040), gain 1.020, t-nlg fc2 TP 8 on lockstep"
    assert said[0] == f"arbitration is worth most: {lockstep}"
    assert said[2] == f"the sublayer gains most: {lockstep}"
    assert said[4:] == [f"the GEMM is slowest under t3: {lockstep}", f"nearest to the implied pair: {lockstep}"]
    assert not reached(record.places())
    assert nearest(record.places()).machine.name == "lockstep"
    cell = record.machines[0].cells[0]
    pair = dict(zip(("t3", "t3-mca"), IMPLIED_PAIR, strict=True))
    cell.policies.update({name: cell.policies[name].model_copy(update={"gemm": gemm}) for name, gemm in pair.items()})
    assert reached(record.places())


def test_three_sentences_are_made_from_the_record():
    """Of ten pairs the one on the first machine has loads that are late, and a reduce-scatter that is shorter."""
    record = sample_map()
    cell = record.machines[-1].cells[0]
    late = {**cell.policies["t3"].stalls, "loads": cell.policies["sequential"].stalls["loads"] + 0.02}
    cell.policies["t3"] = cell.policies["t3"].model_copy(update={"stalls": late})
    need, free, pair = sentences([record])
    assert need == (
        "You need MCA, by this project's rule, when the GEMM takes longer than the reduce-scatter and, without "
        "arbitration, its CUs wait for loads at least 2% of its time longer than alone: on the 1 such pairs of GEMM "
        "and machine (machine paper and its variants) the sublayer gains 2.0 % (the median; +2.0 to +2.0 %); losing "
        "more than 0.1%: 0."
    )
    assert free.startswith("You do not when the reduce-scatter takes longer than the GEMM, or the GEMM tolerates ")
    assert free.endswith(
        "on the other 9 pairs (machine paper and its variants) it gains 0.0 % (the median; +0.0 to +1.5 %); losing "
        "more than 0.1%: 0."
    )
    assert pair == (
        "The published speedups of large FC layers need a GEMM 1.19 times as long under t3 and 1.02 under t3-mca, "
        "which the map of 5 pairs of FC layer and machine misses by 0.11: nearest is 1.08 and 1.04 (t-nlg fc2 TP 8 on "
        "paper with lockstep); there the sublayer's speedups are 1.25 and 1.36 (bound 1.40), so the published ones, "
        "1.20 and 1.30 in the mean of all sublayers, do not follow; nearest to these are 1.25 and 1.36 (t-nlg fc2 TP 8 "
        "on paper with base; bound 1.40), with a GEMM 1.00 and 1.00 times as long; in no pair are all four figures "
        "nearer than 0.11."
    )
    assert all(text.count(". ") == 0 and text.endswith(".") for text in (need, free, pair)), "one sentence each"


def test_published_speedups_that_follow_from_the_implied_pair_are_told():
    """Where the GEMM is as they need it, the sublayer has them, too: nothing is missed by more than their rounding."""
    record = sample_map()
    cell = record.machines[1].cells[0]
    wanted = {"t3": published()["t3-geomean"].value, "t3-mca": published()["t3-mca-geomean"].value}
    for (name, speedup), gemm in zip(wanted.items(), IMPLIED_PAIR, strict=True):
        cell.policies[name] = cell.policies[name].model_copy(update={"gemm": gemm, "speedup": speedup})
    pair = sentences([record])[-1]
    assert "which is in the map of 5 pairs of FC layer and machine: nearest is 1.19 and 1.02" in pair
    assert "in the mean of all sublayers, follow; nearest to these are 1.20 and 1.30" in pair
    assert pair.endswith("in no pair are all four figures nearer than 0.00.")


def test_the_papers_rule_with_other_limits_has_a_sentence_of_its_own():
    record = sample_map()
    cells = [cell.model_copy(update={"worth": 1.2, "gain": 0.9}) for cell in record.machines[-1].cells]
    strict = record.machines[-1].model_copy(update={"rule": "paper", "cells": cells})
    record = record.model_copy(update={"machines": [*record.machines[:-1], strict]})
    free, _, rule = sentences([record])
    assert "on the other 8 pairs" in free
    assert rule == (
        "For comparison, the paper's rule: with its limits or others, the GEMM gains 20.0 % (the median; +20.0 to "
        "+20.0 %), but the sublayer -10.0 % (the median; -10.0 to -10.0 %); losing more than 0.1%: 2, on 2 pairs "
        "(machine paper and its variants): communication that was held ends later."
    )


def test_a_sentence_on_several_machines_names_all():
    paper = sample_map()
    records = [paper, paper.model_copy(update={"machine": "toy"})]
    assert "on the other 20 pairs (machines paper and toy and their variants) it gains" in sentences(records)[0]


def test_without_an_fc_layer_nothing_is_said_of_the_published_pair():
    record = sample_map()
    op = [gemm.model_copy(update={"sublayer": "op"}) for gemm in record.gemms]
    assert not any("published" in text for text in sentences([record.model_copy(update={"gemms": op})]))


def test_a_longer_reduce_scatter_needs_no_arbitration():
    record = sample_map()
    for machine in record.machines:
        for cell in machine.cells:
            late = {**cell.policies["t3"].stalls, "loads": 0.5}
            cell.policies["t3"] = cell.policies["t3"].model_copy(update={"stalls": late})
            alone = cell.policies["sequential"].model_copy(update={"reduce_scatter": 1.2})
            cell.policies["sequential"] = alone
    assert [text.split(" when")[0] for text in sentences([record])[:-1]] == ["You do not"]


def test_an_older_record_says_only_where_the_implied_pair_is():
    record = sample_map()
    cell = record.machines[0].cells[0]
    cell.policies["sequential"] = cell.policies["sequential"].model_copy(update={"reduce_scatter": None})
    (only,) = sentences([record])
    assert only.startswith("The published speedups")


def test_stages_are_named_from_1_and_the_last_group_comes_after_the_gemm():
    assert stage_names([0, 3, 6, 7]) == ["1 to 3", "4 to 6", "7", "after the GEMM"]
    assert stage_names([0, 1, 2]) == ["1", "2", "after the GEMM"]
    waits = {"other_stream": 0.1, "threshold": 0.0, "full_queue": 0.25, "tracker": 0.0}
    assert most_of(waits) == "0.350 (a full DRAM queue)" and most_of(dict.fromkeys(waits, 0.0)) == "0"


def test_the_picture_of_gains_by_machine_has_a_cell_for_each_but_pairs():
    figure = gain_map(sample_map())
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["base", "dispatch-stage", "order-age", "lockstep"]
    assert {text.get_position(): text.get_text() for text in axes.texts}[0, 3] == "+2.0"


def test_of_many_pairs_those_are_shown_where_arbitration_is_worth_most():
    record = sample_map()
    pair = record.machines[3]
    worse = [pair.model_copy(update={"name": f"{n} + {n}", "cells": record.machines[0].cells}) for n in range(20)]
    many = record.model_copy(update={"machines": [*record.machines, *worse]})
    shown = list(shown_machines(many))
    assert pair in shown and len(shown) == len(record.machines) - 1 + SHOWN_PAIRS


def test_a_heat_map_has_every_change_and_every_pair_that_ran():
    figure = heat_maps(sample_map(), 0)
    cost, left, gain = figure.axes
    assert [text.get_text() for text in left.get_xticklabels()] == ["dispatch-stage", "order-age"]
    cells = {text.get_position(): text.get_text() for text in left.texts}
    assert cells == {(0, 0): "1.010", (1, 1): "1.020", (0, 1): "1.029"}
    assert {text.get_text() for text in cost.texts} == {"1.020", "1.040", "1.060"}
    assert {text.get_text() for text in gain.texts} == {"1.005", "1.010", "1.015"}
    assert "as it is: 1.000" in left.get_title(loc="left")


def test_pictures_repeat_byte_for_byte(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        draw_map(sample_map(), tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert [re.sub(r"\..*", "", name) for name in files[::2]] == [
        "gain",
        "pairs",
        "worth-t-nlg-fc2-tp-8",
        "worth-t-nlg-op-tp-8",
    ]
    assert all((tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes() for name in files)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--axes", "dispatch,dispatch"), "--axes must name each once"),
        (("--axes", ","), "--axes must be names separated by commas, not ','"),
        (("--axes", "dispath"), "--axes must be none alone, or name some of dispatch, "),
        (("--axes", "order", "--set", "hbm.service_order=old"), "hbm.service_order"),
        (("--machine", "none"), "none"),
        (("--models", "tnlg"), "did you mean 't-nlg'?"),
        (("--tp", "x"), "--tp must be numbers of GPUs"),
        (("--out", "tests"), "--out must be a new folder"),
        (("--jobs", "1", "--scheduler", "tcp://localhost:1"), "with --scheduler it is the cluster"),
    ],
)
def test_errors_are_one_message(arguments, message):
    result = t3("map", *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output
