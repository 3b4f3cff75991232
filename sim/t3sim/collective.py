"""Ring reduce-scatter and all-gather: who sends which chunk to whom, in which order, and the bytes that this must cost.

Data flow from GPU g to GPU g - 1. Chunk c starts at GPU c - 1, visits c - 2, c - 3, ... and ends at GPU c, its owner.
"""

from dataclasses import dataclass

from t3hdl.layouts import ChunkKind


@dataclass(frozen=True)
class ChunkMap:
    """What GPU ``gpu`` does with one chunk: ``remote_map``, ``dma_map``, or neither (it owns the chunk)."""

    chunk: int
    kind: ChunkKind
    addends: int
    """Updates per element of this GPU's copy: the local one and the incoming one; 0 if nothing is stored here."""


def ring_next(gpu: int, gpus: int) -> int:
    """The neighbour that ``gpu`` sends to."""
    return (gpu - 1) % gpus


def ring_order(gpu: int, gpus: int) -> list[int]:
    """Chunks in the order in which ``gpu`` produces and sends them; its own comes last."""
    return [(gpu + 1 + step) % gpus for step in range(gpus)]


def ring_maps(gpu: int, gpus: int) -> list[ChunkMap]:
    """The output address mapping of one GPU, in dispatch order (T3.md section 2.2)."""
    order = ring_order(gpu, gpus)
    first, middle, own = order[0], order[1:-1], order[-1]
    return [
        ChunkMap(first, ChunkKind.REMOTE, 0),
        *(ChunkMap(chunk, ChunkKind.DMA, 2) for chunk in middle),
        ChunkMap(own, ChunkKind.LOCAL, 2),
    ]


def closed_forms(policy: str, gpus: int, output_bytes: int) -> dict[str, int]:
    """Bytes per cause, summed over all GPUs, that a run must show exactly (T3.md section 5).

    ``gemm_read`` has no closed form. ``output_bytes`` are the enabled bytes of one whole output.
    """
    gather = (gpus - 1) * output_bytes
    if policy == "sequential":
        return {
            "gemm_write": gpus * output_bytes,
            "rs_read": (2 * gpus - 1) * output_bytes,
            "rs_write": gpus * output_bytes,
            "ag_read": gather,
            "ag_write": gather,
        }
    return {
        "gemm_write": (gpus - 1) * output_bytes,
        "rs_read": (gpus - 2) * output_bytes,
        "rs_write": (gpus - 1) * output_bytes,
        "ag_read": gather,
        "ag_write": gather,
    }
