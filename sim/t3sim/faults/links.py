"""Faults of the link: packets on their way to the neighbour vanish, come twice, or change places.

A packet takes at least a window to arrive, so after the window in which it was sent it is still in the sender's ring.
"""

import random
from collections.abc import Callable, Sequence

import numpy as np

from t3sim.engine.gpu_state import GpuState

from .setup import FaultSystem

KINDS = ("lost", "repeated", "reordered")


def link_fault(
    kind: str, rng: random.Random, gpu: int, windows: Sequence[int]
) -> tuple[int, Callable[[FaultSystem], None]]:
    """Number of the packet, and what to call after every window; ``windows``: packets sent at the end of each."""
    ends = sorted(set(windows) - {0})
    firsts = [0, *ends[:-1]]
    # The packet that a reordered one changes places with must still be on its way.
    pairs = 1 if kind == "reordered" else 0
    packets = [packet for first, end in zip(firsts, ends, strict=True) for packet in range(first, end - pairs)]
    packet = rng.choice(packets)
    struck = False

    def watch(system: FaultSystem) -> None:
        nonlocal struck
        sender = system.gpus[gpu]
        if not struck and sender.link["out_head"] > packet + pairs:
            struck = True
            _INJECTIONS[kind](sender, packet)

    return packet, watch


def _places(gpu: GpuState, first: int, end: int) -> np.ndarray:
    """Where packets ``first`` to ``end`` are in the ring."""
    return np.arange(first, end) % len(gpu.out)


def _lose(gpu: GpuState, packet: int) -> None:
    head = int(gpu.link["out_head"])
    gpu.out[_places(gpu, packet, head - 1)] = gpu.out[_places(gpu, packet + 1, head)]
    gpu.link["out_head"] = head - 1


def _repeat(gpu: GpuState, packet: int) -> None:
    head = int(gpu.link["out_head"])
    gpu.out[_places(gpu, packet + 1, head + 1)] = gpu.out[_places(gpu, packet, head)]
    gpu.link["out_head"] = head + 1


def _swap(gpu: GpuState, packet: int) -> None:
    """The link's times stay: what arrives when the first one would have is the second one."""
    places = _places(gpu, packet, packet + 2)
    arrivals = gpu.out["arrival_cycle"][places]
    gpu.out[places] = gpu.out[places[::-1]]
    gpu.out["arrival_cycle"][places] = arrivals


_INJECTIONS = {"lost": _lose, "repeated": _repeat, "reordered": _swap}
