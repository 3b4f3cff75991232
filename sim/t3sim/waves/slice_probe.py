"""The probe of a memory slice: the engine writes a slice's inputs only when it looks at its channel."""

import numpy as np
from t3hdl.config import T3Config

from t3sim.dram.timing import READ, WRITE
from t3sim.engine.channel import QUEUE_IN, QUEUE_VALID
from t3sim.engine.gpu_state import GpuState
from t3sim.engine.t3unit.ports import SLICE_IN

from .internals import InternalProbe
from .probe import Probe
from .selection import PartInstance
from .signals import Words
from .tap import Tap


class SliceProbe(Probe):
    """In a clock in which the slice is not stepped, what it is offered is taken from the request queues themselves, and
    ``occupancy`` from the DRAM queue."""

    def __init__(
        self, config: T3Config, instance: PartInstance, gpu: GpuState, inside: InternalProbe | None = None
    ) -> None:
        super().__init__(config, instance, gpu, inside)
        self._gpu = gpu
        self._lines = 0

    def settle(self) -> None:
        super().settle()
        self._lines = self._occupancy()

    def look(self, cycle: int, tap: Tap) -> None:
        super().look(cycle, tap)
        self._lines = self._occupancy()

    def _occupancy(self) -> int:
        held = self._gpu.channel["held"][self.instance.index]
        return int(held[READ] + held[WRITE])

    def _at_rest(self, cycle: int, outputs: Words) -> Words:
        inputs = super()._at_rest(cycle, outputs)
        inputs[SLICE_IN.occupancy] = self._lines
        front = self._gpu.fronts[self.instance.index]
        for queue, at in enumerate(QUEUE_IN):
            request = self._gpu.bursts[front["head"][queue]]
            waits = front["usable_cycle"][queue] <= cycle
            inputs[at + QUEUE_VALID] = waits
            if waits:
                inputs[at : at + 2] = np.array([request["word0"], request["word1"]], np.int64).view(np.uint64)
        return inputs
