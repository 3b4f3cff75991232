"""``--jobs`` and ``--scheduler`` of the commands that run much."""

import logging
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from distributed import LocalCluster
from t3sim.cli import main as cli
from t3sim.common.cache import cache_folder

from tests.support.model_configs import write_config

TINY = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "vocab_size": 100, "intermediate_size": 128,
}  # fmt: skip
SWEEP = (
    "sweep", "--batch", "2", "--sequence", "64", "--vary", "link.gb_s=10,20", "--policies", "t3-mca", "--tp", "2",
    "--machine", "toy", "--sublayers", "op",
)  # fmt: skip


def t3(cache: Path, *arguments: object):
    return CliRunner(env={"OPENT3_CACHE": str(cache)}).invoke(cli.main, [str(item) for item in arguments])


def fresh_cache(folder: Path) -> Path:
    """A cache folder with what is compiled, and no finished run."""
    folder.mkdir()
    for kept in cache_folder().iterdir():
        if kept.name not in ("results", "faults"):
            (folder / kept.name).symlink_to(kept)
    return folder


@pytest.mark.long
def test_a_sweep_is_the_same_on_this_computer_and_on_a_cluster(tmp_path):
    config = write_config(tmp_path, "llama-3-8b", **TINY)
    with LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL + 1,
    ) as cluster:  # fmt: skip
        for name, where in (("here", ("--jobs", 2)), ("there", ("--scheduler", cluster.scheduler_address))):
            cache = fresh_cache(tmp_path / name)
            result = t3(cache, *SWEEP, "--hf", config, *where, "--out", tmp_path / f"{name}-out")
            assert result.exit_code == 0, result.output
            assert (cache / "results" / "runs.sqlite").exists()
            shown = "dashboard at http://" if name == "there" or find_spec("bokeh") else "no dashboard: Bokeh, which"
            assert f"sweep: {shown}" in result.stderr
    texts = [(tmp_path / f"{name}-out" / "sweep.json").read_bytes() for name in ("here", "there")]
    assert texts[0] == texts[1]


@pytest.mark.long
@pytest.mark.parametrize("command", [SWEEP, ("faults", "--faults", "8"), ("reproduce", "--hardware", "golden")])
def test_no_scheduler_is_one_message(tmp_path, command):
    config = ("--hf", write_config(tmp_path, "llama-3-8b", **TINY)) if command is SWEEP else ()
    result = t3(tmp_path / "cache", *command, *config, "--scheduler", "tcp://127.0.0.1:1")
    assert (result.exit_code, "Traceback" in result.output) == (2, False)
    assert result.stderr.splitlines()[-1].startswith("Error: --scheduler must be the address of a Dask scheduler")


def test_jobs_are_of_this_computer(tmp_path):
    result = t3(tmp_path, "reproduce", "--jobs", 2, "--scheduler", "tcp://127.0.0.1:1")
    assert result.exit_code == 2
    assert "with --scheduler it is the cluster that decides how many run at a time: leave out --jobs" in result.stderr


def test_help_does_not_load_what_runs_much():
    late = ("distributed", "numba", "matplotlib", "pandas")
    program = f"import sys; import t3sim.cli.main; sys.exit(any(name in sys.modules for name in {late}))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
