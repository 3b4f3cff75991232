"""Reports of what t3 really writes: toys on the golden model, from the command line to the page and back."""

import shlex
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest
from click.testing import CliRunner
from opent3 import many
from t3sim.cli import main as cli
from t3sim.run.records import read_result

from tests.support.html_page import Page
from tests.support.toy_evaluation import toy_suite

pytestmark = pytest.mark.long
TOY = ("--m", "256", "--n", "64", "--k", "64", "--tp", "2", "--machine", "toy", "--hardware", "golden")
FEW = ("--machine", "toy", "--models", "t-nlg", "--sublayers", "op", "--tp", "8")
COMMANDS = {
    "run": ("run", *TOY, "--policy", "t3"),
    "compare": ("compare", *TOY),
    "model": ("model", "--phase", "prompt"),
    "sweep": ("sweep", *FEW, "--vary", "link.gb_s=10,20"),
    "sensitivity": ("sweep", *FEW, "--variants", "block-tile"),
    "map": ("map", *FEW, "--axes", "starvation,order"),
    "reproduce": ("reproduce", "--hardware", "golden", "--only", "timeline"),
}


def t3(*arguments: str) -> str:
    result = CliRunner(env={"OMP_NUM_THREADS": "1"}).invoke(cli.main, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """A folder with an output folder of every kind, each with its report."""
    root = tmp_path_factory.mktemp("real")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many, "Suite", lambda **choices: toy_suite(patch, **{**choices, "machine": "toy"}))
        for kind, command in COMMANDS.items():
            t3(*command, "--out", str(root / kind))
            assert t3("report", str(root / kind)) == f"written to {root / kind / 'report.html'}\n"
    return root


def page_of(folder: Path) -> Page:
    return Page((folder / "report.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", COMMANDS)
def test_every_kind_is_shown(written, kind):
    page = page_of(written / kind)
    blocks, charts = (7, 1) if kind == "map" else (11, 3)
    assert len(page.all("h3")) >= blocks
    assert len(page.all("div", role="img")) >= charts
    assert not page.all("div", **{"class": "card bad"})


def test_a_computed_policy_alone_has_a_page(written):
    folder = written / "compare" / "ideal-overlap"
    assert t3("report", str(folder), "-o", str(written / "ideal.html"))
    assert "The folder has no timeline.json" in Page((written / "ideal.html").read_text()).all("main")[0].text


@pytest.mark.parametrize("kind", ["run", "compare"])
def test_the_command_of_the_page_gives_the_results_again(written, tmp_path: Path, monkeypatch, kind):
    page = page_of(written / kind)
    (link,) = (link for link in page.all("a") if link.attributes.get("download"))
    (tmp_path / link.attributes["download"]).write_text(unquote(link.attributes["href"].partition(",")[2]))
    assert "link" in tomllib.loads((tmp_path / "config.toml").read_text())
    command = next(code.text for code in page.all("code") if code.within("pre") and code.text.startswith("t3 "))
    monkeypatch.chdir(tmp_path)
    t3(*shlex.split(command.replace("\\ ", " "))[1:])
    for path in (written / kind).rglob("result.json"):
        again = read_result(tmp_path / kind / path.relative_to(written / kind))
        assert again.model_copy(update={"machine": "toy"}) == read_result(path)
