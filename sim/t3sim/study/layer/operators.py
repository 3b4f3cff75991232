"""The operators that one GPU of a tensor-parallel transformer runs, with their work: FLOP of the matrix units, bytes.

Partitioned as in Megatron-LM (Shoeybi et al., arXiv 1909.08053): QKV and FC-1 by columns, so that a GPU has 1/TP of the
heads and of the feed-forward width; the output projection and FC-2 by rows, so that their outputs are all-reduced, as
are the input gradients of FC-1 and QKV. Layer norms and residuals are repeated on every GPU.

A model is one of the paper's by its name, or one of the user's own. Not counted: biases and their gradients, copies
that reorder heads, arithmetic outside the matrix units (bandwidth limits those kernels), causal skipping of half the
scores. Tables: docs/guides/end-to-end.md, docs/guides/own-model.md.
"""

from t3sim.inputs.geometry import ceil_div
from t3sim.inputs.transformer.blocks import Attention, FeedForward
from t3sim.inputs.transformer.transformer import Layer, Phase, SizedModel, Transformer
from t3sim.inputs.workload import INNER_MULTIPLE, MAX_TP, check_name, named_model

from .layer import LayerWork
from .work import ATTENTIONS, AttentionKernels, Operator, Share, gemm_operator, stream_operator

PHASES: tuple[Phase, ...] = ("prompt", "training")
"""Phases of the paper's models, which have no cache of keys and values."""

OPTIMIZER = "optimizer"
"""The operator of an Adam step."""
OPTIMIZER_BYTES = 28
"""Bytes that a step of mixed-precision Adam moves for a parameter: reads its gradient (2), FP32 master weight and two
moments (12); writes those (12) and the FP16 weight (2). States as counted by ZeRO (arXiv 1910.02054, section 3.1)."""

Named = str | SizedModel
"""Name of a model of the paper, or a model of the user's own, which has its phase with it."""


def sized_model(model: Named, phase: Phase) -> SizedModel:
    """``model`` with its tokens. Raises ValueError for an unknown name or phase."""
    if isinstance(model, SizedModel):
        check_name("phase", phase, (model.phase,))
        return model
    check_name("phase", phase, PHASES)
    facts = named_model(model)
    attention = Attention(heads=facts.heads, kv_heads=facts.heads, head_dim=ceil_div(facts.hidden, facts.heads))
    feed_forward = FeedForward(width=INNER_MULTIPLE["fc2"] * facts.hidden, gated=False)
    transformer = Transformer(
        hidden=facts.hidden, vocabulary=facts.vocabulary, tied=True, learned_positions=True, dropout=True,
        layers=((Layer(attention=attention, feed_forward=feed_forward, norm_bias=True), facts.layers),),
    )  # fmt: skip
    return SizedModel(
        name=model, transformer=transformer, parameters=facts.parameters, phase=phase, batch=facts.batch,
        sequence=facts.sequence, context=facts.sequence,
    )  # fmt: skip


def layer_operators(
    model: Named, tp: int, phase: Phase, attention: AttentionKernels = "unfused", kind: int = 0
) -> list[Operator]:
    """The operators of one layer on one GPU, all-reduced GEMMs included, in the order in which they run.

    ``kind``: which of the model's kinds of layers. Raises ValueError for an unknown model, phase or attention, or a
    ``tp`` that is not in 2 to 64.
    """
    share = _share(model, tp, phase, attention)
    layer = LayerWork(share, share.transformer.layers[kind][0])
    return [*layer.forward(), *(layer.backward() if share.model.training else ())]


def counted_operators(
    model: Named, tp: int, phase: Phase, attention: AttentionKernels = "unfused"
) -> dict[Operator, int]:
    """The operators of all layers with how often each runs. Errors as in :func:`layer_operators`."""
    found: dict[Operator, int] = {}
    for kind, (_, count) in enumerate(sized_model(model, phase).transformer.layers):
        for operator in layer_operators(model, tp, phase, attention, kind):
            found[operator] = found.get(operator, 0) + count
    return found


def model_operators(model: Named, tp: int, phase: Phase) -> list[Operator]:
    """The operators outside of the layers, once a model: embedding, last layer norm, output head and its loss.

    The vocabulary of V tokens is split over the GPUs. Except in training only the last token of every sequence goes
    through the head. The all-reduces of the embedding's output and of the head's input gradient, two of 4 x layers + 2,
    are left out. Errors as in :func:`layer_operators`.
    """
    share = _share(model, tp, phase, "unfused")
    training, stream, hidden = share.model.training, share.stream, share.hidden
    words = share.part(share.transformer.vocabulary)
    rows = share.tokens if training else share.model.batch
    looked_up = 3 if share.transformer.learned_positions else 2  # word, position; their sum
    operators = [
        stream_operator("embedding.forward", stream, accesses=looked_up, masks=share.dropout),
        stream_operator("ln_final.forward", stream, accesses=2),
        gemm_operator("head.forward", rows, words, hidden),
    ]
    if training:
        operators += [
            stream_operator("loss.forward", rows * words, accesses=2),  # logits; probabilities
            stream_operator("loss.backward", rows * words, accesses=2),
            gemm_operator("head.dgrad", rows, hidden, words),
            gemm_operator("head.wgrad", hidden, words, rows),
            stream_operator("ln_final.backward", stream, accesses=5),
            # gradient; rows of the table read, written
            stream_operator("embedding.backward", stream, accesses=3, masks=share.dropout),
        ]
    return operators


def optimizer_operator(model: Named, tp: int) -> Operator:
    """The Adam step on a GPU's share of the parameters: bandwidth alone. Errors as in :func:`layer_operators`."""
    share = _share(model, tp, "training", "unfused")
    return Operator(name=OPTIMIZER, bytes=OPTIMIZER_BYTES * share.part(share.model.parameters))


def _share(model: Named, tp: int, phase: Phase, attention: AttentionKernels) -> Share:
    sized = sized_model(model, phase)
    check_name("attention", attention, ATTENTIONS)
    if not 2 <= tp <= MAX_TP:
        raise ValueError(f"tp must be in 2 to {MAX_TP} GPUs, not {tp}")
    return Share(sized, tp, attention == "fused")
