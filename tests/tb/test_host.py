"""The host of the unit's testbench: how long it waits for what must come."""

import random
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from t3hdl.config import preset

pytest.importorskip("cocotb", reason="no cocotb: pip install 'opent3[dev]'")
from tb.cocotb.unit.host import PATIENCE, Host

ACCESS = 5
"""Cycles that a refused write takes."""


class RefusingUnit:
    """Machine and bus of a unit that takes no CONTROL write before the cycle ``takes_at``."""

    def __init__(self, takes_at: float) -> None:
        self.now, self._takes_at = 0, takes_at

    async def try_write(self, address: int, value: int) -> bool:
        self.now += ACCESS
        return self.now >= self._takes_at

    async def rest(self, cycles: int) -> None:
        self.now += cycles


def control(unit: RefusingUnit, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A CONTROL write to its end."""
    host = Host(SimpleNamespace(try_write=unit.try_write), unit, preset("small"), None, random.Random(0))
    monkeypatch.setattr(host, "rest", unit.rest)
    ends(host.control(quiesce=1))
    return host


def ends(run: Coroutine[Any, Any, None]) -> None:
    """Runs what waits for no trigger of a simulator."""
    with pytest.raises(StopIteration):
        run.send(None)


def test_a_control_write_is_repeated_until_the_unit_takes_it(monkeypatch):
    host = control(RefusingUnit(takes_at=100), monkeypatch)
    assert 5 < host.events["control refused while busy"] < 100


def test_the_patience_with_a_refused_write_is_in_cycles(monkeypatch):
    unit = RefusingUnit(takes_at=float("inf"))
    with pytest.raises(AssertionError, match=r"CONTROL {'quiesce': 1} is still refused after 60,000 cycles"):
        control(unit, monkeypatch)
    assert PATIENCE <= unit.now < PATIENCE + 100
