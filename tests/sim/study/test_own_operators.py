"""Operators of the user's models: their FLOP against closed forms, their bytes by hand, against the simulated GEMMs."""

from pathlib import Path

import pytest
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.machine.standing import bandwidth_gb_s
from t3sim.inputs.transformer.blocks import Experts, LatentAttention
from t3sim.inputs.transformer.config_file import own_model
from t3sim.inputs.transformer.sublayers import sublayer_runs, sublayer_workload
from t3sim.run.result import TimeNs
from t3sim.study.end_to_end import model_time
from t3sim.study.layer.operators import counted_operators, layer_operators, model_operators, optimizer_operator
from t3sim.study.layer.roofline import READ_TRACE, achieved_fraction, gemm_ns, operator_time
from t3sim.study.layer.work import ATTENTIONS, Gemm, Operator

from tests.support.model_configs import CONFIGS, write_config

NAMES = [name for name in CONFIGS if name != "falcon-7b"]  # whose 71 heads nothing divides
BATCH, SEQUENCE = 4, 512


def model_of(folder: Path, name: str, phase="training", batch=BATCH, sequence=SEQUENCE, **changes):
    return own_model(write_config(folder, name, **changes), phase, batch, sequence)


def by_name(operators):
    found = {operator.name: operator for operator in operators}
    assert len(found) == len(operators), "names are unique"
    return found


def matrix_flop(model, tp):
    """2 FLOP for each weight and token that meet, on all GPUs together, and those of the scores."""
    total, scores, hidden = 0, 0, model.transformer.hidden
    pairs = model.batch * model.sequence * model.context
    for layer, count in model.transformer.layers:
        attention, block = layer.attention, layer.feed_forward
        if isinstance(attention, LatentAttention):
            into = hidden if attention.q_rank is None else attention.q_rank
            split = into * attention.query_columns + attention.kv_rank * attention.kv_columns
            split += attention.out_columns * hidden
            whole = hidden * (attention.kv_rank + attention.rope_dim + (attention.q_rank or 0))
            each = attention.query_dim + attention.value_dim
        else:
            copies = max(attention.kv_heads, tp)
            split = hidden * (2 * attention.heads + 2 * copies) * attention.head_dim
            whole, each = 0, 2 * attention.head_dim
        if isinstance(block, Experts):
            split += 3 * hidden * (block.per_token * block.width + block.shared_width)
            whole += hidden * block.count
        else:
            split += (3 if block.gated else 2) * hidden * block.width
        total += count * 2 * model.tokens * (split + tp * whole)
        scores += count * 2 * pairs * attention.heads * each
    return total, scores


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_prompt_and_training_take_two_and_six_flop_for_each_weight_and_token(tmp_path: Path, name, attention):
    for phase, passes in (("prompt", 1), ("training", 3)):
        model = model_of(tmp_path, name, phase)
        found = counted_operators(model, 4, phase, attention)
        weights, scores = matrix_flop(model, 4)
        again = 0
        if attention == "fused" and phase == "training":  # the scores are computed once more
            again = sum(
                count * 2 * model.batch * model.sequence**2 * layer.attention.heads * _key_dim(layer.attention)
                for layer, count in model.transformer.layers
            )
        assert 4 * sum(op.flop * count for op, count in found.items()) == passes * (weights + scores) + again


def _key_dim(attention):
    return attention.query_dim if isinstance(attention, LatentAttention) else attention.head_dim


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("phase", ["prompt", "decode", "training"])
def test_all_reduced_operators_are_the_simulated_gemms(tmp_path: Path, name, phase):
    model = model_of(tmp_path, name, phase)
    found: dict[str, int] = {}
    for operator, count in counted_operators(model, 4, phase).items():
        if operator.sublayer:
            work = sublayer_workload(model, operator.sublayer, 4)
            assert operator.gemms == (Gemm(m=work.m, n=work.n, k=work.k_of(0)),)
            found[operator.sublayer] = found.get(operator.sublayer, 0) + count
    assert found == sublayer_runs(model, 4)
    for kind in range(len(model.transformer.layers)):
        by_name(layer_operators(model, 4, phase, "unfused", kind))


def test_grouped_queries_are_rows_of_their_keys_matrix(tmp_path: Path):
    found = by_name(layer_operators(model_of(tmp_path, "llama-3-8b"), 4, "training"))
    # 4 sequences x 2 of 8 heads of keys on a GPU, each with 4 of 32 heads of queries
    assert found["scores.forward"].gemms == (Gemm(m=4 * 512, n=512, k=128, count=8),)
    assert found["scores.dgrad_keys"].gemms == (Gemm(m=512, n=128, k=4 * 512, count=8),)
    assert found["softmax.forward"].bytes == 4 * 8 * 4 * 512 * 512
    assert found["qkv.forward"].gemms == (Gemm(m=2048, n=(8 + 2 * 2) * 128, k=4096),)
    assert found["rope.forward"].bytes == 4 * 2048 * (8 + 2) * 128
    assert found["glu.forward"].bytes == 6 * 2048 * 14336 // 4
    assert found["glu.backward"].bytes == 10 * 2048 * 14336 // 4
    assert not [name for name in found if "dropout" in name]


