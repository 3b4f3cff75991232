"""The figures of the README are those of the run and of the reproduction that are kept, and those are today's."""

import re
import subprocess

import opent3
import pytest
from t3sim.run.records import Comparison, read_record

from docs.pages import readme

README = readme.PAGE.read_text(encoding="utf-8")


def rows(table: str) -> dict[str, list[str]]:
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
    return {first: others for first, *others in cells}


def test_the_table_of_make_run_has_its_times_and_speedups():
    record = read_record(readme.KEPT / "compare.json", Comparison)
    found = rows(readme.run_table(record))
    assert found["speedup"] == [f"{gain:.3f}" for gain in record.speedup_over_sequential.values() if gain is not None]
    times = [result.time_ns.total for result in record.runs.values()]
    assert [float(text) * 1e3 for text in found["time (us)"]] == pytest.approx(times, rel=1e-3)
    assert found[""] == [f"`{policy}`" for policy in record.runs]
    assert readme.run_table(record) in README


def test_what_is_kept_is_what_make_run_does():
    dry = subprocess.run(
        ["make", "--dry-run", "run"], cwd=readme.PAGE.parent, capture_output=True, text=True, check=True
    ).stdout
    assert f".venv/bin/t3 {' '.join(readme.ARGUMENTS)} --preview out/preview --out out/t-nlg-fc2-tp8\n" in dry
    record = read_record(readme.KEPT / "compare.json", Comparison)
    result = record.runs["t3-mca"]
    assert (result.workload.model, result.workload.sublayer, result.workload.tp) == ("t-nlg", "fc2", 8)
    assert (result.hardware, result.mirror, result.machine, result.gpus_simulated) == ("rtl", False, "paper", 8)
    assert result.data_check is not None and result.data_check.mismatches == 0


def test_the_claims_are_those_of_the_page_of_validation():
    page = (readme.RESULTS / "validation.md").read_text(encoding="utf-8")
    text = readme.claims(readme.REPRODUCTION)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert text in README and len(lines) == 2 + len(readme.CLAIMS)
    for line in lines[2:]:
        published_and_ours = re.match(r"\| .+? \| .+? \| .+? \| ", line)
        assert published_and_ours is not None and published_and_ours[0] in page, line


@pytest.mark.slow
def test_make_run_gives_today_what_is_kept():
    record = read_record(readme.KEPT / "compare.json", Comparison)
    now = opent3.compare(opent3.model_workload("t-nlg", "fc2", 8), ("sequential", "t3-mca"), hardware="golden")
    times = {policy: run.record.time_ns for policy, run in now.runs.items()}
    assert times == {policy: record.runs[policy].time_ns for policy in times}, "python -m docs.pages.readme"
