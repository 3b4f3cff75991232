"""Operators of a layer and of a model: their FLOP against closed forms, their bytes by hand, refusals."""

import pytest
from t3sim.inputs.workload import INNER_MULTIPLE, MODELS, model_workload
from t3sim.study.layer.operators import PHASES, layer_operators, model_operators, optimizer_operator
from t3sim.study.layer.work import ATTENTIONS, Gemm

EVALUATED = [(name, tp) for name, facts in MODELS.items() for tp in facts.tp]
WHOLE_VOCABULARY = [(name, tp) for name, tp in EVALUATED if MODELS[name].vocabulary % tp == 0]


def by_name(operators):
    found = {operator.name: operator for operator in operators}
    assert len(found) == len(operators), "names are unique"
    return found


@pytest.mark.parametrize(("name", "tp"), WHOLE_VOCABULARY)
def test_training_takes_six_flop_for_each_parameter_and_token(name, tp):
    facts = MODELS[name]
    layers = sum(operator.flop for operator in layer_operators(name, tp, "training"))
    total = tp * (facts.layers * layers + sum(operator.flop for operator in model_operators(name, tp, "training")))
    attention = 3 * 4 * facts.tokens * facts.sequence * facts.hidden * facts.layers
    assert total == 6 * facts.parameters * facts.tokens + attention


@pytest.mark.parametrize(("name", "tp"), EVALUATED)
def test_the_prompt_phase_takes_two_flop_for_each_weight_and_token(name, tp):
    facts = MODELS[name]
    layer = sum(operator.flop for operator in layer_operators(name, tp, "prompt"))
    weights = 12 * facts.hidden**2
    assert layer * tp == 2 * weights * facts.tokens + 4 * facts.tokens * facts.sequence * facts.hidden
    head = by_name(model_operators(name, tp, "prompt"))["head.forward"]
    assert head.gemms[0].m == facts.batch  # one token of every sequence


@pytest.mark.parametrize(("name", "tp"), EVALUATED)
def test_all_reduced_operators_are_the_simulated_gemms(name, tp):
    found = {op.sublayer: op.gemms[0] for op in layer_operators(name, tp, "training") if op.sublayer}
    assert list(found) == ["op", "fc2", "fc1", "ip"]
    for sublayer in INNER_MULTIPLE:
        workload = model_workload(name, sublayer, tp)
        assert found[sublayer] == Gemm(m=workload.m, n=workload.n, k=workload.k_of(0))
    assert {op.sublayer for op in layer_operators(name, tp, "prompt")} == {None, "op", "fc2"}


def test_bytes_are_each_operand_once():
    # gpt-3 on 32 GPUs: 4096 tokens, H 12288 (384 a GPU, 1536 of the feed-forward), 12 score matrices of 1024 x 1024
    found = by_name(layer_operators("gpt-3", 32, "training"))
    stream, scores = 4096 * 12288, 12 * 1024 * 1024
    expected = {
        "ln1.forward": 4 * stream,
        "qkv.forward": 2 * (4096 * 12288 + 12288 * 1152 + 4096 * 1152),
        "scores.forward": 2 * (2 * 12 * 1024 * 128 + scores),
        "softmax.forward": 4 * scores,
        "dropout.forward": 5 * scores,
        "residual1.forward": 7 * stream,
        "gelu.backward": 6 * 4096 * 1536,
        "fc2.wgrad": 2 * (1536 * 4096 + 4096 * 12288 + 1536 * 12288),
        "ln2.backward": 10 * stream,
        "scores.dgrad_keys": 2 * (2 * 12 * 1024 * 128 + scores),
    }
    assert {name: found[name].bytes for name in expected} == expected
    assert by_name(layer_operators("gpt-3", 32, "prompt"))["residual1.forward"].bytes == 6 * stream  # no dropout
    assert optimizer_operator("mega-gpt-2", 8).bytes == 28 * MODELS["mega-gpt-2"].parameters // 8


def test_kinds_and_flop_agree():
    for operator in [*layer_operators("palm", 32, "training"), *model_operators("palm", 32, "training")]:
        assert operator.kind == ("gemm" if operator.flop else "bandwidth")
        assert operator.bytes > 0


@pytest.mark.parametrize("phase", PHASES)
def test_fused_attention_moves_no_scores_and_recomputes_them_backward(phase):
    unfused, fused = (layer_operators("mega-gpt-2", 8, phase, attention) for attention in ATTENTIONS)
    kept = [op for op in unfused if op in fused]
    inside = [op for op in unfused if op not in fused]
    attention = by_name([op for op in fused if op not in kept])
    columns = 2 * 16 * 1024 * 384  # Q, K, V and output of a GPU have so many bytes each
    assert attention["attention.forward"].bytes == 4 * columns
    recomputed = 0
    if phase == "training":
        assert attention["attention.backward"].bytes == 8 * columns
        recomputed = attention["attention.forward"].flop // 2
    assert sum(op.flop for op in attention.values()) == sum(op.flop for op in inside) + recomputed
    assert sum(op.bytes for op in attention.values()) < sum(op.bytes for op in inside) / 10


def test_heads_that_tp_does_not_divide_are_shared_out_over_the_batch():
    found = by_name(layer_operators("t-nlg", 16, "prompt"))  # 28 heads x 8 sequences on 16 GPUs
    assert found["scores.forward"].gemms == (Gemm(m=1024, n=1024, k=152, count=14),)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gpt3", 8, "prompt"), "model must be one of mega-gpt-2, .*, not 'gpt3'; did you mean 'gpt-3'"),
        (("gpt-3", 8, "train"), "phase must be one of prompt, training, not 'train'; did you mean 'training'"),
        (("gpt-3", 8, "prompt", "flash"), "attention must be one of unfused, fused, not 'flash'"),
        (("gpt-3", 1, "prompt"), "tp must be in 2 to 64 GPUs, not 1"),
        (("gpt-3", 65, "prompt"), "tp must be in 2 to 64 GPUs, not 65"),
    ],
)
def test_unknown_names_and_degrees_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        layer_operators(*arguments)
    if len(arguments) == 3:
        with pytest.raises(ValueError, match=message):
            model_operators(*arguments)
