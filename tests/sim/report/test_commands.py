"""The commands in a report are what the user typed, as far as records hold it."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opent3 import Point, custom_workload, model_points, on_machines, vary
from t3sim.cli import main as cli
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.machine.settings import literal, parse_setting
from t3sim.report.folders import Mapped, Modelled, Reproduced, Runs, Swept, read_folder
from t3sim.report.maps import map_section
from t3sim.report.parts import Text
from t3sim.report.provenance import (
    Command,
    map_command,
    model_command,
    record_blocks,
    reproduce_command,
    runs_command,
    shell,
    sweep_command,
)
from t3sim.report.runs import workload_title
from t3sim.run.records import read_record
from t3sim.run.result import WorkloadRecord
from t3sim.study.arbitration.random_gemms import random_points
from t3sim.study.arbitration.record import ArbitrationMap
from t3sim.study.model_record import WholeModelRecord
from t3sim.study.suite import Suite
from t3sim.study.sweep import OwnModel, SweepRecord, Variant, axes_of, chosen_assumptions, product_of

from tests.support.report_folders import (
    REPRODUCTION,
    compare_folder,
    map_folder,
    model_folder,
    run_folder,
    sweep_folder,
    sweep_record,
)
from tests.support.sample_map import sample_gains, sample_map
from tests.support.sample_result import T_NLG


def parsed(text: str) -> tuple[str, dict[str, Any]]:
    """Command and options of a command line, as the program reads them."""
    program, name, *words = shlex.split(text.replace("\\\n", " "))
    assert program == "t3"
    return name, cli.main.commands[name].make_context(name, list(words)).params


def test_a_run(tmp_path: Path):
    folder = read_folder(run_folder(tmp_path / "my out"))
    assert isinstance(folder, Runs)
    name, options = parsed(shell(runs_command(folder)))
    assert name == "run" and options["policy"] == "t3-mca" and options["machine"] == "config.toml"
    assert (options["model"], options["sublayer"], options["tp"], options["m"]) == ("t-nlg", "fc2", 8, None)
    assert (options["hardware"], options["seed"], options["mirror"]) == ("rtl", 0, None)
    assert options["out"] == Path("my out")


def test_a_comparison(tmp_path: Path):
    folder = read_folder(compare_folder(tmp_path / "out", ("sequential", "t3")))
    assert isinstance(folder, Runs)
    name, options = parsed(shell(runs_command(folder)))
    assert name == "compare" and options["policies"] == ("sequential", "t3")


@pytest.mark.parametrize("observed", [False, True])
def test_a_comparison_without_a_look_at_contention(tmp_path: Path, observed):
    folder = read_folder(compare_folder(tmp_path / "out", ("sequential", "t3", "ideal-overlap")))
    assert isinstance(folder, Runs) and folder.results[-1].contention is None, "what is computed has none anyway"
    if not observed:
        runs = [replace(run, result=run.result.model_copy(update={"contention": None})) for run in folder.runs]
        folder = replace(folder, runs=tuple(runs))
    _, options = parsed(shell(runs_command(folder)))
    assert options["contention"] is observed


def test_a_whole_model(tmp_path: Path):
    folder = read_folder(model_folder(tmp_path / "out"))
    assert isinstance(folder, Modelled)
    name, options = parsed(given(model_command(folder.record, folder.name)))
    assert name == "model" and options["machine"] == "toy" and options["hardware"] == "golden"
    assert (options["model"], options["tp"], options["phase"]) == ("t-nlg", 8, "prompt")
    assert (options["attention"], options["optimizer"], options["hf"]) == ("unfused", False, None)
    assert options["out"] == Path("out")


def test_a_whole_model_of_the_users_own_with_an_optimizer(tmp_path: Path):
    record = read_record(model_folder(tmp_path / "out") / "model.json", WholeModelRecord)
    step = record.operators[0].model_copy(update={"name": "optimizer"})
    own = OwnModel(phase="training", batch=2, sequence=64)
    record = record.model_copy(update={
        "own": own, "phase": "training", "attention": "fused", "operators": [*record.operators, step],
        "settings": {"link.gb_s": 300},
    })  # fmt: skip
    command = model_command(record, "out")
    _, options = parsed(given(command))
    assert (options["model"], options["hf"]) == (None, Path("CONFIG.JSON"))
    assert (options["phase"], options["batch"], options["sequence"]) == ("training", 2, 64)
    assert (options["attention"], options["optimizer"], options["settings"]) == ("fused", True, ("link.gb_s=300",))
    note = record_blocks(command, {}, None)[1].items[0]
    assert isinstance(note, Text) and "CONFIG.JSON stands for the file of your model" in note.text


@pytest.mark.parametrize("assumptions", [False, True])
def test_a_sweep(tmp_path: Path, assumptions):
    folder = read_folder(sweep_folder(tmp_path / "out", assumptions=assumptions))
    assert isinstance(folder, Swept)
    name, options = parsed(shell(command_of(folder.record, assumptions=assumptions)))
    assert name == "sweep" and options["assumptions"] is assumptions
    assert (options["models"], options["sublayers"], options["degrees"]) == (("t-nlg",), ("fc2", "op"), ("8",))
    assert options["policies"] == ("ideal-overlap", "t3", "t3-mca") and options["machine"] == "toy"
    if assumptions:
        assert options["variants"] == ("link-75", "block-tile")
    else:
        variants = product_of(axes_of(options["vary"]))
        assert list(variants) == [item.name for item in folder.record.variants]
        assert [item.settings for item in variants.values()] == [item.settings for item in folder.record.variants]


def test_a_sweep_of_a_model_of_the_users_own(tmp_path: Path):
    record = read_swept(tmp_path, {"model": "mine", "sublayer": "fc2"})
    for own, expected in (
        (None, ("training", 8, 1024)),
        (OwnModel(phase="decode", batch=2, sequence=64), ("decode", 2, 64)),
    ):
        of_own = record.model_copy(update={"own": own})
        name, options = parsed(shell(command_of(of_own)))
        assert name == "sweep" and options["hf"] == Path("CONFIG.JSON") and options["sublayers"] == ("fc2",)
        assert (options["phase"], options["batch"], options["sequence"]) == expected, "without a record the defaults"
        note = record_blocks(command_of(of_own), {}, None)[1].items[0]
        assert isinstance(note, Text) and ("nor does this one" in note.text) == (own is None)


def test_a_sweep_of_one_gemm(tmp_path: Path):
    record = read_swept(tmp_path, {"model": "custom", "sublayer": "custom"})
    _, options = parsed(shell(command_of(record)))
    assert (options["m"], options["n"], options["k"]) == (T_NLG.m, T_NLG.n, T_NLG.k) and options["hf"] is None
    assert options["degrees"] == ("8",)
    work = record.variants[0].runs[0].result.workload
    assert workload_title(work) == f"GEMM {T_NLG.m} x {T_NLG.n} x {T_NLG.k}, TP 8", "two GEMMs have two titles"


def test_sublayers_that_no_options_name_have_no_command(tmp_path: Path):
    record = read_swept(tmp_path, {"model": "custom", "sublayer": "custom"})
    first = record.variants[0]
    other = first.runs[0].result.workload.model_copy(update={"m": 64})
    mixed = first.runs[0].result.workload.model_copy(update={"model": "t-nlg", "sublayer": "fc2"})
    for work in (other, mixed):
        run = first.runs[0].model_copy(update={"result": first.runs[0].result.model_copy(update={"workload": work})})
        many = first.model_copy(update={"runs": [*first.runs, run]})
        assert sweep_command(record.model_copy(update={"variants": [many]}), "out", assumptions=False) is None
    others = [first, first.model_copy(update={"machine": "mine.toml"})]
    assert sweep_command(record.model_copy(update={"variants": others}), "out", assumptions=False) is None
    (note,) = record_blocks(None, {}, None)[1].items
    assert isinstance(note, Text) and "chosen in Python" in note.text


@pytest.mark.parametrize(
    ("key", "values"),
    [("link.gb_s", [1, 1.5]), ("dma.block", ["tile", "column"]), ("gpu.tiles", [[[64, 64]], [[128, 64]]])],
)
def test_every_product_of_values_has_a_command(key, values):
    assert _swept_command(vary({key: values, "link.latency_ns": [250, 500]})) is not None


PRODUCT = vary({"link.gb_s": [10, 20], "link.latency_ns": [250, 500]})
MACHINES: dict[str, dict[str, Variant]] = {
    "as they are": on_machines(["toy"]),
    "two axes, one at a time": vary({"link.gb_s": [10, 20]}) | vary({"link.latency_ns": [250, 500]}),
    "not every combination": dict(list(PRODUCT.items())[:3]),
    "another order": dict(sorted(PRODUCT.items(), key=lambda item: item[1].settings["link.latency_ns"])),
    "names of their own": {"slow": Variant(settings={"link.gb_s": 10})},
}


@pytest.mark.parametrize("name", MACHINES)
def test_machines_that_no_options_make_have_no_command(name):
    assert _swept_command(MACHINES[name]) is None


def test_changes_that_are_no_assumptions_have_no_command():
    known = chosen_assumptions(["link-75", "latency-250"])
    assert _swept_command(known, assumptions=True) is not None
    other = known | {"link-75": Variant(settings={"link.gb_s": 76})}
    unknown = known | {"mine": Variant(settings={"link.gb_s": 76})}
    for changes in (other, unknown, chosen_assumptions(["link-75"]) | {"base": Variant(settings={"link.gb_s": 9})}):
        assert _swept_command(changes, assumptions=True) is None
    assert _swept_command({"base": Variant()}, assumptions=True) is None


def _swept_command(variants: dict[str, Variant], *, assumptions: bool = False) -> Command | None:
    record = sweep_record([item.settings for item in variants.values()], list(variants))
    return sweep_command(record, "out", assumptions=assumptions)


def test_another_seed_has_no_command(tmp_path: Path):
    seed = {"seed": 1}
    model = read_record(model_folder(tmp_path / "out") / "model.json", WholeModelRecord)
    reproduced = read_folder(REPRODUCTION)
    assert isinstance(reproduced, Reproduced)
    swept = read_swept(tmp_path, {})
    assert command_of(swept) and sweep_command(swept.model_copy(update=seed), "out", assumptions=False) is None
    assert model_command(model.model_copy(update=seed), "out") is None
    assert reproduce_command(reproduced.record.model_copy(update=seed), "out") is None
    assert map_command(sample_map(), "out") and map_command(sample_map().model_copy(update=seed), "out") is None


def given(command: Command | None) -> str:
    assert command is not None
    return shell(command)


def command_of(record: SweepRecord, *, assumptions: bool = False) -> Command:
    command = sweep_command(record, "out", assumptions=assumptions)
    assert command is not None
    return command


def read_swept(tmp_path: Path, work: dict[str, str]) -> SweepRecord:
    """The record of a sweep of nothing but ``work``."""
    folder = read_folder(sweep_folder(tmp_path / "swept"))
    assert isinstance(folder, Swept)
    runs = [run for run in folder.record.variants[0].runs if run.result.workload.sublayer == "fc2"]
    changed = [
        run.model_copy(update={"result": run.result.model_copy(
            update={"workload": run.result.workload.model_copy(update=work)}
        )}) for run in runs
    ]  # fmt: skip
    first = folder.record.variants[0].model_copy(update={"runs": changed})
    return folder.record.model_copy(update={"variants": [first, *folder.record.variants[1:]]})


def test_a_map(tmp_path: Path):
    folder = read_folder(map_folder(tmp_path / "out"))
    assert isinstance(folder, Mapped)
    name, options = parsed(given(map_command(folder.record, folder.name)))
    assert name == "map" and options["quick"] is True and options["axes"] == ("dispatch", "order", "release")
    assert (options["models"], options["sublayers"], options["degrees"]) == (("t-nlg",), ("fc2", "op"), ("8",))
    assert options["machine"] == "paper" and options["hardware"] == "golden" and options["launches"] == 1


def test_a_map_of_several_launches():
    record = sample_map()
    for machine in record.machines:
        machine.cells[:] = [cell.model_copy(update={"launches": 3}) for cell in machine.cells]
    assert parsed(given(map_command(record, "out")))[1]["launches"] == 3


def test_a_map_without_changes_and_with_a_random_gemm():
    record = _mapped([Point(model="t-nlg", sublayer="fc2", tp=8), *random_points(load_machine("paper"), 1)])
    name, options = parsed(given(map_command(record, "out")))
    assert name == "map" and options["quick"] is False and options["axes"] == ("none",) and options["count"] == 1
    assert (options["models"], options["sublayers"], options["degrees"]) == (("t-nlg",), ("fc2",), ("8",))
    section = map_section(Mapped(name="out", record=record, config=None))
    titles = [block.title for block in section.blocks]
    assert "Every GEMM" in titles and "Changes" not in titles
    assert "; ".join(record.titles) in section.facts


def _mapped(points: Sequence[Point]) -> ArbitrationMap:
    """The map of these on the machine as it is."""
    gemms = [WorkloadRecord.of(Suite().workload(point)) for point in points]
    return sample_gains().model_copy(update={"gemms": gemms, "quick": False})


def test_gemms_that_no_options_name_have_no_command():
    product = model_points(["t-nlg"], ["8", "16"], ["op", "fc2"])
    drawn = random_points(load_machine("paper"), 2)
    assert map_command(_mapped([*product, *drawn]), "out") is not None
    gone = _mapped([*product, *drawn]).model_copy(update={"machine": "no-such-file.toml"})
    for record in (
        _mapped(product[:3]), _mapped(product[::-1][1:]), _mapped([*product, drawn[1]]), _mapped([*drawn, *product]),
        _mapped(drawn), gone,
    ):  # fmt: skip
        assert map_command(record, "out") is None
    mine = WorkloadRecord.of(custom_workload(512, 512, 512, 8))
    assert map_command(_mapped(product).model_copy(update={"gemms": [*_mapped(product).gemms, mine]}), "out") is None


def test_a_map_of_many_gemms_names_the_first():
    record = sample_gains()
    machine = record.machines[0].model_copy(update={"cells": record.machines[0].cells * 10})
    many = record.model_copy(update={"gemms": record.gemms * 10, "machines": [machine]})
    section = map_section(Mapped(name="out", record=many, config=None))
    assert section.facts[-1] == "; ".join([*many.titles[:12], "and 8 more"])


def test_a_reproduction():
    folder = read_folder(REPRODUCTION)
    assert isinstance(folder, Reproduced)
    name, options = parsed(given(reproduce_command(folder.record, "out")))
    assert name == "reproduce" and options["only"] == () and options["quick"] is False
    some = folder.record.model_copy(update={"tables": ["traffic"], "quick": True, "settings": {"link.gb_s": 75}})
    _, options = parsed(given(reproduce_command(some, "out")))
    assert (options["only"], options["quick"], options["settings"]) == (("traffic",), True, ("link.gb_s=75",))


VALUES = (
    (75, "75"),
    (1.5, "1.5"),
    (True, "true"),
    ("tile", "tile"),
    ("true", '"true"'),
    ("a b", '"a b"'),
    ([[64]], "[[64]]"),
)


@pytest.mark.parametrize(("value", "text"), VALUES)
def test_values_read_back(value, text):
    assert literal(value) == text
    assert parse_setting(f"a.b={text}") == ("a.b", value)


def _own(folder: Path, name: str) -> Path:
    """The folder with records of a model of the user's own."""
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert '"model": "t-nlg"' in text
    path.write_text(text.replace('"model": "t-nlg"', '"model": "m1"'), encoding="utf-8")
    return folder


def test_a_run_of_a_model_of_ones_own_is_named_by_its_sizes(tmp_path: Path):
    folder = read_folder(_own(run_folder(tmp_path / "out"), "result.json"))
    assert isinstance(folder, Runs)
    name, options = parsed(shell(runs_command(folder)))
    assert name == "run" and (options["model"], options["sublayer"]) == (None, None)
    work = folder.runs[0].result.workload
    assert (options["m"], options["n"], options["k"], options["tp"]) == (work.m, work.n, work.k_total, work.tp)


def test_a_sweep_of_a_model_of_ones_own_names_its_file(tmp_path: Path):
    folder = read_folder(_own(sweep_folder(tmp_path / "out", assumptions=False), "sweep.json"))
    assert isinstance(folder, Swept)
    name, options = parsed(given(sweep_command(folder.record, folder.name, assumptions=False)))
    assert name == "sweep" and options["hf"] == Path("CONFIG.JSON")
    assert options["sublayers"] == ("fc2", "op")
