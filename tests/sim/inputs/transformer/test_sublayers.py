"""The all-reduced GEMMs of each family, written out by hand, and degrees that do not split a model."""

from pathlib import Path

import pytest
from t3sim.inputs.transformer.config_file import own_model
from t3sim.inputs.transformer.notes import notes, size_text
from t3sim.inputs.transformer.sublayers import sublayer_runs, sublayer_workload

from tests.support.model_configs import write_config

GEMMS = {
    "llama-3-8b": {"op": (4096, 4096), "fc2": (4096, 14336), "fc1": (4096, 2 * 14336), "ip": (4096, 48 * 128)},
    "llama-2-7b": {"op": (4096, 4096), "fc2": (4096, 11008), "fc1": (4096, 22016), "ip": (4096, 3 * 4096)},
    "qwen3-30b-a3b": {  # 4 heads of keys on 8 GPUs: 8
        "op": (2048, 4096), "fc2": (2048, 8 * 768), "fc1": (2048, 2 * 8 * 768), "ip": (2048, (32 + 2 * 8) * 128),
    },
    "mixtral-8x7b": {
        "op": (4096, 4096), "fc2": (4096, 2 * 14336), "fc1": (4096, 4 * 14336), "ip": (4096, 48 * 128),
    },
    "deepseek-v3": {
        "op": (7168, 128 * 128), "fc2-dense": (7168, 18432), "fc1-dense": (7168, 2 * 18432),
        "ip": (1536, 128 * 192), "ip-kv": (512, 128 * 256), "fc2": (7168, 9 * 2048), "fc1": (7168, 2 * 9 * 2048),
    },
    "deepseek-v2-lite": {
        "op": (2048, 2048), "fc2-dense": (2048, 10944), "fc1-dense": (2048, 2 * 10944), "ip": (2048, 16 * 192),
        "ip-kv": (512, 16 * 256), "fc2": (2048, 8 * 1408), "fc1": (2048, 2 * 8 * 1408),
    },
    "gpt-neox-20b": {"op+fc2": (6144, 6144 + 24576), "fc1": (6144, 24576), "ip": (6144, 3 * 6144)},
    "falcon-40b": {"op+fc2": (8192, 8192 + 32768), "fc1": (8192, 32768), "ip": (8192, (128 + 16) * 64)},
}  # fmt: skip
"""Model -> sublayer -> columns of the output, whole inner dimension; on 8 GPUs."""


@pytest.mark.parametrize("name", GEMMS)
def test_gemms_are_those_of_the_family(tmp_path: Path, name: str):
    model = own_model(write_config(tmp_path, name), "training", 4, 512)
    assert sublayer_runs(model, 8).keys() == GEMMS[name].keys()
    for sublayer, sizes in GEMMS[name].items():
        work = sublayer_workload(model, sublayer, 8)
        assert (work.m, work.n, work.k) == (2048, *sizes)
        assert work.k % 8 == 0
        assert (work.model, work.sublayer) == (name, sublayer)


def test_runs_count_the_layers_of_each_kind(tmp_path: Path):
    model = own_model(write_config(tmp_path, "deepseek-v3"), "training", 4, 512)
    expected = {"op": 61, "ip": 61, "ip-kv": 61, "fc2": 58, "fc1": 58, "fc2-dense": 3, "fc1-dense": 3}
    assert sublayer_runs(model, 8) == expected


@pytest.mark.parametrize("phase", ["prompt", "decode"])
def test_forward_phases_have_no_backward_sublayers(tmp_path: Path, phase):
    model = own_model(write_config(tmp_path, "llama-3-8b"), phase, 64, 512)
    assert list(sublayer_runs(model, 8)) == ["op", "fc2"]
    assert sublayer_workload(model, None, 8).sublayer == "fc2"
    assert sublayer_workload(model, "op", 8).m == (64 if phase == "decode" else 64 * 512)
    with pytest.raises(ValueError, match="sublayer must be one of op, fc2, not 'fc1'"):
        sublayer_workload(model, "fc1", 8)


