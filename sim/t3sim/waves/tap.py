"""Step functions that note which instances the engine steps, and with which inputs."""

import ctypes

from t3sim.hardware.abi import LoadedHardware, NativeFunction, PartFunctions, PartType
from t3sim.hardware.rtl.traced import TracedPartType

_CALL = ctypes.CFUNCTYPE(None, ctypes.c_ssize_t, ctypes.c_ssize_t, ctypes.c_ssize_t)


class Tap:
    """The step functions of a hardware, in the engine's order: those of the kinds ``parts`` are tapped.

    ``stepped``: input words (uint64, as bytes) of every tapped instance that was stepped, by the address of these
    words; :meth:`begin` clears it. What is recorded of instances is recorded with the inputs of their steps.
    """

    def __init__(self, hardware: LoadedHardware, parts: frozenset[str]) -> None:
        self.stepped: dict[int, bytes] = {}
        self._cycle = 0
        self.steps = PartFunctions(
            self._tapped(part) if name in parts else part.step for name, part in hardware.parts.items()
        )

    def begin(self, cycle: int) -> None:
        """Before the clock ``cycle`` is simulated."""
        self.stepped.clear()
        self._cycle = cycle

    def _tapped(self, part: PartType) -> NativeFunction:
        step, size, stepped = _CALL(part.step.address), 8 * part.words.input_words, self.stepped
        observe = part.observe if isinstance(part, TracedPartType) else None

        def call(state: int, inputs: int, outputs: int) -> None:
            stepped[inputs] = ctypes.string_at(inputs, size)
            if observe is not None:
                observe(state, inputs, self._cycle)
            step(state, inputs, outputs)

        function = _CALL(call)
        return NativeFunction(ctypes.cast(function, ctypes.c_void_p).value or 0, (function, part.step))
