"""Warnings of a run: what is wrong with its use, and a remedy that is one."""

import re
from typing import Any

import opent3
import pytest
from click.testing import CliRunner
from opent3.advice import overflow_advice
from t3hdl.config import preset
from t3sim.cli import main as cli
from t3sim.run.result import BlocksRecord

from tests.support.sample_result import sample_result

GEMM = {"m": 256, "n": 256, "k": 512, "tp": 4}
TOY: dict[str, Any] = {"machine": "toy", "hardware": "golden", "threads": 1}


def late(policy: Any, count: int):
    return sample_result(policy).model_copy(update={"blocks": BlocksRecord(by_tile=10, by_chunk=count)})


def test_a_tracker_that_was_full_is_named_once_for_all_policies():
    (text,) = overflow_advice([sample_result("sequential"), late("t3", 6), late("t3-mca", 0)], preset("paper"))
    assert text.startswith(
        "the tracker was full (256 sets of 8 ways), so that blocks waited for their whole chunk: t3 (6"
    )
    assert "t3-mca" not in text and text.endswith("--set hardware.tracker_ways=16 or --set hardware.tracker_sets=512")
    assert overflow_advice([sample_result("sequential"), late("t3", 0)], preset("paper")) == []


def test_what_cannot_have_more_is_told_no_such_thing():
    (text,) = overflow_advice([late("t3", 1)], preset("paper", tracker_ways=16))
    assert "tracker_ways=" not in text and text.endswith("as --set hardware.tracker_sets=512")
    (text,) = overflow_advice([late("t3", 1)], preset("paper", tracker_ways=16, tracker_sets=4096))
    assert text.endswith("it has all that it can have")


def test_the_remedy_for_a_full_tracker_is_one():
    work, settings, late_blocks = opent3.custom_workload(**GEMM), dict[str, object](), []
    while True:
        run = opent3.run(work, "t3-mca", settings=settings, **TOY)
        assert run.record.blocks is not None
        late_blocks.append(run.record.blocks.by_chunk)
        if not run.warnings:
            break
        (text,) = run.warnings
        settings = {"hardware.tracker_ways": int(re.findall(r"tracker_ways=(\d+)", text)[0])}
    assert late_blocks[0] == 16 and late_blocks[-1] == 0 and len(late_blocks) <= 4


@pytest.mark.parametrize(("policy", "lines"), [("t3-mca", 1), ("sequential", 0)])
def test_the_command_prints_a_line_below_the_table(policy, lines):
    sizes = [text for name, value in GEMM.items() for text in (f"--{name}", str(value))]
    result = CliRunner().invoke(
        cli.main, ["run", "--machine", "toy", "--hardware", "golden", "--policy", policy, *sizes]
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.count("the tracker was full") == lines
    if lines:
        assert result.stdout.splitlines()[-1].startswith("the tracker was full (4 sets of 2 ways)")


def test_an_unvalidated_machine_has_its_remedy_above_the_figures():
    result = CliRunner().invoke(
        cli.main,
        ["run", "--machine", "h100-like", "--m", "512", "--n", "512", "--k", "512", "--tp", "2", "--mirror",
         "--hardware", "golden"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    (place,) = (number for number, line in enumerate(lines) if line.startswith("unvalidated machine: h100-like"))
    assert lines[place].endswith("`t3 validate gpu --machine` times its GEMMs beside the model's")
    assert place < next(number for number, line in enumerate(lines) if line.startswith("time (")), "before any figure"
