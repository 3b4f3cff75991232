"""Drives several instances of one part with the same inputs and compares all their outputs in every cycle.

Beside each instance runs a lazy one, which is stepped only where its own ``idle`` and ``wake_at`` do not allow to skip
the cycle (docs/hardware/rules.md, rule 5). If the promise were broken, the lazy instance would sooner or later differ.
"""

from collections import deque
from collections.abc import Mapping

import numpy as np
from t3hdl.interface.words import value_at
from t3sim.hardware.abi import Instance, PartType

from tb.words import UNCOMPARED, streams_of, valid_of

HISTORY = 8
"""Cycles that a failure shows."""


class Lockstep:
    """All instances of a part, with the same inputs.

    ``inputs`` and ``outputs`` name the ports; ``cycle`` counts the clocks since reset, ``skipped`` those that a lazy
    instance left out; ``moved`` has the payload of every stream that transferred in the last cycle; ``seen`` names the
    outputs that were not 0 in some cycle.
    """

    def __init__(self, parts: dict[str, PartType], *, title: str) -> None:
        self.title, self.cycle = title, 0
        self._eager = {name: Instance(part) for name, part in parts.items()}
        self._lazy = {name: Instance(part) for name, part in parts.items()}
        self.skipped = dict.fromkeys(parts, 0)
        self.moved: dict[str, int] = {}
        self.seen: set[str] = set()
        self._words = next(iter(parts.values())).words
        self._first = next(iter(self._eager.values()))
        self._inputs = self._first.inputs
        self.inputs, self.outputs = self._words.inputs, self._words.outputs
        for instance in (*self._eager.values(), *self._lazy.values()):
            instance.inputs = self._inputs
        self._previous = self._inputs.copy()
        self._compared = np.ones(len(self._first.outputs), bool)
        for name in UNCOMPARED:
            self._compared[self._words.outputs[name][0]] = False
        self._payloads = [(name, valid) for name in self.outputs if (valid := valid_of(name, self.outputs))]
        self._sources, self._sinks = streams_of(self.inputs, "valid"), streams_of(self.inputs, "ready")
        self._pulses = [name for name in self.inputs if name.endswith("_valid")]
        self._history: deque[tuple[int, np.ndarray, np.ndarray]] = deque(maxlen=HISTORY)
        self._compare()

    def reset(self) -> None:
        """Reset all instances, wherever they are, with all inputs 0; ``skipped`` and ``seen`` go on."""
        self._inputs[:] = self._previous[:] = 0
        self.cycle, self.moved = 0, {}
        self._history.clear()
        for instance in (*self._eager.values(), *self._lazy.values()):
            instance.reset()
        self._compare()

    def set(self, port: str, value: int) -> None:
        """Drive an input port; it keeps the value until it is set again."""
        self._first.set(port, value)

    def driven(self, port: str) -> int:
        """The present value of an input port."""
        return value_at(self._inputs, self.inputs[port])

    def get(self, port: str) -> int:
        """The value of an output port in this cycle."""
        return self._first.get(port)

    def step(self) -> None:
        """One clock. Raises AssertionError with the last cycles if two instances differ afterwards."""
        self._history.append((self.cycle, self._inputs.copy(), self._first.outputs.copy()))
        self.moved = {
            **{
                s: self.driven(f"{s}.payload")
                for s in self._sources
                if self.driven(f"{s}.valid") and self.get(f"{s}.ready")
            },
            **{
                s: self.get(f"{s}.payload") for s in self._sinks if self.get(f"{s}.valid") and self.driven(f"{s}.ready")
            },
        }
        for name, lazy in self._lazy.items():
            if self._may_skip(lazy):
                self.skipped[name] += 1
            else:
                lazy.step()
        for instance in self._eager.values():
            instance.step()
        self._previous[:] = self._inputs
        self.cycle += 1
        self._compare()

    def _may_skip(self, instance: Instance) -> bool:
        if self.cycle == 0 or not instance.get("idle"):
            return False
        if "now" in self.inputs:
            if self.driven("now") >= instance.get("wake_at"):
                return False
            now = self.inputs["now"][0]
            self._previous[now] = self._inputs[now]
        if not np.array_equal(self._previous, self._inputs):
            return False
        return not (
            any(self.driven(f"{s}.valid") and instance.get(f"{s}.ready") for s in self._sources)
            or any(instance.get(f"{s}.valid") and self.driven(f"{s}.ready") for s in self._sinks)
            or any(self.driven(pulse) for pulse in self._pulses)
        )

    def _compare(self) -> None:
        self.seen.update(port for port in self._words.outputs.keys() - self.seen if self.get(port))
        reference = self._first.outputs[self._compared]
        for kind, instances in (("", self._eager), (" (lazy)", self._lazy)):
            for name, instance in instances.items():
                if not np.array_equal(instance.outputs[self._compared], reference):
                    self._compare_ports(name + kind, instance)

    def _compare_ports(self, name: str, instance: Instance) -> None:
        """As ``_compare``, without payloads that mean nothing."""
        ignored = {*UNCOMPARED} | {port for port, valid in self._payloads if not self._first.get(valid)}
        wrong = [
            f"{port}: {next(iter(self._eager))} {self.get(port):#x}, {name} {instance.get(port):#x}"
            for port in self._words.outputs
            if port not in ignored and instance.get(port) != self.get(port)
        ]
        if wrong:
            history = "\n".join(
                f"cycle {cycle}: in {_shown(self.inputs, inputs)}\n    out {_shown(self.outputs, outputs)}"
                for cycle, inputs, outputs in self._history
            )
            raise AssertionError(
                f"{self.title}: outputs of cycle {self.cycle} differ\n" + "\n".join(wrong) + f"\n{history}"
            )


def _shown(places: Mapping[str, tuple[int, int]], words: np.ndarray) -> str:
    """The ports that are not 0."""
    return " ".join(f"{port}={value:#x}" for port, place in places.items() if (value := value_at(words, place)))
