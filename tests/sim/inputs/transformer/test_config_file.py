"""Files that are no configuration, or describe what cannot be: one message that names key, rule and value."""

import json
import os
from pathlib import Path

import pytest
from t3sim.inputs.transformer.config_file import MAX_BYTES, own_model

from tests.support.model_configs import write_config


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("llama-3-8b", {"model_type": "bert"}, "model_type must be one of llama, mistral, .*, not 'bert'$"),
        ("llama-3-8b", {"model_type": 7}, "model_type must be one of .*, not 7$"),
        ("llama-3-8b", {"model_type": ...}, "model_type is missing; it must be one of llama"),
        ("llama-3-8b", {"hidden_size": ...}, r"\(llama\): hidden_size is missing$"),
        ("llama-3-8b", {"hidden_size": "4096"}, "hidden_size: input should be a valid integer, not '4096'"),
        ("llama-3-8b", {"hidden_size": 4096.5}, "hidden_size: .*, not 4096.5"),
        ("llama-3-8b", {"hidden_size": True}, "hidden_size: .*, not True"),
        ("llama-3-8b", {"hidden_size": 0}, "hidden_size: .*greater than or equal to 1, not 0"),
        ("llama-3-8b", {"hidden_size": -4096}, "hidden_size: .*, not -4096"),
        ("llama-3-8b", {"hidden_size": 1 << 30}, "hidden_size: .*equal to 1048576, not 1073741824"),
        ("llama-3-8b", {"hidden_size": None}, "hidden_size: .*, not None"),
        ("llama-3-8b", {"num_hidden_layers": 10**6}, "num_hidden_layers: .*less than or equal to 1000"),
        ("llama-3-8b", {"hidden_size": 4097}, r"hidden_size \(4097\) must be a multiple of num_att"),
        ("llama-3-8b", {"num_key_value_heads": 5}, r"num_attention_heads \(32\) must be a multiple of num_key_value_h"),
        ("llama-3-8b", {"num_key_value_heads": 0}, "num_key_value_heads: .*greater than or equal to 1, not 0"),
        ("llama-3-8b", {"attention_bias": "yes"}, "attention_bias: .*, not 'yes'"),
        ("llama-3-8b", {"vocab_size": ..., "intermediate_size": ...}, "vocab_size is missing; intermediate_size is mi"),
        ("mixtral-8x7b", {"num_experts_per_tok": 9}, r"num_experts_per_tok \(9\) must be at most num_local_experts"),
        ("mixtral-8x7b", {"num_local_experts": 0}, "num_local_experts: .*, not 0"),
        ("qwen3-30b-a3b", {"num_experts_per_tok": 129}, r"must be at most num_experts \(128\)"),
        ("qwen3-30b-a3b", {"decoder_sparse_step": 0}, "decoder_sparse_step: .*, not 0"),
        ("qwen3-30b-a3b", {"mlp_only_layers": [0] * 2000}, "mlp_only_layers: "),
        ("qwen3-30b-a3b", {"mlp_only_layers": ["a"]}, r"mlp_only_layers\.0: .*, not 'a'"),
        ("deepseek-v3", {"num_experts_per_tok": None}, r"in 1 to n_routed_experts \(256\), not None"),
        ("deepseek-v3", {"kv_lora_rank": ...}, "kv_lora_rank is missing"),
        ("gpt-neox-20b", {"rotary_pct": 1.5}, "rotary_pct: .*, not 1.5"),
        ("gpt-neox-20b", {"num_attention_heads": 63}, "must be a multiple of num_attention_heads"),
        ("falcon-40b", {"num_kv_heads": 7}, r"num_attention_heads \(128\) must be a multiple of num_kv_heads \(7\)"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, name: str, changes: dict, message: str):
    with pytest.raises(ValueError, match=message) as caught:
        own_model(write_config(tmp_path, name, **changes), "training", 8, 1024)
    assert f"--hf {tmp_path}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a JSON file of a model: Expecting value"),
        (b"[1]", r"must hold a JSON object, not \[1\]"),
        (b'{"model_type": "llama",}', "is not a JSON file"),
        (b"\xff\xfe{}", "is not UTF-8 text"),
        (b"[" * 100_000, "nests lists or objects too deeply"),
        (b'{"model_type": "llama", "hidden_size": ' + b"9" * 5000 + b"}", "a number has 5000 digits, and no"),
        (b" " * (MAX_BYTES + 1), f"larger than {MAX_BYTES} bytes"),
        (b'{"model_type": "llama", "hidden_size": NaN}', "hidden_size: "),
    ],
)
def test_files_that_are_none_are_refused(tmp_path: Path, content: bytes, message: str):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        own_model(path, "training", 8, 1024)


def test_only_regular_files_are_read(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for name, message in (
        ("none.json", "none.json cannot be read: No such file"), ("pipe", "not a regular file"), ("", "Is a directory"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            own_model(tmp_path / name, "training", 8, 1024)


def test_a_mark_of_byte_order_does_no_harm(tmp_path: Path):
    path = write_config(tmp_path, "llama-3-8b")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert own_model(path, "training", 8, 1024).parameters == 8_030_261_248


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", 8, 1024), "phase must be one of prompt, decode, training, not 'train'; did you mean 'training'"),
        (("prompt", 0, 1024), "--batch must be in 1 to 65536, not 0"),
        (("prompt", 8, 0), "--sequence must be in 1 to 4194304, not 0"),
        (("prompt", 65536, 65), "--batch x --sequence must be at most 4194304 tokens, not 65536 x 65"),
    ],
)
def test_tokens_out_of_range_are_refused(tmp_path: Path, arguments: tuple, message: str):
    with pytest.raises(ValueError, match=message):
        own_model(write_config(tmp_path, "llama-3-8b"), *arguments)


def test_a_model_is_named_by_its_file_or_the_folder_of_its_config_json(tmp_path: Path):
    path = write_config(tmp_path, "llama-3-8b")
    assert own_model(path, "training", 8, 1024).name == "llama-3-8b"
    folder = tmp_path / "Llama-3.1"
    folder.mkdir()
    (folder / "config.json").write_text(path.read_text())
    assert own_model(folder / "config.json", "training", 8, 1024).name == "Llama-3.1"


def test_files_of_the_format_have_many_more_keys(tmp_path: Path):
    path = write_config(tmp_path, "llama-3-8b", quantization_config={"bits": 4}, rope_scaling={"factor": 8.0}, x=None)
    assert json.loads(path.read_text())["x"] is None
    own_model(path, "training", 8, 1024)


@pytest.mark.parametrize("name", ["t-nlg", "gpt-3", "custom"])
@pytest.mark.parametrize("file", ["{}.json", "{}/config.json"])
def test_a_name_that_this_program_has_is_refused(tmp_path: Path, name: str, file: str):
    target = tmp_path / file.format(name)
    target.parent.mkdir(exist_ok=True)
    write_config(tmp_path, "llama-3-8b").rename(target)
    with pytest.raises(ValueError, match=f"would give a model of the name '{name}'"):
        own_model(str(target), "training", 8, 1024)
