"""What is made of finished runs in Python: traces, explanations, reports; the same as the commands make."""

from pathlib import Path

import opent3
import pytest
from click.testing import CliRunner
from opent3 import Comparison
from t3sim.cli import main as cli

from tests.support.traces import read_trace

GEMM = {"m": 128, "n": 64, "k": 64, "tp": 4}
TOY = {"machine": "toy", "hardware": "golden", "threads": 1}
COMMAND = ("--machine", "toy", "--hardware", "golden", "--m", "128", "--n", "64", "--k", "64", "--tp", "4")


def t3(*arguments: object) -> str:
    result = CliRunner().invoke(cli.main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return opent3.compare(opent3.custom_workload(**GEMM), ("sequential", "t3-mca"), events=True, **TOY)


def test_a_trace_of_a_comparison_and_of_one_run_is_what_the_command_writes(comparison, tmp_path):
    comparison.trace(tmp_path / "both.pftrace")
    comparison.runs["t3-mca"].trace(tmp_path / "one.pftrace")
    t3("compare", *COMMAND, "--policies", "sequential,t3-mca", "--trace", tmp_path / "command.pftrace")
    assert (tmp_path / "both.pftrace").read_bytes() == (tmp_path / "command.pftrace").read_bytes()
    assert {track.process.split()[0] for track in read_trace(tmp_path / "one.pftrace")} == {"t3-mca"}


def test_a_trace_may_be_asked_for_before_the_run(comparison, tmp_path):
    path, out = tmp_path / "out" / "a.pftrace", tmp_path / "out"
    run = opent3.run(opent3.custom_workload(**GEMM), out=out, trace=path, **TOY)
    comparison.runs["t3-mca"].trace(tmp_path / "later.pftrace")
    assert path.read_bytes() == (tmp_path / "later.pftrace").read_bytes()
    assert run.record == comparison.runs["t3-mca"].record and (out / "result.json").exists()


@pytest.mark.parametrize(
    ("name", "message"), [("a.json", "ends with .pftrace"), ("missing/a.pftrace", "No such file or directory")]
)
def test_a_trace_that_cannot_be_written_is_refused_before_the_run(tmp_path, monkeypatch, name, message):
    monkeypatch.setattr("opent3.runs.run_policies", lambda *_: pytest.fail("simulated"))
    with pytest.raises(ValueError, match=message):
        opent3.run(opent3.custom_workload(**GEMM), trace=tmp_path / name, **TOY)
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_events_and_a_computed_policy_have_no_trace(tmp_path):
    work = opent3.custom_workload(**GEMM)
    with pytest.raises(ValueError, match="called with events=True"):
        opent3.run(work, **TOY).trace(tmp_path / "a.pftrace")
    with pytest.raises(ValueError, match="ideal-overlap is computed from others"):
        opent3.run(work, "ideal-overlap", trace=tmp_path / "a.pftrace", **TOY)
    assert list(tmp_path.iterdir()) == []


def test_an_explanation_is_the_commands_of_a_folder_and_of_what_is_in_memory(comparison, tmp_path):
    comparison.save(tmp_path / "out")
    said = opent3.explain(comparison)
    assert list(said.findings) == ["sequential", "t3-mca"]
    assert str(said) == str(opent3.explain(tmp_path / "out")) and f"{said}\n" == t3("explain", tmp_path / "out")
    assert list(opent3.explain(comparison.runs["t3-mca"]).findings) == ["t3-mca"]
    first = said.to_json()["runs"]["t3-mca"][0]
    assert first["text"] == said.findings["t3-mca"][0].text and first["figures"]


def test_what_cannot_be_explained_is_a_value_error(tmp_path):
    with pytest.raises(ValueError, match="must be the --out folder of `t3 run` or `t3 compare`"):
        opent3.explain(tmp_path)
    with pytest.raises(ValueError, match="results must be a Run, a Comparison, or a folder of either, not 3"):
        opent3.explain(3)  # type: ignore[arg-type]


@pytest.mark.long
def test_a_report_is_the_commands(comparison, tmp_path):
    comparison.save(tmp_path / "out")
    assert opent3.report(tmp_path / "out") == tmp_path / "out" / "report.html"
    own = opent3.report([tmp_path / "out", str(tmp_path / "out")], tmp_path / "two.html")
    t3("report", tmp_path / "out", tmp_path / "out", "--out", tmp_path / "command.html")
    assert own.read_bytes() == (tmp_path / "command.html").read_bytes()
    assert (tmp_path / "out" / "report.html").stat().st_size > 1_000_000, "the charts' library is inside"


@pytest.mark.parametrize(
    ("folders", "out", "message"),
    [
        ([], None, "folders must be at least one"),
        (3, None, "folders must be a list of folders, not 3"),
        ([3], None, "folders must be a list of folders, not of 3"),
        (".", "missing/a.html", "DIR must be an output folder"),
        (".", 3, "out must be a path, not 3"),
    ],
)
def test_a_report_of_nothing_is_a_value_error(tmp_path, monkeypatch, folders, out, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        opent3.report(folders, out)


def test_a_preview_comes_first_and_stays(tmp_path, monkeypatch):
    seen: list[tuple[Comparison, bool]] = []
    out, early = tmp_path / "out", tmp_path / "early"
    found = opent3.compare(
        opent3.custom_workload(**GEMM), ("sequential", "t3-mca"), out=out, preview=early,
        on_preview=lambda preview: seen.append((preview, (early / "compare.json").exists())), **TOY,
    )  # fmt: skip
    ((preview, written),) = seen
    assert written and all(run.record.mirror for run in preview.runs.values())
    assert not any(run.record.mirror for run in found.runs.values()) and (out / "compare.json").exists()
    with pytest.raises(ValueError, match="with --mirror there is no more"):
        opent3.compare(opent3.custom_workload(**GEMM), preview=early, mirror=True, **TOY)
    with pytest.raises(ValueError, match="neither in the folder of --out nor around it"):
        opent3.compare(opent3.custom_workload(**GEMM), preview=out / "early", out=out, **TOY)


def test_tables_are_what_the_commands_print(comparison):
    printed = t3("compare", *COMMAND, "--policies", "sequential,t3-mca")
    from t3sim.cli.console import plain_console

    console = plain_console()
    with console.capture() as capture:
        console.print(comparison.table())
    assert capture.get() in printed
    with console.capture() as capture:
        console.print(comparison.runs["t3-mca"].table())
    assert "speedup over sequential" in capture.get()


def test_waves_are_the_commands(tmp_path: Path):
    work = opent3.custom_workload(m=256, n=64, k=64, tp=4)
    found = opent3.waves(work, tmp_path / "api", parts="trigger", from_ns=700, to_ns=720, **TOY)
    t3("waves", *COMMAND[:4], "--m", 256, "--n", 64, "--k", 64, "--tp", 4, "--parts", "trigger", "--from-ns", 700,
       "--to-ns", 720, "--out", tmp_path / "command")  # fmt: skip
    assert [path.name for path in found.files] == ["golden.gtkw", "golden.sucl", "golden.vcd"]
    for path in found.files:
        assert path.read_bytes() == (tmp_path / "command" / path.name).read_bytes()
    assert found.summary.startswith("GPU 0, trigger: 700 ns to 720 ns (20 clocks)")
    assert (found.compared, found.difference) == (False, None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpu": "1"}, "--gpu must be a whole number, not '1'"),
        ({"parts": 3}, "parts must be names of parts, by commas, not 3"),
        ({"golden": False, "internals": False}, "leave out --no-internals, --no-golden"),
        ({"around": 2, "from_ns": 1, "to_ns": 2}, "give either --around, or --from-ns and --to-ns"),
        ({"policy": "ideal-overlap"}, "--policy must be one that is simulated"),
    ],
)
def test_what_has_no_waves_is_a_value_error(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        opent3.waves(opent3.custom_workload(**GEMM), tmp_path / "out", **{**TOY, **options})
    assert not (tmp_path / "out").exists()
