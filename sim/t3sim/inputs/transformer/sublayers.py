"""The sublayers of a transformer whose outputs are all-reduced, each as one GEMM, and where TP may not split them.

Forward, the row-parallel projections: ``op`` (attention's output) and ``fc2``. Backward, the input gradients of the
column-parallel ones: ``fc1`` and ``ip`` (queries, keys, values).

- A parallel layer adds both branches to its input: a sum of partial sums is a partial sum of the sum, so ``op+fc2`` is
  one GEMM with both inner dimensions side by side and one all-reduce, as GPT-NeoX (``gpt_j_residual``) and vLLM's
  Falcon do it. Backward the branches meet in their layer norms: one all-reduce, ``ip+fc1``, if they share one norm,
  else two.
- Latent attention has two column-parallel projections with inputs of their own, ``ip`` (queries) and ``ip-kv``.
- Where some layers are dense and others have experts, the dense ones have ``fc2-dense`` and ``fc1-dense``.
"""

from collections.abc import Iterator

from t3sim.inputs import arguments
from t3sim.inputs.workload import MAX_TP, Workload, check_name

from .blocks import Attention, Experts, LatentAttention
from .transformer import Layer, SizedModel, Transformer

Inner = dict[str, tuple[int, int]]
"""Sublayer -> columns of the output, and inner dimension of all GPUs together."""


def forward_sublayers(layer: Layer, hidden: int) -> Inner:
    """The all-reduced GEMMs of a layer's forward pass."""
    attention, feed_forward = layer.attention.out_columns, layer.feed_forward.out_columns
    if layer.parallel:
        return {"op+fc2": (hidden, attention + feed_forward)}
    return {"op": (hidden, attention), f"fc2{layer.feed_forward.tag}": (hidden, feed_forward)}


def backward_sublayers(layer: Layer, hidden: int, tp: int) -> Inner:
    """Those of its backward pass."""
    attention, columns = layer.attention, layer.feed_forward.in_columns
    if isinstance(attention, LatentAttention):
        queries = hidden if attention.q_rank is None else attention.q_rank
        inputs = {"ip": (queries, attention.query_columns), "ip-kv": (attention.kv_rank, attention.kv_columns)}
    elif layer.parallel and layer.norms == 1:
        return {"ip+fc1": (hidden, attention.in_columns(tp) + columns)}
    else:
        inputs = {"ip": (hidden, attention.in_columns(tp))}
    return {f"fc1{layer.feed_forward.tag}": (hidden, columns)} | inputs


def layer_sublayers(model: SizedModel, layer: Layer, tp: int) -> Inner:
    """All of a layer's in the model's phase."""
    hidden = model.transformer.hidden
    return forward_sublayers(layer, hidden) | (backward_sublayers(layer, hidden, tp) if model.training else {})


def sublayer_runs(model: SizedModel, tp: int) -> dict[str, int]:
    """How often each sublayer runs in a pass through the whole model, in the order of the passes."""
    found: dict[str, int] = {}
    for layer, count in model.transformer.layers:
        for name in layer_sublayers(model, layer, tp):
            found[name] = found.get(name, 0) + count
    return found


def sublayer_workload(model: SizedModel, sublayer: str | None, tp: int) -> Workload:
    """The GEMM of a sublayer on ``tp`` GPUs; by default the last one of a forward pass.

    Raises ValueError for a sublayer that the model does not have in its phase, or a degree that does not divide it.
    """
    arguments.instance("model", model, SizedModel, "a model, as of own_model")
    check_degree(model, tp)
    found: Inner = {}
    for layer, _ in model.transformer.layers:
        found |= layer_sublayers(model, layer, tp)
    if sublayer is None:
        sublayer = list(forward_sublayers(model.transformer.layers[-1][0], model.transformer.hidden))[-1]
    check_name("sublayer", sublayer, found)
    n, k = found[sublayer]
    return Workload(model=model.name, sublayer=sublayer, tp=tp, m=model.tokens, n=n, k=k)


def check_degree(model: SizedModel, tp: int) -> None:
    """Refuses (ValueError) a degree that does not split heads and widths into equal parts."""
    if not 2 <= arguments.integer("--tp", tp) <= MAX_TP:
        raise ValueError(f"--tp must be in 2 to {MAX_TP} GPUs, not {tp}")
    wrong = [_named(what, size) for what, size in _split(model.transformer) if not _divides(tp, what, size)]
    if wrong:
        possible = [
            degree
            for degree in range(2, MAX_TP + 1)
            if all(_divides(degree, what, size) for what, size in _split(model.transformer))
        ]
        remedy = f"possible degrees: {', '.join(map(str, possible))}" if possible else f"no degree up to {MAX_TP} does"
        raise ValueError(f"--tp must divide the {' and the '.join(wrong)} of {model.name}, and {tp} does not; {remedy}")


KV_HEADS = "heads of keys and values"


def _split(transformer: Transformer) -> Iterator[tuple[str, int]]:
    """What TP splits, with its size; each once."""
    seen = set()
    for layer, _ in transformer.layers:
        for item in _split_layer(layer):
            if item not in seen:
                seen.add(item)
                yield item


def _split_layer(layer: Layer) -> Iterator[tuple[str, int]]:
    yield "attention heads", layer.attention.heads
    if isinstance(layer.attention, Attention):
        yield KV_HEADS, layer.attention.kv_heads
    yield (
        "width of " + ("an expert" if isinstance(layer.feed_forward, Experts) else "the feed-forward layer"),
        (layer.feed_forward.width),
    )
    if isinstance(layer.feed_forward, Experts) and layer.feed_forward.shared_width:
        yield "width of the shared expert", layer.feed_forward.shared_width


def _named(what: str, size: int) -> str:
    return f"{what} ({size}{'; or be a multiple of them' if what == KV_HEADS else ''})"


def _divides(tp: int, what: str, size: int) -> bool:
    """Heads of keys and values may also be repeated, the same number of times each."""
    return size % tp == 0 or (what == KV_HEADS and tp % size == 0)
