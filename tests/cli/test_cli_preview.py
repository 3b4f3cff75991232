"""``t3 compare --preview``: one GPU mirrored first, in a folder of its own, and what an interruption leaves."""

import json
import sys
import types
from pathlib import Path

import pytest
from click.testing import CliRunner
from t3sim.cli import main as cli
from t3sim.common.manifest import MANIFEST, Manifest
from t3sim.run.request import RunRequest, RunResult

from tests.support.sample_result import sample_run

POLICIES = ("--policies", "sequential,t3-mca")


@pytest.fixture
def requests(monkeypatch) -> list[RunRequest]:
    """Requests that the engine received; the results are made up."""
    received: list[RunRequest] = []

    def simulate(request, on_progress) -> RunResult:
        received.append(request)
        return sample_run(request.policy, request.workload)

    monkeypatch.setitem(sys.modules, "t3sim.run.simulate", types.SimpleNamespace(simulate=simulate))
    return received


def compare(*arguments: object):
    return CliRunner().invoke(cli.main, ["compare", *POLICIES, *map(str, arguments)])


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_one_gpu_is_simulated_first_and_then_all(requests, tmp_path: Path):
    result = compare("--out", tmp_path / "out", "--preview", tmp_path / "early", "--data-lines", 8)
    assert result.exit_code == 0, result.output
    assert [(request.policy, request.mirror, request.data_lines) for request in requests] == [
        ("sequential", True, None), ("t3-mca", True, None), ("sequential", False, 8), ("t3-mca", False, 8),
    ]  # fmt: skip
    assert result.stdout.index("Preview: one GPU") < result.stdout.index(f"written to {tmp_path / 'early'}")
    assert result.stdout.index("Now all 8 GPUs") < result.stdout.index(f"written to {tmp_path / 'out'}")
    assert result.stdout.count("speedup over sequential") == 2
    assert "preview of t3-mca: started" in result.stderr and "\nt3-mca: started" in result.stderr


def test_each_folder_is_an_output_of_its_own(requests, tmp_path: Path):
    """The whole output is the same with a preview and without."""
    for _ in range(2):  # the second time replaces the first
        assert compare("--out", tmp_path / "out", "--preview", tmp_path / "early").exit_code == 0
    assert compare("--out", tmp_path / "alone").exit_code == 0
    assert files(tmp_path) == ["alone", "early", "out"]
    assert files(tmp_path / "early") == files(tmp_path / "out")
    assert {"compare.json", "comparison.png", MANIFEST} <= set(files(tmp_path / "early"))
    with_preview, alone = (Manifest.read(tmp_path / name) for name in ("out", "alone"))
    assert with_preview == alone and with_preview is not None


def test_the_preview_is_there_while_the_ring_is_simulated(requests, monkeypatch, tmp_path: Path):
    seen: list[list[str]] = []

    def simulate(request, on_progress) -> RunResult:
        if not request.mirror:
            seen.append([name for name in files(tmp_path) if not name.startswith(".")])
        return sample_run(request.policy, request.workload)

    monkeypatch.setattr(sys.modules["t3sim.run.simulate"], "simulate", simulate)
    assert compare("--out", tmp_path / "out", "--preview", tmp_path / "early").exit_code == 0
    assert seen == [["early"], ["early"]]


def test_an_interruption_keeps_the_preview_and_says_where(requests, monkeypatch, tmp_path: Path):
    def simulate(request, on_progress) -> RunResult:
        if not request.mirror:
            raise KeyboardInterrupt
        return sample_run(request.policy, request.workload)

    monkeypatch.setattr(sys.modules["t3sim.run.simulate"], "simulate", simulate)
    result = compare("--out", tmp_path / "out", "--preview", tmp_path / "early")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == f"Error: interrupted; only the preview was written, in {tmp_path}/early"
    assert files(tmp_path) == ["early"]
    assert json.loads((tmp_path / "early" / "compare.json").read_text())["runs"].keys() == {"sequential", "t3-mca"}


def test_an_interrupted_preview_leaves_nothing(requests, monkeypatch, tmp_path: Path):
    def simulate(request, on_progress) -> RunResult:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["t3sim.run.simulate"], "simulate", simulate)
    result = compare("--out", tmp_path / "out", "--preview", tmp_path / "early")
    assert result.exit_code == 130 and "no output was written" in result.stderr
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--preview", "early", "--mirror"), "leave one of them out"),
        (("--preview", "out", "--out", "./out"), "--preview must be neither in the folder of --out nor around it"),
        (("--preview", "out/early", "--out", "out"), "--preview must be neither in"),
        (("--preview", "out", "--out", "out/late"), "--preview must be neither in"),
        (("--preview", "mine", "--out", "out"), "holds 'text'"),
        (("--preview", ""), "must be the name of a folder"),
    ],
)
def test_what_has_no_preview_is_refused_before_the_first_run(requests, monkeypatch, tmp_path: Path, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "text").write_text("")
    result = compare(*options)
    assert result.exit_code == 2 and message in result.stderr
    assert requests == [] and files(tmp_path) == ["mine"] and files(tmp_path / "mine") == ["text"]
