"""The commands in a report are what the user typed, as far as records hold it."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from t3sim.cli import main as cli
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
from t3sim.study.model_record import WholeModelRecord
from t3sim.study.sweep import OwnModel, SweepRecord, axes_of, product_of

from tests.support.report_folders import (
    REPRODUCTION,
    compare_folder,
    map_folder,
    model_folder,
    run_folder,
    sweep_folder,
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


def test_a_whole_model(tmp_path: Path):
    folder = read_folder(model_folder(tmp_path / "out"))
    assert isinstance(folder, Modelled)
    name, options = parsed(shell(model_command(folder.record, folder.name)))
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
    _, options = parsed(shell(command))
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


def command_of(record: SweepRecord, *, assumptions: bool = False) -> Command:
    command = sweep_command(record, "out", assumptions=assumptions)
    assert command is not None
    return command


def read_swept(tmp_path: Path, work: dict[str, str]) -> SweepRecord:
    """The record of a sweep of nothing but ``work``."""
    folder = read_folder(sweep_folder(tmp_path / "out"))
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
    name, options = parsed(shell(map_command(folder.record, folder.name)))
    assert name == "map" and options["quick"] is True and options["axes"] == ("dispatch", "order", "release")
    assert (options["models"], options["sublayers"], options["degrees"]) == (("t-nlg",), ("fc2", "op"), ("8",))
    assert options["machine"] == "paper" and options["hardware"] == "golden" and options["launches"] == 1


def test_a_map_of_several_launches():
    record = sample_map()
    for machine in record.machines:
        machine.cells[:] = [cell.model_copy(update={"launches": 3}) for cell in machine.cells]
    assert parsed(shell(map_command(record, "out")))[1]["launches"] == 3


def test_a_map_without_changes_and_with_a_random_gemm():
    record = sample_gains()
    drawn = record.gemms[1].model_copy(update={"model": "custom", "sublayer": "custom"})
    record = record.model_copy(update={"gemms": [record.gemms[0], drawn], "quick": False})
    name, options = parsed(shell(map_command(record, "out")))
    assert name == "map" and options["quick"] is False and options["axes"] == ("none",) and options["count"] == 1
    assert (options["models"], options["sublayers"], options["degrees"]) == (("t-nlg",), ("fc2",), ("8",))
    section = map_section(Mapped(name="out", record=record, config=None))
    titles = [block.title for block in section.blocks]
    assert "Every GEMM" in titles and "Changes" not in titles
    assert "; ".join(record.titles) in section.facts


def test_a_map_of_many_gemms_names_the_first():
    record = sample_gains()
    machine = record.machines[0].model_copy(update={"cells": record.machines[0].cells * 10})
    many = record.model_copy(update={"gemms": record.gemms * 10, "machines": [machine]})
    section = map_section(Mapped(name="out", record=many, config=None))
    assert section.facts[-1] == "; ".join([*many.titles[:12], "and 8 more"])


def test_a_reproduction():
    folder = read_folder(REPRODUCTION)
    assert isinstance(folder, Reproduced)
    name, options = parsed(shell(reproduce_command(folder.record, "out")))
    assert name == "reproduce" and options["only"] == () and options["quick"] is False
    some = folder.record.model_copy(update={"tables": ["traffic"], "quick": True, "settings": {"link.gb_s": 75}})
    _, options = parsed(shell(reproduce_command(some, "out")))
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
    name, options = parsed(shell(sweep_command(folder.record, folder.name, assumptions=False)))
    assert name == "sweep" and options["hf"] == Path("CONFIG.JSON")
    assert options["sublayers"] == ("fc2", "op")