def test_decode_reads_the_cache_once_for_heads_that_share_it(tmp_path: Path):
    model = model_of(tmp_path, "llama-3-8b", "decode", 16, 4096)
    found = by_name(layer_operators(model, 8, "decode", "fused"))
    cache = 16 * 4096 * 2 * 128  # keys and values of one of 8 heads
    assert found["attention.forward"].bytes == 2 * (2 * 16 * 4 * 128 + cache)
    assert found["fc1.forward"].gemms == (Gemm(m=16, n=2 * 14336 // 8, k=4096),)
    head = by_name(model_operators(model, 8, "decode"))["head.forward"]
    assert head.gemms[0].m == 16


def test_latent_attention_decodes_from_the_ranks(tmp_path: Path):
    model = model_of(tmp_path, "deepseek-v3", "decode", 16, 4096)
    found = by_name(layer_operators(model, 8, "decode", "unfused"))
    assert found["scores.forward"].gemms == (Gemm(m=16, n=4096, k=512 + 64, count=16),)  # 16 of 128 heads
    assert found["context.forward"].gemms == (Gemm(m=16, n=512, k=4096, count=16),)
    assert found["absorbed_keys.forward"].gemms == (Gemm(m=16, n=512, k=128, count=16),)
    assert "kv_b.forward" not in found
    fused = by_name(layer_operators(model, 8, "decode", "fused"))["attention.forward"]
    assert fused.bytes == 2 * (16 * 4096 * 576 + 16 * 16 * (576 + 512))


def test_experts_of_one_layer_run_together(tmp_path: Path):
    model = model_of(tmp_path, "mixtral-8x7b", "training", 8, 1024)
    found = by_name(layer_operators(model, 8, "training"))
    width = 14336 // 8
    assert found["experts.fc1.forward"].gemms == (Gemm(m=2048, n=2 * width, k=4096, count=8),)
    assert found["experts.fc2.wgrad"].gemms == (Gemm(m=width, n=4096, k=2048, count=8),)
    assert found["experts.fc2.weights"].bytes == 2 * 6 * width * 4096  # of the 6 that a token does not use
    assert found["router.forward"].gemms == (Gemm(m=8192, n=8, k=4096),)
    assert "shared.fc1.forward" not in found
    few = by_name(layer_operators(model_of(tmp_path, "mixtral-8x7b", "decode", 1), 8, "decode"))
    assert few["experts.fc1.forward"].gemms == (Gemm(m=1, n=2 * width, k=4096, count=2),)
    assert "experts.fc2.weights" not in few


def test_the_gemm_hides_weights_that_are_read_beside_it():
    machine = load_machine("paper")
    rate = bandwidth_gb_s(machine) * achieved_fraction(machine, READ_TRACE)
    deep, flat = Gemm(m=8192, n=4096, k=3584), Gemm(m=16, n=4096, k=3584)
    few = operator_time(Operator(name="weights", bytes=10**6, beside=deep), machine)
    assert (few.ns, few.compute_ns) == (0, 0)
    many = operator_time(Operator(name="weights", bytes=10**10, beside=deep), machine)
    assert many.ns == pytest.approx((10**10 + deep.bytes) / rate - gemm_ns(deep, machine))
    bound = operator_time(Operator(name="weights", bytes=10**8, beside=flat), machine)
    assert bound.ns == pytest.approx((10**8 + flat.bytes) / rate - max(flat.bytes / rate, gemm_ns(flat, machine)))


def test_a_parallel_layer_has_one_residual_and_shares_its_gemms(tmp_path: Path):
    found = by_name(layer_operators(model_of(tmp_path, "gpt-neox-20b"), 4, "training"))
    assert {"op.forward", "fc2.forward", "residual1.forward"}.isdisjoint(found)
    assert {"op+fc2.forward", "residual2.forward", "ln2.forward", "fc1.dgrad", "qkv.dgrad"} <= found.keys()
    one = model_of(tmp_path, "falcon-40b", num_ln_in_parallel_attn=1)
    shared = by_name(layer_operators(one, 4, "training"))
    assert {"ln2.forward", "ln2.backward", "fc1.dgrad", "qkv.dgrad"}.isdisjoint(shared)
    assert shared["ip+fc1.dgrad"].gemms[0].k == ((128 + 16) * 64 + 32768) // 4


def test_times_count_each_kind_of_layer(tmp_path: Path):
    model = model_of(tmp_path, "deepseek-v3", "prompt")
    one = TimeNs(total=3000, gemm=1000, reduce_scatter=1000, all_gather=1000, exposed_communication=0)
    sequential = dict.fromkeys(sublayer_runs(model, 8), one)
    result = model_time(model, 8, "prompt", {"sequential": sequential}, load_machine("paper"))
    assert result.runs == {"op": 61, "fc2-dense": 3, "fc2": 58}
    assert result.sublayer_ns("sequential") == 3000 * 122
    runs = {time.operator.name: time.count for time in result.operators}
    assert (runs["ln1.forward"], runs["fc1.forward"], runs["experts.fc1.forward"]) == (61, 3, 58)
    assert runs["head.forward"] == 1
    assert sum(result.shares("sequential").values()) == pytest.approx(1)
    assert result.overlap_limit > 1


def test_the_optimizer_steps_all_parameters(tmp_path: Path):
    model = model_of(tmp_path, "llama-3-8b")
    assert optimizer_operator(model, 8).bytes == 28 * 8_030_261_248 // 8


def test_a_model_has_one_phase(tmp_path: Path):
    with pytest.raises(ValueError, match="phase must be one of prompt, not 'training'"):
        layer_operators(model_of(tmp_path, "llama-3-8b", "prompt"), 4, "training")
