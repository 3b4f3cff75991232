"""The golden model of a part behind its random stimulus: gives the inputs to play and the outputs to expect.

The stimulus looks at the model's outputs, which the hardware must match in every cycle, so both run ahead of the
simulator by a whole batch; where the hardware differs, the first cycle that does is reported.
"""

from typing import Protocol

import numpy as np
from t3hdl.interface.words import value_at
from t3sim.hardware.abi import Instance, PartType

from tb.words import Words, streams_of


class Stimulus(Protocol):
    """Sets the inputs of a model's next cycle."""

    def drive(self) -> None:
        """Set them."""


class Model:
    """One golden instance after reset, with the ports that a stimulus (tb/stimulus/base.py) drives and reads.

    ``inputs`` and ``outputs`` name the ports; ``cycle`` counts the clocks since reset; ``moved`` has the payload of
    every stream that transferred in the last cycle.
    """

    def __init__(self, part: PartType) -> None:
        self._instance = Instance(part)
        self.inputs, self.outputs = part.words.inputs, part.words.outputs
        self._sources, self._sinks = streams_of(self.inputs, "valid"), streams_of(self.inputs, "ready")
        self.reset()

    def reset(self) -> None:
        """The state after reset, with all inputs 0."""
        self._instance.inputs[:] = 0
        self._instance.reset()
        self._driven = dict.fromkeys(self.inputs, 0)
        self.moved: dict[str, int] = {}
        self.cycle = 0

    def set(self, port: str, value: int) -> None:
        """Drive an input port; it keeps the value until it is set again."""
        if self._driven[port] != value:
            self._instance.set(port, value)
            self._driven[port] = int(value)

    def driven(self, port: str) -> int:
        """The present value of an input port."""
        return self._driven[port]

    def get(self, port: str) -> int:
        """The value of an output port in this cycle."""
        return value_at(self._instance.outputs, self.outputs[port])

    def run(self, stimulus: Stimulus, cycles: int) -> tuple[Words, Words]:
        """The next ``cycles`` cycles with this stimulus: inputs and outputs."""
        instance = self._instance
        inputs = np.empty((cycles, len(instance.inputs)), np.uint64)
        outputs = np.empty((cycles, len(instance.outputs)), np.uint64)
        for row in range(cycles):
            stimulus.drive()
            inputs[row], outputs[row] = instance.inputs, instance.outputs
            self.moved = self._transfers()
            instance.step()
            self.cycle += 1
        return inputs, outputs

    def _transfers(self) -> dict[str, int]:
        moved = {s: self._driven[f"{s}.payload"] for s in self._sources if self._moves(s, self.driven, self.get)}
        return moved | {s: self.get(f"{s}.payload") for s in self._sinks if self._moves(s, self.get, self.driven)}

    @staticmethod
    def _moves(stream: str, valid, ready) -> bool:
        return bool(valid(f"{stream}.valid") and ready(f"{stream}.ready"))