def test_parallel_layers_with_one_norm_share_the_backward_all_reduce(tmp_path: Path):
    path = write_config(tmp_path, "falcon-7b", num_attention_heads=64, hidden_size=4096)
    model = own_model(path, "training", 8, 1024)
    assert list(sublayer_runs(model, 8)) == ["op+fc2", "ip+fc1"]
    work = sublayer_workload(model, "ip+fc1", 8)
    assert work.k == (64 + 2 * 8) * 64 + 4 * 4096  # the head of keys and values is on each of 8 GPUs
    assert sublayer_workload(model, None, 8).sublayer == "op+fc2"
    with pytest.raises(ValueError, match=r"sublayer must be one of op\+fc2, ip\+fc1, not 'fc2'"):
        sublayer_workload(model, "fc2", 8)


@pytest.mark.parametrize(
    ("name", "changes", "tp", "message"),
    [
        ("llama-3-8b", {}, 3, r"the attention heads \(32\) and .* \(14336\) of .*, and 3 does not.*: 2, 4, 8, 16, 32$"),
        ("llama-3-8b", {}, 64, r"divide the attention heads \(32\) of"),
        ("llama-3-8b", {}, 1, "--tp must be in 2 to 64 GPUs, not 1"),
        ("llama-3-8b", {}, 65, "--tp must be in 2 to 64 GPUs, not 65"),
        ("llama-3-8b", {"num_attention_heads": 48, "num_key_value_heads": 6, "head_dim": 64}, 16,
         r"divide the heads of keys and values \(6; or be a multiple of them\) of .*, and 16 does not; .* degrees: 2$"),
        ("mixtral-8x7b", {"intermediate_size": 14340}, 8, r"divide the width of an expert \(14340\)"),
        ("deepseek-v3", {"n_shared_experts": 1, "intermediate_size": 18436}, 8,
         r"divide the width of the feed-forward layer \(18436\)"),
        ("qwen2-57b-a14b", {"num_attention_heads": 28, "shared_expert_intermediate_size": 20481}, 4,
         r"divide the width of the shared expert \(20481\)"),
        ("falcon-7b", {}, 8, r"divide the attention heads \(71\) of falcon-7b, and 8 does not; no degree up to 64"),
    ],
)  # fmt: skip
def test_degrees_that_do_not_divide_are_refused(tmp_path: Path, name: str, changes: dict, tp: int, message: str):
    model = own_model(write_config(tmp_path, name, **changes), "training", 8, 1024)
    with pytest.raises(ValueError, match=message):
        sublayer_workload(model, "op", tp)


def test_assumptions_are_said_where_there_are_some(tmp_path: Path):
    def of(name: str, phase="training", batch=8, sequence=1024) -> list[str]:
        return notes(own_model(write_config(tmp_path, name), phase, batch, sequence), 8)

    assert of("llama-3-8b") == []
    (text,) = of("mixtral-8x7b")
    assert text.startswith("experts in 32 of 32 layers: each of 8 is split over the GPUs; balanced routing, 8 experts")
    assert "8 experts with 2048 rows each; for each token 2 experts of 14336 columns, whose sum is one GEMM" in text
    assert "balanced routing, 248 experts with 1 row each" in of("deepseek-v3", "decode", 31, 100)[1]
    assert of("qwen3-30b-a3b")[1] == "keys and values: 4 heads on 8 GPUs, each on 2"
    assert of("gpt-neox-20b")[0].startswith("parallel layers: attention's output and FC-2 share one GEMM")
    model = own_model(write_config(tmp_path, "llama-3-8b"), "decode", 1, 4096)
    assert size_text(model) == ("8.03 billion parameters in 32 layers, 1 sequence of 1 token, 4096 tokens in the cache")
