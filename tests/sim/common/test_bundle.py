"""A bundle of records and arrays: what it accepts, and that compiled code sees those that are bound now."""

from typing import ClassVar

import numpy as np
import pytest
from numba import njit
from t3sim.common.bundle import Bundle

POINT = np.dtype([("x", "i8"), ("y", "i4")], align=True)


class Scene(Bundle):
    FIELDS: ClassVar = {
        "origin": (POINT, 0),
        "points": (POINT, 1),
        "grid": (np.dtype(np.int64), 2),
        "cube": (np.dtype(np.int32), 3),
    }


class Other(Bundle):
    FIELDS: ClassVar = {"grid": (np.dtype(np.float64), 1)}


def scene(**arrays: np.ndarray) -> Scene:
    made = {
        "origin": np.zeros((), POINT),
        "points": np.zeros(4, POINT),
        "grid": np.zeros((3, 5), np.int64),
        "cube": np.zeros((2, 3, 4), np.int32),
    }
    return Scene(**(made | arrays))


@njit
def shapes(g):
    return g.points.shape, g.grid.shape, g.cube.shape


@njit
def total(g):
    result = 0
    for row in range(g.grid.shape[0]):
        for col in range(g.grid.shape[1]):
            result += g.grid[row, col]
    for i in range(g.points.shape[0]):
        result += g.points[i].x * g.points[i].y
    return result


@njit
def fill(g):
    """Write through records, elements and a slice, with a different value everywhere."""
    for i in range(g.points.shape[0]):
        point = g.points[i]
        point.x = 10 + i
        point.y = 20 + i
    for a in range(g.cube.shape[0]):
        for b in range(g.cube.shape[1]):
            for c in range(g.cube.shape[2]):
                g.cube[a, b, c] = 100 * a + 10 * b + c
    row = g.grid[1]
    row[2:] = 7


@njit
def move_origin(g, x):
    """Write to a record in both ways; what it was."""
    origin, before = g.origin, g.origin.x
    origin.x = x
    g.origin.y = x + 1
    return before


@njit
def first_of(g):
    return g.grid[0]


def test_kernels_see_the_arrays():
    bundle = scene()
    assert shapes(bundle) == ((4,), (3, 5), (2, 3, 4))
    fill(bundle)
    assert bundle.points["x"].tolist() == [10, 11, 12, 13] and bundle.points["y"].tolist() == [20, 21, 22, 23]
    assert bundle.grid.tolist() == [[0] * 5, [0, 0, 7, 7, 7], [0] * 5]
    assert all(bundle.cube[i] == 100 * i[0] + 10 * i[1] + i[2] for i in np.ndindex(2, 3, 4))
    bundle.grid[2, 4] = 1000
    assert total(bundle) == 1000 + 21 + sum((10 + i) * (20 + i) for i in range(4))


def test_a_field_without_dimensions_is_a_record():
    bundle, other = scene(), scene()
    bundle.origin["x"] = 4
    assert move_origin(bundle, 6) == 4
    assert (bundle.origin["x"], bundle.origin["y"]) == (6, 7)
    assert (other.origin["x"], other.origin["y"]) == (0, 0)
    shared = np.array((1, 2), POINT)
    bundle.bind("origin", shared)
    other.bind("origin", shared)
    assert move_origin(other, 3) == 1 and bundle.origin["x"] == 3


def test_bind_shares_and_replaces():
    bundle, other = scene(), scene()
    shared = np.full((2, 2), 3, np.int64)
    bundle.bind("grid", shared)
    other.bind("grid", shared)
    assert bundle.grid is shared and shapes(bundle)[1] == (2, 2)
    assert total(bundle) == 12
    fill_in = np.arange(8, dtype=np.int64).reshape(4, 2)
    bundle.bind("grid", fill_in)
    assert (total(bundle), total(other)) == (28, 12)
    shared[0, 0] = 5
    assert total(other) == 14


def test_bundle_keeps_its_arrays_alive():
    bundle = scene(grid=np.full((200, 200), 2, np.int64))
    for _ in range(50):
        np.ones((200, 200), np.int64)
    assert total(bundle) == 80_000


def test_other_bundle_is_another_type():
    assert first_of(Other(grid=np.array([2.5, 1.0]))) == 2.5
    assert first_of(scene(grid=np.full((1, 2), 9, np.int64))).tolist() == [9, 9]


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("grid", np.zeros((3, 5), np.int32), r"^field grid is 2-dimensional and C-contiguous, of int64$"),
        ("grid", np.zeros(15, np.int64), r"^field grid is 2-dimensional"),
        ("grid", np.zeros((5, 3), np.int64).T, r"^field grid is 2-dimensional and C-contiguous"),
        ("cube", np.zeros((2, 3, 8), np.int32)[:, :, ::2], r"^field cube is 3-dimensional and C-contiguous, of int32$"),
        ("points", np.zeros(4, np.dtype([("x", "i8"), ("y", "i8")])), r"^field points is 1-dimensional"),
        ("origin", np.zeros(1, POINT), r"^field origin is 0-dimensional"),
    ],
)
def test_arrays_of_another_shape_or_type_are_refused(name, array, message):
    with pytest.raises(TypeError, match=message):
        scene(**{name: array})
    bundle = scene()
    before = getattr(bundle, name)
    with pytest.raises(TypeError, match=message):
        bundle.bind(name, array)
    assert getattr(bundle, name) is before


def test_missing_and_unknown_fields():
    with pytest.raises(TypeError, match=r"^Scene has other fields than \['cube', 'origin', 'points'\]$"):
        Scene(grid=np.zeros((3, 5), np.int64))
    with pytest.raises(TypeError, match=r"^Scene has other fields than \['more'\]$"):
        scene(more=np.zeros(1))
    with pytest.raises(AttributeError, match=r"^Scene has no array 'more'$"):
        _ = scene().more
