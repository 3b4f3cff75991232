"""Parts that record their internal signals: the same RTL, compiled with Verilator's tracing."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from t3hdl.config import T3Config
from t3hdl.interface.words import WordMap

from t3sim.hardware.abi import PartType

from .backend import CompiledPart, PartSource, part_source
from .build import NOT_GATED


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

    traced: ClassVar[bool] = True

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


def traced_source(config: T3Config, name: str) -> PartSource:
    """One part of ``config`` with traces, in which every clock is the part's: it is run for seconds alone."""
    return replace(part_source(config, name), optimise=1, kind=TracedPart, gating=NOT_GATED)
