"""The two backends of the T3 hardware: compiled RTL, or the golden model. Same inputs, same outputs, every cycle."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from t3hdl.config import T3Config

from .abi import LoadedHardware

if TYPE_CHECKING:  # it takes seconds to import
    from .rtl.backend import SourceOf

BACKENDS = ("rtl", "golden")
"""Names of the backends."""


def open_hardware(
    config: T3Config,
    backend: Literal["rtl", "golden"],
    show: Callable[[int, int], None] = lambda done, total: None,
    variants: "Mapping[str, SourceOf] | None" = None,
) -> LoadedHardware:
    """The parts of ``config`` from one backend; ``close()`` frees the instances.

    A backend is imported when it is asked for: each takes seconds to load. ``show`` is called with the number of
    parts that have been compiled, and of all that must be, if there are such. ``variants``: as in ``rtl_hardware``; the
    golden model has none.

    Raises ValueError for an unknown backend, :class:`~t3sim.common.cache.BuildError` if the RTL cannot be compiled.
    """
    if backend == "rtl":
        from .rtl.backend import rtl_hardware

        return rtl_hardware(config, variants, show)
    if backend == "golden":
        from .golden.backend import golden_hardware

        return golden_hardware(config)
    raise ValueError(f"hardware backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
