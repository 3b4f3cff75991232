"""A mistake that is put into the source of a function for as long as a test runs."""

import inspect
import textwrap
from collections.abc import Callable
from types import CodeType
from typing import Any

import pytest


def seed(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any] | property, old: str, new: str) -> None:
    """Replaces ``old``, which is there once, by ``new`` in a function, a method or a property.

    Whoever has imported it calls the changed one. Raises AssertionError if ``old`` is not there once.
    """
    plain: Any = function.fget if isinstance(function, property) else function
    source = textwrap.dedent(inspect.getsource(plain))
    assert source.count(old) == 1, f"{old!r} is {source.count(old)} times in {plain.__qualname__}"
    module = compile(source.replace(old, new), inspect.getsourcefile(plain) or "", "exec")
    (changed,) = (part for part in module.co_consts if isinstance(part, CodeType) and part.co_name == plain.__name__)
    monkeypatch.setattr(plain, "__code__", changed)
