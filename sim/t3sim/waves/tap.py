"""Step functions that note which instances the engine steps, and with which inputs."""

import ctypes

from t3sim.hardware.abi import LoadedHardware, NativeFunction, PartFunctions, PartType

_CALL = ctypes.CFUNCTYPE(None, ctypes.c_ssize_t, ctypes.c_ssize_t, ctypes.c_ssize_t)


class Tap:
    """The step functions of a hardware, in the engine's order: those of the kinds ``parts`` are tapped.

    ``stepped``: input words (uint64, as bytes) of every tapped instance that was stepped, by the address of these
    words; whoever reads it clears it.
    """

    def __init__(self, hardware: LoadedHardware, parts: frozenset[str]) -> None:
        self.stepped: dict[int, bytes] = {}
        self.steps = PartFunctions(
            self._tapped(part) if name in parts else part.step for name, part in hardware.parts.items()
        )

    def _tapped(self, part: PartType) -> NativeFunction:
        step, size, stepped = _CALL(part.step.address), 8 * part.words.input_words, self.stepped

        def call(state: int, inputs: int, outputs: int) -> None:
            stepped[inputs] = ctypes.string_at(inputs, size)
            step(state, inputs, outputs)

        function = _CALL(call)
        return NativeFunction(ctypes.cast(function, ctypes.c_void_p).value or 0, (function, part.step))
