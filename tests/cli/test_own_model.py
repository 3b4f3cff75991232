"""``--hf`` in every command that takes a model, with a tiny one on the toy machine."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from t3sim.cli import main as cli

from tests.support.model_configs import write_config

TINY = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "vocab_size": 100, "intermediate_size": 128,
}  # fmt: skip
TOKENS = ("--batch", "2", "--sequence", "64")
TOY = ("--machine", "toy", "--hardware", "golden")


def t3(*arguments: object):
    return CliRunner(env={"OMP_NUM_THREADS": "1"}).invoke(cli.main, [str(item) for item in arguments])


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_config(tmp_path, "llama-3-8b", **TINY)


def test_a_sublayer_runs_and_is_checked(tiny: Path, tmp_path: Path):
    result = t3("run", "--hf", tiny, *TOKENS, "--tp", 2, *TOY, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "llama-3-8b fc2 TP 2 (128 x 64 x 128) on machine toy" in result.stdout
    assert re.search(r"^ +mismatches +0$", result.stdout, re.MULTILINE)
    record = json.loads((tmp_path / "out" / "result.json").read_text())
    assert record["workload"]["model"] == "llama-3-8b"
    assert record["workload"]["sublayer"] == "fc2"


def test_experts_say_what_is_assumed(tmp_path: Path):
    path = write_config(tmp_path, "mixtral-8x7b", **TINY)
    result = t3("compare", "--hf", path, *TOKENS, "--tp", 2, "--sublayer", "op", "--policies", "t3", *TOY)
    assert result.exit_code == 0, result.output
    assert "balanced routing, 8 experts with 32 rows each" in result.stdout


def test_a_whole_model_in_every_phase(tiny: Path):
    for phase, rows in (("prompt", 2), ("decode", 2)):
        result = t3("model", "--hf", tiny, *TOKENS, "--tp", 2, "--phase", phase, "--jobs", 1, *TOY)
        assert result.exit_code == 0, result.output
        assert f"llama-3-8b, TP 2, {phase}, unfused attention" in result.stdout
        assert len(re.findall(r"^sublayer ", result.stdout, re.MULTILINE)) == rows
        assert "tokens in the cache" in result.stdout or phase == "prompt"


def test_a_sweep_takes_all_sublayers_or_those_named(tiny: Path, tmp_path: Path):
    vary = ("--vary", "link.gb_s=10,20", "--policies", "t3-mca", "--tp", 2, "--jobs", 1, *TOY)
    for chosen, expected in (((), ["fc1", "fc2", "ip", "op"]), (("--sublayers", "op"), ["op"])):
        result = t3("sweep", "--hf", tiny, *TOKENS, *vary, *chosen, "--out", tmp_path / f"out{len(expected)}")
        assert result.exit_code == 0, result.output
        record = json.loads((tmp_path / f"out{len(expected)}" / "sweep.json").read_text())
        assert record["own"] == {"phase": "training", "batch": 2, "sequence": 64}
        runs = record["variants"][0]["runs"]
        assert sorted({run["result"]["workload"]["sublayer"] for run in runs}) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--hf", "{}", "--model", "t-nlg"), "give one of --hf, --model, or --m, --n and --k"),
        (("run", "--hf", "{}", "--m", "64"), "give one of --hf, --model, or --m, --n and --k"),
        (("run", "--hf", "none.json"), "--hf none.json cannot be read: No such file"),
        (("run", "--hf", ""), "must be the name of a file, not empty"),
        (("run", "--hf", "{}", "--tp", "3"), "--tp must divide the attention heads (4)"),
        (
            ("run", "--hf", "{}", "--tp", "2", "--sublayer", "fc3"),
            "sublayer must be one of op, fc2, fc1, ip, not 'fc3'",
        ),
        (("run", "--hf", "{}", "--tp", "2", "--sublayer", "fc1", "--phase", "decode"), "must be one of op, fc2, not"),
        (("run", "--hf", "{}", "--tp", "2", "--phase", "train"), "did you mean 'training'?"),
        (("run", "--batch", "2"), "these options go with --hf: leave out --batch"),
        (("run", "--phase", "decode"), "these options go with --hf: leave out --phase"),
        (("bench", "--quick", "--hf", "{}"), "--quick chooses machine and GEMM itself: leave out --hf"),
        (("model", "--hf", "{}", "--model", "t-nlg"), "give either --hf or --model, not both"),
        (("model", "--hf", "{}", "--tp", "16"), "--tp must divide the attention heads (4)"),
        (("model", "--sequence", "64"), "these options go with --hf: leave out --sequence"),
        (("model", "--hf", "{}", "--tp", "2", "--phase", "decode", "--optimizer"), "not to 'decode'"),
        (("model", "--phase", "decode"), "phase must be one of prompt, training, not 'decode'"),
        (("sweep", "--hf", "{}", "--models", "t-nlg", "--vary", "link.gb_s=1,2"), "leave out --models"),
        (("sweep", "--hf", "{}", "--tp", "x", "--vary", "link.gb_s=1,2"), "numbers of GPUs separated by commas"),
        (("sweep", "--hf", "{}", "--tp", "", "--vary", "link.gb_s=1,2"), "at least one sublayer and one degree"),
        (
            ("sweep", "--hf", "{}", "--m", "8", "--n", "8", "--k", "8", "--vary", "link.gb_s=1,2"),
            "give one of --hf, --mod",
        ),
        (("sweep", "--phase", "decode", "--vary", "link.gb_s=1,2"), "leave out --phase"),
    ],
)
def test_errors_are_one_message_and_exit_code_2(tiny: Path, arguments, message):
    result = t3(*(text.format(tiny) for text in arguments))
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.stderr
