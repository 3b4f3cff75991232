"""Shapes by an independent account: the number of parameters that each public model is published with."""

from pathlib import Path

import pytest
from t3sim.inputs.transformer.blocks import Experts, LatentAttention
from t3sim.inputs.transformer.config_file import FAMILIES, own_model

from tests.support.model_configs import CONFIGS, PUBLISHED, write_config


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_are_those_published(tmp_path: Path, name: str):
    model = own_model(write_config(tmp_path, name), "training", 8, 1024)
    assert model.parameters == pytest.approx(PUBLISHED[name], rel=0.001)
    assert model.name == name
    assert model.transformer.depth == CONFIGS[name]["num_hidden_layers"]


def test_every_family_has_a_published_model():
    assert {config["model_type"] for config in CONFIGS.values()} == set(FAMILIES)
    assert CONFIGS.keys() == PUBLISHED.keys()


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("llama-3-8b", 8_030_261_248), ("mistral-7b", 7_241_732_096), ("mixtral-8x7b", 46_702_792_704)],
)
def test_some_are_known_to_the_last_one(tmp_path: Path, name: str, parameters: int):
    """As the headers of their weight files count them."""
    assert own_model(write_config(tmp_path, name), "prompt", 1, 16).parameters == parameters


def test_layers_that_are_dense_in_a_model_with_experts(tmp_path: Path):
    def kinds(name: str, **changes: object) -> list[tuple[str, int]]:
        layers = own_model(write_config(tmp_path, name, **changes), "prompt", 1, 16).transformer.layers
        return [(type(layer.feed_forward).__name__, count) for layer, count in layers]

    assert kinds("deepseek-v3") == [("FeedForward", 3), ("Experts", 58)]
    assert kinds("deepseek-v3", moe_layer_freq=2) == [("FeedForward", 32), ("Experts", 29)]  # 4, 6, ..., 60
    assert kinds("deepseek-v3", n_routed_experts=None) == [("FeedForward", 61)]
    assert kinds("qwen3-30b-a3b") == [("Experts", 48)]
    assert kinds("qwen3-30b-a3b", decoder_sparse_step=2) == [("FeedForward", 24), ("Experts", 24)]
    assert kinds("qwen3-30b-a3b", mlp_only_layers=[0, 5, 47]) == [("FeedForward", 3), ("Experts", 45)]
    assert kinds("qwen3-30b-a3b", num_experts=0) == [("FeedForward", 48)]
    assert kinds("mixtral-8x7b") == [("Experts", 32)]


def test_what_a_file_leaves_out_has_the_familys_default(tmp_path: Path):
    def first(name: str, **changes: object):
        return own_model(write_config(tmp_path, name, **changes), "prompt", 1, 16).transformer.layers[0][0]

    assert first("llama-3-8b", num_key_value_heads=...).attention.kv_heads == 32
    assert first("llama-3-8b", head_dim=None).attention.head_dim == 128
    assert first("llama-3-8b", head_dim=64).attention.out_columns == 2048
    assert first("gpt-neox-20b", use_parallel_residual=...).parallel
    assert not first("gpt-neox-20b", use_parallel_residual=False).parallel
    assert first("gpt-neox-20b").attention.rotary == 24
    assert first("falcon-40b").norms == 2
    assert first("falcon-40b", num_ln_in_parallel_attn=1).norms == 1
    assert first("falcon-7b").norms == 1
    assert first("falcon-7b").attention.kv_heads == 1
    assert first("falcon-7b", multi_query=False).attention.kv_heads == 71
    assert first("falcon-7b", parallel_attn=False).norms == 2
    assert first("falcon-7b", ffn_hidden_size=1000).feed_forward.width == 1000


def test_latent_attention_and_shared_experts(tmp_path: Path):
    model = own_model(write_config(tmp_path, "deepseek-v3"), "decode", 64, 4096)
    attention, experts = model.transformer.layers[1][0].attention, model.transformer.layers[1][0].feed_forward
    assert isinstance(attention, LatentAttention)
    assert isinstance(experts, Experts)
    assert (attention.query_dim, attention.query_columns, attention.kv_columns) == (192, 24576, 32768)
    assert (experts.out_columns, experts.in_columns) == (8 * 2048 + 2048, 2 * 9 * 2048)
    assert (model.tokens, model.sequence, model.context) == (64, 1, 4096)
    assert (experts.active(1), experts.active(31), experts.active(32), experts.active(64)) == (8, 248, 256, 256)
