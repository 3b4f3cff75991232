"""One instance of a part, looked at clock by clock: the values of its signals, and when they change."""

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface.words import value_at, word_count

from t3sim.engine.gpu_state import GpuState
from t3sim.engine.t3unit.words import FIRST
from t3sim.hardware.abi import words_of

from .internals import InternalProbe
from .selection import PartInstance
from .signals import Change, Signal, Words, part_signals
from .tap import Tap


class Probe:
    """``changes``: of the signals of ``instance``, in the order of their cycles; the first ones are their values at
    the first cycle that was looked at. ``inside``: looks into the instance in the clocks in which it is not stepped;
    in the others the tap does."""

    def __init__(
        self, config: T3Config, instance: PartInstance, gpu: GpuState, inside: InternalProbe | None = None
    ) -> None:
        self.instance, self.inside = instance, inside
        parts = part_signals(config, instance.part)
        self.signals, self.streams = parts.signals, parts.streams
        self.changes: list[Change] = []
        words, number = words_of(config, instance.part), FIRST[instance.part] + instance.index
        first_in, first_out = int(gpu.words[2 * number]), int(gpu.words[2 * number + 1])
        self._inputs = gpu.words[first_in : first_in + words.input_words].view(np.uint64)
        self._outputs = gpu.words[first_out : first_out + words.output_words].view(np.uint64)
        self.address = self._inputs.ctypes.data
        self._numbers = _by_word(self.signals, words.input_words)
        self._shown: Words | None = None
        self._values: dict[int, int | None] = {}
        self.outputs = self._outputs.copy()

    def settle(self) -> None:
        """Take the outputs as they are: what was before was not looked at."""
        self.outputs = self._outputs.copy()

    def look(self, cycle: int, tap: Tap) -> None:
        """Note the clock ``cycle``, which has just been simulated, and keep its results for the next one.

        In a clock in which an instance is not stepped nothing is transferred at its ports: that is why.
        """
        stepped = tap.stepped.get(self.address)
        outputs, self.outputs = self.outputs, self._outputs.copy()
        if stepped is None:
            self._rest(cycle, cycle + 1, outputs)
        else:
            self._show(cycle, np.frombuffer(stepped, np.uint64), outputs)

    def rest(self, first: int, last: int) -> None:
        """Note the clocks from ``first`` to ``last`` (not included), which the engine skips."""
        self._rest(first, last, self.outputs)

    def _rest(self, first: int, last: int, outputs: Words) -> None:
        inputs = self._at_rest(first, outputs)
        self._show(first, inputs, outputs)
        if self.inside is not None:
            self.inside.rest(first, last, inputs)

    def _at_rest(self, cycle: int, outputs: Words) -> Words:
        """The inputs in a clock without a step: of every stream valid or ready is 0, and there is no pulse."""
        inputs = self._inputs.copy()
        for stream in self.streams:
            if stream.into and (stream.ready is None or outputs[stream.ready]):
                inputs[stream.valid] = 0
            elif not stream.into and stream.ready is not None and outputs[stream.valid]:
                inputs[stream.ready] = 0
        return inputs

    def _show(self, cycle: int, inputs: Words, outputs: Words) -> None:
        words = np.concatenate([inputs, outputs])
        changed = range(len(words)) if self._shown is None else np.flatnonzero(words != self._shown).tolist()
        self._shown = words
        for number in sorted({number for word in changed for number in self._numbers[word]}):
            signal = self.signals[number]
            value = self._value(signal, inputs, outputs)
            if number not in self._values or self._values[number] != value:
                self._values[number] = value
                self.changes.append((cycle, number, value))

    @staticmethod
    def _value(signal: Signal, inputs: Words, outputs: Words) -> int | None:
        if signal.valid is not None:
            is_input, word = signal.valid
            if not (inputs if is_input else outputs)[word]:
                return None
        words = inputs if signal.is_input else outputs
        return value_at(words, signal.place) >> signal.offset & (1 << signal.bits) - 1


def _by_word(signals: tuple[Signal, ...], input_words: int) -> list[list[int]]:
    """The numbers of the signals that depend on each word, of the inputs and behind them of the outputs."""
    found: dict[int, list[int]] = {}
    for number, signal in enumerate(signals):
        first, bits = signal.place
        words = [(signal.is_input, word) for word in range(first, first + word_count(bits))]
        if signal.valid is not None:
            words.append(signal.valid)
        for is_input, word in words:
            found.setdefault(word + (0 if is_input else input_words), []).append(number)
    return [found.get(word, []) for word in range(max(found) + 1)]
