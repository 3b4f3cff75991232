"""The compiled NmcAlu: special values in every lane, and many random lines, against exact arithmetic."""

import pytest
from t3hdl.config import preset
from t3hdl.interface.layouts import Op
from t3sim.hardware.abi import Instance
from t3sim.hardware.rtl.backend import compiled_part

from tb.alu import directed
from tb.alu.line_reference import FORMATS
from tests.support.system_cases import missing_compiler

pytestmark = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler())


@pytest.fixture(scope="module", params=[16, 2, pytest.param(8, marks=pytest.mark.slow)], ids="{} lanes".format)
def config(request):
    return preset("small", nmc_lanes=request.param)


@pytest.fixture(scope="module")
def alu(config):
    part = compiled_part(config, "alu")
    yield Instance(part.part_type)
    part.free()


@pytest.mark.parametrize("op", [Op.ADD, Op.MIN, Op.MAX], ids=lambda op: op.name.lower())
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.name.lower())
def test_special_values_in_both_halves(alu, config, dtype, op):
    directed.special_values_in_both_halves(alu, config, dtype, op)


def test_every_operation_with_masks(alu, config):
    directed.every_operation_with_masks(alu, config)


def test_each_lane_raises_its_flags(alu, config):
    directed.each_lane_raises_its_flags(alu, config)


def test_integer_corners(alu, config):
    directed.integer_corners(alu, config)


def test_random_lines(alu, config):
    directed.check(alu, config, directed.random_cases(31, 4000))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(32, 40))
def test_many_random_lines(alu, config, seed):
    directed.check(alu, config, directed.random_cases(seed, 40000))
