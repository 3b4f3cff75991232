"""Parts that record their internal signals: the same RTL, compiled with Verilator's tracing."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from t3hdl.config import T3Config
from t3hdl.interface.parts import TABLE
from t3hdl.interface.words import WordMap

from t3sim.hardware.abi import PartType, words_of

from .backend import CompiledPart, part_verilog
from .build import library


@dataclass(frozen=True, kw_only=True)
class TracedPartType(PartType):
    """A part whose instances record all their signals, by handle, once that is begun.

    ``observe(handle, inputs, cycle)`` notes every signal in clock ``cycle``, with the input words at that address; the
    instance is not clocked. An instance that is not recorded ignores it. ``recorded(handle)``: a Value Change Dump,
    whose times are the cycles, and whose only scope but ``TOP`` is the part's module.
    """

    begin: Callable[[int], None]
    observe: Callable[[int, int, int], None]
    recorded: Callable[[int], bytes]


class TracedPart(CompiledPart):
    """A loaded library with traces, which are kept in memory until the instances are freed."""

    def __init__(self, name: str, words: WordMap, path: Path) -> None:
        super().__init__(name, words, path)
        self._traces: dict[int, int] = {}
        self._library.part_trace_begin.restype = ctypes.c_ssize_t
        self._library.part_trace_begin.argtypes = [ctypes.c_ssize_t]
        self._library.part_trace_observe.argtypes = [ctypes.c_ssize_t] * 3 + [ctypes.c_int64]
        self._library.part_trace_text.restype = ctypes.c_char_p
        self._library.part_trace_text.argtypes = self._library.part_trace_end.argtypes = [ctypes.c_ssize_t]
        self.part_type = TracedPartType(
            **vars(self.part_type), begin=self._begin, observe=self._observe, recorded=self._recorded
        )

    def _begin(self, handle: int) -> None:
        self._traces[handle] = self._library.part_trace_begin(handle)

    def _observe(self, handle: int, inputs: int, cycle: int) -> None:
        trace = self._traces.get(handle)
        if trace is not None:
            self._library.part_trace_observe(trace, handle, inputs, cycle)

    def _recorded(self, handle: int) -> bytes:
        return self._library.part_trace_text(self._traces[handle])

    def free(self) -> None:
        """Free every trace, and then every instance."""
        while self._traces:
            self._library.part_trace_end(self._traces.popitem()[1])
        super().free()


def traced_part(config: T3Config, name: str) -> TracedPart:
    """One part of ``config`` with traces; errors as :func:`~.backend.rtl_hardware`."""
    words, verilog = words_of(config, name), part_verilog(name, config, TABLE[name].make)
    return TracedPart(name, words, library(f"t3_{name}", verilog, words, optimise=1, traced=True))
