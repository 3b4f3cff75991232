"""The paper's evaluation with toy GEMMs on the toy machine: seconds, and no figure of it means anything."""

from types import MappingProxyType
from typing import Any

import pytest
from t3sim.inputs.workload import Workload
from t3sim.study import suite
from t3sim.study.suite import Suite

INNER = {"op": 128, "fc2": 512, "fc1": 512, "ip": 384}
MACHINES = MappingProxyType({"base": {}, "fit": {"hardware.tracker_sets": 16}, "backlog": {"arbiter.mca": "backlog"}})


def toy_workload(model: str, sublayer: str, tp: int) -> Workload:
    """One of three small GEMMs on four GPUs, whatever the model."""
    return Workload(model=model, sublayer=sublayer, tp=4, m=128, n=128, k=INNER[sublayer])


def toy_suite(monkeypatch: pytest.MonkeyPatch, **choices: Any) -> Suite:
    """A suite whose every sublayer is a toy."""
    monkeypatch.setattr(suite, "model_workload", toy_workload)
    monkeypatch.setattr(suite, "SETTINGS", MACHINES)
    return Suite(**{"machine": "toy", "hardware": "golden", **choices})
