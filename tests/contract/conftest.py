"""``backend``: every scenario of the contract runs on Amaranth's simulator, on compiled RTL, on the golden model."""

import re

import pytest

from tests.contract.backends import BACKENDS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Unless a scenario names its backends. One of its own size is compiled in the slow tier: it takes ten seconds."""
    marks = metafunc.definition.iter_markers("parametrize")
    own = any("backend" in re.split(r"[, ]+", str(mark.args[0])) for mark in marks if mark.args)
    if "backend" in metafunc.fixturenames and not own:
        slow = [pytest.mark.slow] if metafunc.definition.get_closest_marker("own_size") else []
        metafunc.parametrize("backend", [pytest.param(name, marks=slow if name == "rtl" else []) for name in BACKENDS])
