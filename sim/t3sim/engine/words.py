"""Where the input and output words of every part of one GPU lie in its ``words`` array."""

import numpy as np

from t3sim.common.compiled import inner
from t3sim.hardware.abi import Hardware

# Index of the first instance of each part, and instances per GPU at most.
SLICE = 0
MATCHER = SLICE + 64
LEAF = MATCHER + 8
ROOT = LEAF + 64
TRACKER = ROOT + 1
TRIGGER = TRACKER + 1
MONITOR = TRIGGER + 1
REGISTERS = MONITOR + 1
NMC = REGISTERS + 1
INSTANCES = NMC + 1

_FIRST = {
    "slice": SLICE, "matcher": MATCHER, "leaf": LEAF, "root": ROOT, "tracker": TRACKER, "trigger": TRIGGER,
    "monitor": MONITOR, "registers": REGISTERS, "nmc": NMC,
}  # fmt: skip
PART_NAMES = tuple(_FIRST)
"""The parts in the order in which the engine takes their functions."""


def instance_counts(hardware: Hardware) -> dict[str, int]:
    """Instances of each part in one GPU."""
    config = hardware.config
    counts = dict.fromkeys(PART_NAMES, 1)
    return counts | {"slice": config.slices, "matcher": config.egress_ports, "leaf": config.nodes}


def place(hardware: Hardware) -> tuple[np.ndarray, np.ndarray]:
    """New instances of all parts of one GPU, reset: (words, handles).

    ``words`` starts with a directory: first input word and first output word of every instance.
    """
    handles = np.zeros(INSTANCES, np.int64)
    directory = np.zeros((INSTANCES, 2), np.int64)
    used = 2 * INSTANCES
    for name, count in instance_counts(hardware).items():
        part = getattr(hardware, name)
        for index in range(_FIRST[name], _FIRST[name] + count):
            handles[index] = part.new()
            directory[index] = used, used + part.words.input_words
            used += part.words.input_words + part.words.output_words
    words = np.zeros(used, np.int64)
    words[: 2 * INSTANCES] = directory.ravel()
    return words, handles


@inner
def part_in(g, part, index):
    """First input word of an instance."""
    return g.words[2 * (part + index)]


@inner
def part_out(g, part, index):
    """First output word of an instance."""
    return g.words[2 * (part + index) + 1]
