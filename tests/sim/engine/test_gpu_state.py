"""The state of a GPU: what every model declares is there, under a name that no other model has."""

from collections import Counter
from importlib import import_module
from pkgutil import walk_packages

from t3sim import engine
from t3sim.engine.gpu_state import GpuState


def test_every_field_of_a_model_is_in_the_state_once():
    models = [import_module(module.name) for module in walk_packages(engine.__path__, f"{engine.__name__}.")]
    declared = Counter(name for model in models for name in getattr(model, "FIELDS", {}))
    assert declared == Counter(GpuState.FIELDS.keys())
