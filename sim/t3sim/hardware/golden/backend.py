"""The golden backend: every part as its cycle-exact model."""

from collections.abc import Callable
from types import ModuleType

import numpy as np
from t3hdl.config import T3Config

from t3sim.hardware.abi import Hardware, NativeFunction, PartType, part_words

from . import matcher, monitor, nmc, node
from .registers import registers
from .slice import slice
from .tracker import tracker
from .trigger import trigger


def golden_hardware(config: T3Config) -> Hardware:
    """The parts of ``config`` as golden models; needs no tools besides Numba."""
    models: dict[str, tuple[ModuleType, Callable[[], np.ndarray]]] = {
        "slice": (slice, lambda: slice.init_state(config)),
        "matcher": (matcher, lambda: matcher.init_state(config)),
        "leaf": (node, lambda: node.init_state(config.node_inputs, 1)),
        "root": (node, lambda: node.init_state(config.nodes, config.tracker_banks)),
        "tracker": (tracker, lambda: tracker.init_state(config)),
        "trigger": (trigger, lambda: trigger.init_state(config)),
        "monitor": (monitor, lambda: monitor.init_state(config)),
        "registers": (registers, lambda: registers.init_state(config)),
        "nmc": (nmc, lambda: nmc.init_state(config)),
    }
    states: list[np.ndarray] = []  # instances live as long as this list holds their states

    def keep(init_state: Callable[[], np.ndarray]) -> int:
        states.append(init_state())
        return states[-1].ctypes.data

    def part_type(name: str) -> PartType:
        module, init_state = models[name]
        return PartType(
            name=name,
            words=part_words(config)[name],
            step=NativeFunction(module.step.address, module.step),
            reset=NativeFunction(module.reset.address, module.reset),
            new=lambda: keep(init_state),
        )

    parts = {name: part_type(name) for name in models}
    return Hardware(config=config, backend="golden", **parts, close=states.clear)
