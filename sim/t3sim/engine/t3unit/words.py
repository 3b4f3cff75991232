"""Where the input and output words of every part of one GPU lie in its ``words`` array."""

from itertools import accumulate

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface.parts import SIMULATED, TABLE

from t3sim.common.compiled import compiled_inner
from t3sim.hardware.abi import LoadedHardware

from ..state import INT64

FIELDS = {
    "words": (INT64, 1),  # all input and output words
    "handles": (INT64, 1),
}


def instance_counts(config: T3Config) -> dict[str, int]:
    """Instances of each part in one GPU, in the order in which the engine takes the parts' functions.

    What stands beside the unit has one instance, which does the work of all.
    """
    return {name: max(1, TABLE[name].count(config)) for name in SIMULATED}


_MOST = instance_counts(T3Config(slices=64, node_inputs=4, leaf_outputs=8, egress_ports=8))
MOST_LEAVES, MOST_ROOTS = _MOST["leaf"], _MOST["root"]
FIRST = dict(zip(_MOST, accumulate(_MOST.values(), initial=0), strict=False))
"""Index of the first instance of each part."""
INSTANCES = sum(_MOST.values())
SLICE, MATCHER, LEAF, ROOT = FIRST["slice"], FIRST["matcher"], FIRST["leaf"], FIRST["root"]
TRACKER, TRIGGER, MONITOR = FIRST["tracker"], FIRST["trigger"], FIRST["monitor"]
REGISTERS, NMC = FIRST["registers"], FIRST["nmc"]
# Places in parts.SIMULATED: which step function, which count of evaluations.
OF_SLICE, OF_MATCHER = SIMULATED.index("slice"), SIMULATED.index("matcher")
OF_LEAF, OF_ROOT = SIMULATED.index("leaf"), SIMULATED.index("root")
OF_TRACKER, OF_TRIGGER = SIMULATED.index("tracker"), SIMULATED.index("trigger")
OF_MONITOR, OF_REGISTERS, OF_NMC = SIMULATED.index("monitor"), SIMULATED.index("registers"), SIMULATED.index("nmc")


def place(hardware: LoadedHardware) -> tuple[np.ndarray, np.ndarray]:
    """New instances of all parts of one GPU, reset: (words, handles).

    ``words`` starts with a directory: first input word and first output word of every instance.
    """
    handles = np.zeros(INSTANCES, np.int64)
    directory = np.zeros((INSTANCES, 2), np.int64)
    used = 2 * INSTANCES
    for name, count in instance_counts(hardware.config).items():
        part = hardware.parts[name]
        for index in range(FIRST[name], FIRST[name] + count):
            handles[index] = part.new()
            directory[index] = used, used + part.words.input_words
            used += part.words.input_words + part.words.output_words
    words = np.zeros(used, np.int64)
    words[: 2 * INSTANCES] = directory.ravel()
    return words, handles


@compiled_inner
def part_in(g, part, index):
    """First input word of an instance."""
    return g.words[2 * (part + index)]


@compiled_inner
def part_out(g, part, index):
    """First output word of an instance."""
    return g.words[2 * (part + index) + 1]
