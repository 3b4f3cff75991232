"""Memories for the tests: machine `paper`'s, with other values."""

from typing import Any

from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.machine.hbm import HbmSection

PAPER = load_machine("paper").hbm


def memory(base: HbmSection = PAPER, **values: Any) -> HbmSection:
    """``base`` with other ``values``; ValueError if one is illegal."""
    return HbmSection(**{**base.model_dump(), **values})
