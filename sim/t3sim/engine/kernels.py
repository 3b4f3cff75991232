"""The engine's entries from Python, compiled ahead of the first call: here, or by a process beside this one.

Compiling them takes half a minute of one core, in which this process can build the hardware on another one.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

from numba import int64
from numba.core import event
from t3hdl.interface.parts import SIMULATED

from t3sim.common.bundle import BundleType
from t3sim.common.compiled import compile_types, is_kept
from t3sim.hardware.abi import functions_type

from .gpu import advance
from .gpu_state import GpuState
from .t3unit.program import bus_access, reset_unit, run_cycles, wait_until_ready

_GPU, _STEPS = BundleType(GpuState), functions_type(len(SIMULATED))
ENTRIES = (
    (reset_unit, (_GPU, _STEPS)),
    (wait_until_ready, (_GPU, _STEPS)),
    (bus_access, (_GPU, _STEPS, int64, int64, int64)),
    (run_cycles, (_GPU, _STEPS, int64)),
    (advance, (_GPU, _STEPS, int64, int64, int64)),
)
"""Compiled functions that Python calls, with the Numba types of their arguments."""


def compile_entries() -> None:
    """Compile :data:`ENTRIES`, or load them from the cache folder. Raises BuildError as ``compile_types``."""
    for function, types in ENTRIES:
        compile_types(function, types)


def entries_kept() -> bool:
    """Whether the cache folder holds all :data:`ENTRIES`."""
    return all(is_kept(function, types) for function, types in ENTRIES)


@contextmanager
def entries_compiled(show: Callable[[int], None]) -> Iterator[None]:
    """At the end of the block :data:`ENTRIES` are compiled; by another process during the block, unless they are in the
    cache folder.

    ``show`` is called, in a thread, with the number of functions that are compiled. The process ends with the block if
    that raises. Raises BuildError if they can neither be loaded nor kept.
    """
    if not entries_kept():
        with _other_process(show) as finish:
            yield
            finish()
    else:
        yield
    compile_entries()  # loads them; compiles them, and says what is wrong, if the other process could not


@contextmanager
def _other_process(show: Callable[[int], None]) -> Iterator[Callable[[], object]]:
    """A process that compiles; yields what waits for its end."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-m", __spec__.name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as child:

        def read() -> None:
            for line in child.stdout or ():
                show(int(line))

        reader = Thread(target=read)
        reader.start()
        try:
            yield child.wait
        finally:
            child.kill()
            reader.join()


class _Count(event.Listener):
    """Prints how many functions have been compiled."""

    def __init__(self) -> None:
        self._done = 0

    def on_start(self, event: event.Event) -> None:
        """Nothing is done yet."""

    def on_end(self, event: event.Event) -> None:
        """One more."""
        self._done += 1
        print(self._done, flush=True)


if __name__ == "__main__":
    event.register("numba:compile", _Count())
    compile_entries()
