"""The hardware and the engine's kernels, ready to run; what the cache folder lacks of both is made side by side."""

from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Literal

from t3hdl.config import T3Config

from t3sim.hardware.abi import LoadedHardware
from t3sim.hardware.backends import open_hardware

from .kernels import entries_compiled

if TYPE_CHECKING:  # it takes seconds to import
    from t3sim.hardware.rtl.backend import SourceOf

_one_at_a_time = Lock()
"""Of runs in several threads one makes what all need."""


def open_prepared(
    config: T3Config,
    backend: Literal["rtl", "golden"],
    show: Callable[[Literal["hardware", "kernels"], int, int | None], None],
    variants: "Mapping[str, SourceOf] | None" = None,
) -> LoadedHardware:
    """The hardware of ``config``, when the kernels are compiled, too.

    ``show`` is called with how many parts of the hardware are ready, of how many, and with how many functions of the
    kernels are compiled, of nobody knows how many (None); also from another thread. What the cache folder holds is not
    shown. ``variants`` as in :func:`~t3sim.hardware.backends.open_hardware`.

    Raises BuildError if the RTL cannot be compiled, or if the cache folder cannot be used.
    """
    with _one_at_a_time, entries_compiled(lambda done: show("kernels", done, None)):
        return open_hardware(config, backend, lambda done, total: show("hardware", done, total), variants)
