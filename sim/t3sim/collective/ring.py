"""Ring reduce-scatter and all-gather: transfers of chunks, their order, and closed forms of their bytes.

Data flow from GPU g to GPU g - 1. Chunk c starts at GPU c - 1, visits c - 2, c - 3, ... and ends at GPU c, its owner.
"""

from dataclasses import dataclass

from t3hdl.interface.layouts import ChunkKind


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
    """The output address mapping of one GPU, in dispatch order."""
    order = ring_order(gpu, gpus)
    first, middle, own = order[0], order[1:-1], order[-1]
    return [
        ChunkMap(first, ChunkKind.REMOTE, 0),
        *(ChunkMap(chunk, ChunkKind.DMA, 2) for chunk in middle),
        ChunkMap(own, ChunkKind.LOCAL, 2),
    ]


def closed_forms(policy: str, gpus: int, output_bytes: int) -> dict[str, int]:
    """Bytes per cause, summed over all GPUs, that a run must show exactly.

    ``gemm_read`` has no closed form. ``output_bytes`` are the enabled bytes of one whole output. In chunks of one GPU,
    of which there are N, and N GPUs with N chunks make N outputs:

    - ``sequential``: the GEMM writes N. The ring sends N - 1: the first is read once, the N - 2 others twice (own and
      received copy), and so is the owned one, whose sum is written: 1 + 2 (N - 2) + 2 = 2N - 1 reads,
      (N - 1) + 1 = N writes. ``sequential-pipelined`` cuts the same flow into slices.
    - ``sequential-nmc``: the GEMM writes N. Each of the N - 1 sends is read once, since the memory has added what came,
      and arrives as an update; the owned chunk is then complete: N - 1 reads, N - 1 writes.
    - T3: the first chunk is stored at the neighbour, so N - 1 local writes. The N - 2 middle chunks are read once:
      N - 2 reads; N - 1 chunks arrive.
    - The all-gather reads N - 1 chunks and receives N - 1 in every policy.
    """
    gemm_write, rs_read, rs_write = {
        "sequential": (gpus, 2 * gpus - 1, gpus),
        "sequential-pipelined": (gpus, 2 * gpus - 1, gpus),
        "sequential-nmc": (gpus, gpus - 1, gpus - 1),
        "t3": (gpus - 1, gpus - 2, gpus - 1),
        "t3-mca": (gpus - 1, gpus - 2, gpus - 1),
    }[policy]
    outputs = {
        "gemm_write": gemm_write,
        "rs_read": rs_read,
        "rs_write": rs_write,
        "ag_read": gpus - 1,
        "ag_write": gpus - 1,
    }
    return {cause: count * output_bytes for cause, count in outputs.items()}
