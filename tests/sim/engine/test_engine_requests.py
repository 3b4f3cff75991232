"""The address hash of compiled code is that of the hardware's layouts, and every line has a place of its own."""

import numpy as np
import pytest
from numba import njit
from t3hdl.interface.layouts import LINE_BITS, channel_of, local_line
from t3sim.engine.requests import channel_of_line, local_line_of

SLICES = (1, 2, 4, 8, 16, 32, 64)


@njit
def places(lines, slices):
    """[lines, 2]: channel and local line of each."""
    result = np.zeros((len(lines), 2), np.int64)
    for i in range(len(lines)):
        result[i, 0] = channel_of_line(lines[i], slices)
        result[i, 1] = local_line_of(lines[i], slices)
    return result


@pytest.mark.parametrize("slices", SLICES)
def test_hash_is_that_of_the_layouts(slices):
    rng = np.random.default_rng(slices)
    lines = np.concatenate([np.arange(20_000), rng.integers(0, 1 << LINE_BITS, 20_000), [(1 << LINE_BITS) - 1]])
    got = places(lines, slices)
    assert np.array_equal(got[:, 0], channel_of(lines, slices))
    assert np.array_equal(got[:, 1], local_line(lines, slices))


@pytest.mark.parametrize("slices", SLICES)
@pytest.mark.parametrize("first", [0, 3 << 21])
def test_every_line_has_its_own_place(slices, first):
    got = places(np.arange(first, first + (1 << 16)), slices)
    assert got[:, 0].min() >= 0 and got[:, 0].max() == slices - 1
    assert len(np.unique(got, axis=0)) == 1 << 16
    assert set(np.bincount(got[:, 0])) == {(1 << 16) // slices}
