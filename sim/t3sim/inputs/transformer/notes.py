"""What is assumed of a model so that its sublayers are GEMMs: sentences for people, beside the results."""

from .blocks import Attention, Experts, LatentAttention
from .transformer import SizedModel


def notes(model: SizedModel, tp: int) -> list[str]:
    """The assumptions that ``model`` on ``tp`` GPUs calls for; none for a plain one."""
    found: dict[str, None] = {}  # each once, in order
    for layer, count in model.transformer.layers:
        attention, feed_forward = layer.attention, layer.feed_forward
        if isinstance(feed_forward, Experts):
            found[_experts(model, feed_forward, count)] = None
        if layer.parallel:
            found["parallel layers: attention's output and FC-2 share one GEMM and one all-reduce (op+fc2)"] = None
        if isinstance(attention, LatentAttention):
            found["latent attention: the projections to the ranks are whole on every GPU"] = None
        elif isinstance(attention, Attention) and attention.kv_heads < tp:
            found[_repeated_heads(attention, tp)] = None
    return list(found)


def size_text(model: SizedModel) -> str:
    """Parameters, layers and tokens, in one line."""
    cached = f", {model.context} tokens in the cache" if model.phase == "decode" else ""
    tokens = f"{model.batch} sequence{'s' * (model.batch > 1)} of {model.sequence} token{'s' * (model.sequence > 1)}"
    return f"{model.parameters / 1e9:.3g} billion parameters in {model.transformer.depth} layers, {tokens}{cached}"


def _repeated_heads(attention: Attention, tp: int) -> str:
    heads = attention.kv_heads
    return f"keys and values: {heads} head{'s' * (heads > 1)} on {tp} GPUs, each on {tp // heads}"


def _experts(model: SizedModel, experts: Experts, layers: int) -> str:
    active = experts.active(model.tokens)
    rows = model.tokens * experts.per_token / active
    shared = f" and a shared one of {experts.shared_width}" if experts.shared_width else ""
    return (
        f"experts in {layers} of {model.transformer.depth} layers: each of {experts.count} is split over the GPUs; "
        f"balanced routing, {active} experts with {rows:.4g} row{'s' * (rows > 1)} each; for each token "
        f"{experts.per_token} experts of {experts.width} columns{shared}, whose sum is one GEMM with one all-reduce of "
        "tokens x hidden"
    )
