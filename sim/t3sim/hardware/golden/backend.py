"""The golden backend: every part as its cycle-exact model."""

from types import ModuleType

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface import signatures
from t3hdl.interface.parts import SIMULATED, TABLE

from t3sim.hardware.abi import LoadedHardware, NativeFunction, PartType, part_words

from . import matcher, monitor, nmc, node
from .registers import registers
from .slice import slice
from .tracker import tracker
from .trigger import trigger

MODELS: dict[object, ModuleType] = {
    signatures.slice_signature: slice,
    signatures.matcher_signature: matcher,
    signatures.node_signature: node,
    signatures.tracker_signature: tracker,
    signatures.trigger_signature: trigger,
    signatures.monitor_signature: monitor,
    signatures.registers_signature: registers,
    signatures.nmc_signature: nmc,
}
"""The model behind each kind of ports: its ``init_state`` takes what the signature takes."""


def initial_state(name: str, config: T3Config) -> np.ndarray:
    """The state of an instance of the part ``name``, before its first reset."""
    part = TABLE[name]
    return MODELS[part.signature].init_state(**part.arguments(config))


def golden_hardware(config: T3Config) -> LoadedHardware:
    """The parts of ``config`` as golden models; needs no tools besides Numba."""
    states: list[np.ndarray] = []  # instances live as long as this list holds their states

    def part_type(name: str) -> PartType:
        model = MODELS[TABLE[name].signature]

        def new() -> int:
            states.append(initial_state(name, config))
            return states[-1].ctypes.data

        return PartType(
            name=name,
            words=part_words(config)[name],
            step=NativeFunction(model.step.address, model.step),
            reset=NativeFunction(model.reset.address, model.reset),
            new=new,
        )

    parts = {name: part_type(name) for name in SIMULATED}
    return LoadedHardware(config=config, backend="golden", parts=parts, close=states.clear)
